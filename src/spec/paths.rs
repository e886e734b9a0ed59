//! `[paths.NAME]`.

use regex::Regex;

use super::faults::line_of;
use super::gate::{
    Count, CounterClaim, LineClaim, Part, PathSpec, RefutingLine, ResidentClaim, When,
};
use super::presets;
use super::read::Places;
use super::scalar;
use super::walk::{self, Ledger, Node, Walk};
use crate::dialect::{Dialect, Scope};
use toml::de::DeValue;

/// Reads the paths.
pub(super) fn read<'a>(
    root: &Walk<'a, '_>,
    ledger: &'a Ledger,
    source: &str,
    dialect: Option<&'static Dialect>,
    places: &mut Places,
) -> Vec<PathSpec> {
    let Some(table) = root.table("paths", "[paths]") else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    for (name, span, node) in table.entries() {
        let Some(walk) = walk::table(ledger, node, name, format!("[paths.{name}]")) else {
            continue;
        };
        places.insert(name.to_owned(), span.clone());
        let before = ledger.errors();
        let mut path = PathSpec {
            name: name.into(),
            announced: walk
                .tables("announced", "`announced`")
                .into_iter()
                .filter_map(|t| announced(t, ledger))
                .collect(),
            resident: walk
                .tables("resident", "`resident`")
                .into_iter()
                .flat_map(|t| resident(t, ledger))
                .collect(),
            moved: walk
                .tables("moved", "`moved`")
                .into_iter()
                .filter_map(|t| counter(t, ledger))
                .collect(),
            still: walk
                .tables("still", "`still`")
                .into_iter()
                .filter_map(|t| counter(t, ledger))
                .collect(),
            refuted: walk
                .tables("refuted", "`refuted`")
                .into_iter()
                .filter_map(|t| refuted(t, ledger))
                .collect(),
            line: line_of(source, span.start),
        };
        for preset in presets::presets(&walk, ledger, dialect) {
            presets::add(&mut path, preset);
        }
        walk.close(&[]);
        let unproven =
            path.announced.is_empty() && path.resident.is_empty() || path.moved.is_empty();
        if unproven && ledger.errors() == before {
            ledger.warn(
                span,
                format!("the path `{name}` can never be proven: a proof wants one item that moved and one that was announced or is resident"),
                if path.moved.is_empty() { "nothing moves" } else { "nothing is announced or resident" },
                Some("add `moved = { counter = … }` and `announced = { line = … }`".into()),
            );
        }
        paths.push(path);
    }
    paths
}

fn pattern(ledger: &Ledger, node: Node<'_, '_>, key: &str) -> Option<String> {
    let text = scalar::text(ledger, node, key)?;
    match Regex::new(&text) {
        Ok(_) => Some(text),
        Err(cause) => {
            let last = cause
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned();
            ledger.error(
                node.span(),
                format!("`{text}` is no regular expression: {last}"),
                "does not compile",
                Some("escape what is meant literally: `\\(`, `\\[`, `\\.`".into()),
            );
            None
        }
    }
}

/// The examples of a pattern must do what they say.
fn examples(
    ledger: &Ledger,
    table: &Walk<'_, '_>,
    pattern: &str,
    except: Option<&str>,
) -> Examples {
    let (matches, never) = (table.texts("matches"), table.texts("never"));
    let Ok(regex) = Regex::new(pattern) else {
        return Examples { matches, never };
    };
    let except = except.and_then(|e| Regex::new(e).ok());
    let hits =
        |line: &str| regex.is_match(line) && !except.as_ref().is_some_and(|e| e.is_match(line));
    for line in matches.iter().filter(|l| !hits(l)) {
        ledger.error(
            example(table, "matches", line),
            format!("`{pattern}` does not match its own example `{line}`"),
            "must match",
            None,
        );
    }
    for line in never.iter().filter(|l| hits(l)) {
        ledger.error(
            example(table, "never", line),
            format!("`{pattern}` matches `{line}`, which it must not"),
            "must not match",
            None,
        );
    }
    Examples { matches, never }
}

