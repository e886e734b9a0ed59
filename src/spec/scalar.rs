//! Values of one piece: texts, numbers, fractions, times.

use std::ops::Range;

use toml::de::DeValue;

use super::faults::SECRET;
use super::walk::{Ledger, Node, wrong_type};

pub(super) fn text(ledger: &Ledger, node: Node<'_, '_>, key: &str) -> Option<String> {
    let found = node.get_ref().as_str().map(ToOwned::to_owned);
    if found.is_none() {
        wrong_type(ledger, node, key, "a text in quotes");
    }
    found
}

pub(super) fn texts(ledger: &Ledger, node: Node<'_, '_>, key: &str) -> Vec<String> {
    match node.get_ref() {
        DeValue::Array(list) => list.iter().filter_map(|n| text(ledger, n, key)).collect(),
        _ => {
            wrong_type(ledger, node, key, "a list of texts, as in `[\"a\", \"b\"]`");
            Vec::new()
        }
    }
}

pub(super) fn whole(
    ledger: &Ledger,
    node: Node<'_, '_>,
    key: &str,
    least: u64,
    most: u64,
) -> Option<u64> {
    let Some(number) = node.get_ref().as_integer() else {
        wrong_type(ledger, node, key, "a whole number");
        return None;
    };
    let digits = number.as_str().replace('_', "");
    match u64::from_str_radix(
        digits
            .trim_start_matches("0x")
            .trim_start_matches("0o")
            .trim_start_matches("0b"),
        number.radix(),
    ) {
        Ok(n) if (least..=most).contains(&n) => Some(n),
        _ => {
            ledger.error(
                node.span(),
                format!("`{key}` takes a whole number from {least} to {most}"),
                "out of range",
                None,
            );
            None
        }
    }
}

pub(super) fn number(ledger: &Ledger, node: Node<'_, '_>, key: &str) -> Option<f64> {
    let digits = match node.get_ref() {
        DeValue::Integer(n) => n.as_str().replace('_', ""),
        DeValue::Float(n) => n.as_str().replace('_', ""),
        _ => {
            wrong_type(ledger, node, key, "a number");
            return None;
        }
    };
    let parsed = digits.parse::<f64>().ok().filter(|x| x.is_finite());
    if parsed.is_none() {
        ledger.error(
            node.span(),
            format!("`{key}` takes a finite number"),
            "not a finite number",
            None,
        );
    }
    parsed
}

/// A fraction: `0.05` or `"5 %"`.
pub(super) fn fraction(ledger: &Ledger, node: Node<'_, '_>, key: &str) -> Option<f64> {
    if let Some(text) = node.get_ref().as_str() {
        let parsed = text
            .trim()
            .strip_suffix('%')
            .and_then(|n| n.trim().parse::<f64>().ok());
        if let Some(percent) = parsed.filter(|p| (0.0..=100.0).contains(p)) {
            return Some(percent / 100.0);
        }
        ledger.error(
            node.span(),
            format!("`{key}` takes a fraction"),
            "not a fraction",
            Some("write `0.05` or `\"5 %\"`".into()),
        );
        return None;
    }
    let x = number(ledger, node, key)?;
    if (0.0..=1.0).contains(&x) {
        return Some(x);
    }
    ledger.error(
        node.span(),
        format!("`{key}` takes a fraction from 0 to 1"),
        "not a fraction",
        Some("write `0.05` or `\"5 %\"`".into()),
    );
    None
}

/// Longest time that a gate may name, in seconds: thirty days. No gate waits longer, and a clock that adds it does not
/// overflow.
const LONGEST_S: f64 = 30.0 * 86_400.0;

/// A time in seconds: `"90 s"`, `"45m"`, `"250 ms"`.
pub(super) fn seconds(ledger: &Ledger, node: Node<'_, '_>, key: &str) -> Option<f64> {
    const UNITS: &[(&str, f64)] = &[
        ("ms", 0.001),
        ("s", 1.0),
        ("m", 60.0),
        ("min", 60.0),
        ("h", 3600.0),
    ];
    let help = || Some("write `\"90 s\"`, `\"45m\"`, `\"250 ms\"` or `\"2h\"`".to_owned());
    let Some(text) = node.get_ref().as_str() else {
        ledger.error(
            node.span(),
            format!("`{key}` takes a time with its unit"),
            "a time has a unit",
            help(),
        );
        return None;
    };
    let split = text
        .trim()
        .find(|c: char| c.is_alphabetic())
        .unwrap_or(text.trim().len());
    let (digits, unit) = text.trim().split_at(split);
    let amount = digits
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|x| x.is_finite() && *x >= 0.0);
    let factor = UNITS
        .iter()
        .find(|(name, _)| *name == unit.trim())
        .map(|(_, f)| *f);
    match (amount, factor) {
        (Some(amount), Some(factor)) if amount * factor <= LONGEST_S => Some(amount * factor),
        (Some(_), Some(_)) => {
            ledger.error(
                node.span(),
                format!("`{text}` is longer than thirty days"),
                "out of range",
                help(),
            );
            None
        }
        _ => {
            ledger.error(
                node.span(),
                format!("`{text}` is no time"),
                "not a time",
                help(),
            );
            None
        }
    }
}

/// A URL of the web; a key written into it is refused.
pub(super) fn url(ledger: &Ledger, node: Node<'_, '_>, key: &str) -> Option<String> {
    let text = text(ledger, node, key)?;
    let help = || Some("write `http://127.0.0.1:8000`".to_owned());
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest else {
        ledger.error(
            node.span(),
            format!("`{key}` takes the URL of a server"),
            "begins with neither `http://` nor `https://`",
            help(),
        );
        return None;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        ledger.error(
            node.span(),
            "the URL holds a user or password",
            SECRET,
            Some("name its environment variable: `api_key_env = \"NAME\"`".into()),
        );
        return None;
    }
    // A colon inside the brackets of an IPv6 address begins no port.
    let bare = authority.rsplit_once(']').map_or(authority, |(_, r)| r);
    let port = bare.split_once(':').map(|(_, port)| port);
    let host_is_missing = authority.is_empty() || authority.starts_with(':');
    if host_is_missing || authority.contains(char::is_whitespace) {
        ledger.error(
            node.span(),
            format!("`{text}` names no host"),
            "no host",
            help(),
        );
        return None;
    }
    if let Some(port) = port.filter(|p| p.parse::<u16>().is_err()) {
        ledger.error(
            node.span(),
            format!("`{port}` is no port"),
            "a port is a number from 0 to 65535",
            help(),
        );
        return None;
    }
    Some(text.trim_end_matches('/').to_owned())
}

/// Place in the file of a piece of a quoted text; the whole value where escapes hide it.
pub(super) fn piece(
    source: &str,
    value: &Range<usize>,
    text: &str,
    at: &Range<usize>,
) -> Range<usize> {
    let raw = source.get(value.clone()).unwrap_or_default();
    match raw.find(text) {
        Some(start) => {
            let start = value.start + start;
            start + at.start..start + at.end
        }
        None => value.clone(),
    }
}