/// Place of an example in its list.
fn example(table: &Walk<'_, '_>, key: &'static str, line: &str) -> std::ops::Range<usize> {
    let list = table.get(key).and_then(|n| n.get_ref().as_array());
    let mut nodes = list.into_iter().flat_map(|l| l.iter());
    nodes
        .find(|n| n.get_ref().as_str() == Some(line))
        .map_or_else(|| table.place(key), |n| n.span())
}

struct Examples {
    matches: Vec<String>,
    never: Vec<String>,
}

fn announced(table: Walk<'_, '_>, ledger: &Ledger) -> Option<LineClaim> {
    let line = table
        .required("line", "'my kernel ACTIVE'")
        .and_then(|n| pattern(ledger, n, "line"));
    let on = table
        .get("on")
        .map_or(Some(Count::AtLeast(1)), |n| count(ledger, n));
    let when = when(&table, ledger).unwrap_or(When::SinceBoot);
    let shown = examples(ledger, &table, line.as_deref().unwrap_or("$^"), None);
    table.close(&[]);
    Some(LineClaim {
        part: Part::Message,
        pattern: line?,
        on: on?,
        when,
        matches: shown.matches,
        never: shown.never,
    })
}

fn count(ledger: &Ledger, node: Node<'_, '_>) -> Option<Count> {
    const WORDS: &[(&str, Scope)] = &[
        ("every rank", Scope::EveryRank),
        ("every node", Scope::EveryNode),
        ("once", Scope::Once),
    ];
    if let DeValue::Table(_) = node.get_ref() {
        let before = ledger.errors();
        let table = walk::table(ledger, node, "on", "`on`")?;
        let exactly = table.count("exactly", 0, 1_000_000);
        if exactly == Some(0) {
            ledger.error(
                table.place("exactly"),
                "a line that is seen exactly 0 times announces nothing",
                "never seen",
                Some("a line that must not be seen stands under `refuted`".into()),
            );
        }
        let exactly = exactly.map(Count::Exactly);
        let least = table.count("at_least", 1, 1_000_000).map(Count::AtLeast);
        table.close(&[]);
        if exactly.is_some() == least.is_some() && ledger.errors() == before {
            ledger.error(
                node.span(),
                "`on` takes one count",
                "here",
                Some("write `{ exactly = 8 }` or `{ at_least = 1 }`".into()),
            );
        }
        return exactly.or(least);
    }
    let text = scalar::text(ledger, node, "on")?;
    let found = WORDS
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, scope)| Count::Each(*scope));
    if found.is_none() {
        let help = walk::did_you_mean(&text, WORDS.iter().map(|w| w.0))
            .unwrap_or_else(|| "one of `\"every rank\"`, `\"every node\"`, `\"once\"`, `{ exactly = n }`, `{ at_least = n }`".into());
        ledger.error(
            node.span(),
            format!("`on` does not know `{text}`"),
            "unknown",
            Some(help),
        );
    }
    found
}

fn when(table: &Walk<'_, '_>, ledger: &Ledger) -> Option<When> {
    let node = table.get("when")?;
    let text = scalar::text(ledger, node, "when")?;
    match text.as_str() {
        "since boot" => Some(When::SinceBoot),
        "window" => Some(When::Window),
        _ => {
            let help = walk::did_you_mean(&text, ["since boot", "window"])
                .or_else(|| Some("`\"since boot\"` or `\"window\"`".into()));
            ledger.error(
                node.span(),
                format!("`when` does not know `{text}`"),
                "unknown",
                help,
            );
            None
        }
    }
}

fn resident(table: Walk<'_, '_>, ledger: &Ledger) -> Vec<ResidentClaim> {
    let mut claims = Vec::new();
    let (before, place) = (ledger.errors(), table.span.clone());
    let sha256 = table.get("sha256").and_then(|node| {
        let text = scalar::text(ledger, node, "sha256")?;
        let good = text.len() == 64
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !good {
            ledger.error(
                node.span(),
                "`sha256` takes 64 lower-case hex digits",
                "not a SHA-256",
                Some("`sha256sum FILE` prints it".into()),
            );
        }
        good.then_some(text)
    });
    let library = table.text("library");
    if library.is_none() && sha256.is_some() {
        ledger.error(
            table.place("sha256"),
            "`sha256` belongs to a `library`",
            "of what?",
            None,
        );
    }
    if let Some(name) = library {
        claims.push(ResidentClaim::Library { name, sha256 });
    }
    if let Some(env) = table.table("env", "`env`") {
        for (name, _, node) in env.entries() {
            if let Some(value) = scalar::text(ledger, node, name) {
                claims.push(ResidentClaim::Env {
                    name: name.into(),
                    value: Some(value),
                });
            }
        }
    }
    claims.extend(
        table
            .texts("unset")
            .into_iter()
            .map(|name| ResidentClaim::Env { name, value: None }),
    );
    table.close(&[]);
    if claims.is_empty() && ledger.errors() == before {
        ledger.error(walk::head(&place), "`resident` claims nothing", "empty", Some("write `{ library = \"x.so\" }`, `{ env = { NAME = \"1\" } }` or `{ unset = [\"NAME\"] }`".into()));
    }
    claims
}

fn counter(table: Walk<'_, '_>, ledger: &Ledger) -> Option<CounterClaim> {
    let selector = table
        .required("counter", "'calls_total{kernel=\"mine\"}'")
        .and_then(|node| {
            let text = scalar::text(ledger, node, "counter")?;
            if let Some(wrong) = selector_fault(&text) {
                ledger.error(
                    node.span(),
                    format!("`{text}` is no selector: {wrong}"),
                    "does not read",
                    Some("write `name{label=\"value\"}`".into()),
                );
                return None;
            }
            Some(text)
        });
    let rank_label = table.text("rank_label");
    let at_least = table
        .get("at_least")
        .and_then(|n| scalar::number(ledger, n, "at_least"))
        .unwrap_or(1.0);
    if at_least <= 0.0 {
        ledger.error(
            table.place("at_least"),
            "`at_least` is a movement, and one of nothing is none",
            "out of range",
            Some("write `at_least = 1`".into()),
        );
    }
    table.close(&[]);
    Some(CounterClaim {
        selector: selector?,
        rank_label,
        at_least,
    })
}

/// What is wrong with the shape of a selector; `evidence` reads it in full.
fn selector_fault(text: &str) -> Option<String> {
    // ASCII classes are spelt out: a series has no other letters, and the Unicode ones take a millisecond to compile.
    const SHAPE: &str = r#"^[ \t]*[A-Za-z_:][A-Za-z0-9_:.]*[ \t]*(?:\{[ \t]*(?:[A-Za-z_][A-Za-z0-9_]*[ \t]*(?:=~|!~|!=|=)[ \t]*"(?:[^"\\]|\\.)*"[ \t]*,?[ \t]*)*\})?[ \t]*$"#;
    let regex = Regex::new(SHAPE).expect("a constant that the tests compile");
    if regex.is_match(text) {
        let values = Regex::new(r#"[=!]~[ \t]*"((?:[^"\\]|\\.)*)""#)
            .expect("a constant that the tests compile");
        return values
            .captures_iter(text)
            .filter_map(|c| c.get(1))
            .find(|value| Regex::new(&value.as_str().replace("\\\\", "\\")).is_err())
            .map(|value| format!("`{}` is no regular expression", value.as_str()));
    }
    Some(match (text.contains('{'), text.contains('}')) {
        (true, false) => "the closing `}` is missing".into(),
        (false, true) => "the opening `{` is missing".into(),
        _ if text.contains('=') && !text.contains('"') => {
            "a label's value stands in double quotes".into()
        }
        _ => "a series name, then labels in braces".into(),
    })
}

fn refuted(table: Walk<'_, '_>, ledger: &Ledger) -> Option<RefutingLine> {
    let line = table
        .required("line", "'my kernel declined'")
        .and_then(|n| pattern(ledger, n, "line"));
    let except = table
        .get("except")
        .and_then(|n| pattern(ledger, n, "except"));
    let when = when(&table, ledger).unwrap_or(When::Window);
    let shown = examples(
        ledger,
        &table,
        line.as_deref().unwrap_or("$^"),
        except.as_deref(),
    );
    table.close(&[]);
    Some(RefutingLine {
        pattern: line?,
        except,
        when,
        matches: shown.matches,
        never: shown.never,
    })
}
