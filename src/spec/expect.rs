//! Expectations: what a figure must be, as a gate author writes it.
//!
//! The grammar, by example: `">= 38 tok/s"` · `"<= 130 s"` · `"= 8"` · `"between 150 and 400 tokens"` ·
//! `">= 1.05 x incumbent"` · `"<= 1.02 x run:certified"` · `"within 2 % of incumbent"` · `"within 0.02 of incumbent"` ·
//! `"in band of incumbent"` · `"above band of incumbent"` · `"below band of incumbent"` · `"is exact"`.

use std::ops::Range;

use super::kind::FigureKind;

/// One figure held to one limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Cell of the check that it speaks of (`code/1`); absent: every cell.
    pub cell: Option<String>,
    /// Figure name.
    pub figure: String,
    /// Limit.
    pub limit: Limit,
    /// The author's words, for reports.
    pub text: String,
    /// Line of the gate file.
    pub line: usize,
}

/// A limit.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// `>= 38 tok/s`: in the figure's own unit.
    AtLeast(f64),
    /// `<= 130 s`.
    AtMost(f64),
    /// `= 8`: exactly.
    Exactly(f64),
    /// `between 150 and 400 tokens`: both ends allowed.
    Between(f64, f64),
    /// `>= 1.05 x incumbent`.
    RatioAtLeast(f64, Reference),
    /// `<= 1.05 x incumbent`.
    RatioAtMost(f64, Reference),
    /// `within 2 % of incumbent`: the fraction.
    WithinFraction(f64, Reference),
    /// `within 0.02 of incumbent`: in the figure's own unit.
    WithinAmount(f64, Reference),
    /// `in band of incumbent`.
    InBand(Reference),
    /// `above band of incumbent`: separated upwards.
    AboveBand(Reference),
    /// `below band of incumbent`: separated downwards.
    BelowBand(Reference),
    /// `is exact`: a word that the kind knows.
    Is(String),
}

/// What a figure is compared with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// Another build of this run.
    Build(String),
    /// A recorded run, by its name under `[runs]`.
    Run(String),
}

impl Limit {
    /// What it compares with; absent for an absolute limit.
    pub fn reference(&self) -> Option<&Reference> {
        match self {
            Self::AtLeast(_)
            | Self::AtMost(_)
            | Self::Exactly(_)
            | Self::Between(..)
            | Self::Is(_) => None,
            Self::RatioAtLeast(_, r)
            | Self::RatioAtMost(_, r)
            | Self::WithinFraction(_, r)
            | Self::WithinAmount(_, r)
            | Self::InBand(r)
            | Self::AboveBand(r)
            | Self::BelowBand(r) => Some(r),
        }
    }
}

/// Why an expectation does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
    /// Bytes of the expectation's text that are at fault.
    pub at: Range<usize>,
}

/// A fault in a piece of the text; [`parse`] turns the piece into its place.
struct Slip<'t> {
    piece: &'t str,
    message: String,
    help: String,
}

type Parsed<'t, T> = Result<T, Slip<'t>>;

fn wrong<'t, T>(
    piece: &'t str,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Parsed<'t, T> {
    Err(Slip {
        piece,
        message: message.into(),
        help: help.into(),
    })
}

/// Place of a piece that was cut out of a text.
fn place(piece: &str, text: &str) -> Range<usize> {
    let start = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    // An empty piece (a number that is missing) is pointed at where it should stand.
    let start = start.min(text.len());
    start..(start + piece.len()).min(text.len())
}

/// Reads an expectation of a figure.
///
/// # Errors
/// What does not read and where it stands, with the form that would.
pub fn parse(text: &str, figure: &FigureKind) -> Result<Limit, Wrong> {
    limit(text.trim(), figure).map_err(|slip| Wrong {
        at: place(slip.piece, text),
        message: slip.message,
        help: Some(slip.help),
    })
}

fn limit<'t>(text: &'t str, figure: &FigureKind) -> Parsed<'t, Limit> {
    if let Some(rest) = strip_any(text, &[">=", "≥"]) {
        return compared(rest, figure, Limit::AtLeast, Limit::RatioAtLeast);
    }
    if let Some(rest) = strip_any(text, &["<=", "≤"]) {
        return compared(rest, figure, Limit::AtMost, Limit::RatioAtMost);
    }
    if text.starts_with(['>', '<']) {
        return wrong(
            text.get(..1).unwrap_or(text),
            format!("`{text}`: a bound is never exactly on its limit"),
            "write `>=` or `<=`",
        );
    }
    if let Some(rest) = strip_any(text, &["==", "="]) {
        return Ok(Limit::Exactly(quantity(rest, figure)?));
    }
    if let Some(rest) = text.strip_prefix("between ") {
        let Some((low, high)) = rest.split_once(" and ") else {
            return wrong(
                text,
                format!("`{text}` has no second end"),
                "write `between 150 and 400 tokens`",
            );
        };
        return Ok(Limit::Between(plain(low, figure)?, quantity(high, figure)?));
    }
    if let Some(rest) = text.strip_prefix("within ") {
        return within(rest, figure);
    }
    for (words, made) in BANDS {
        let rest = text.strip_prefix(words);
        if let Some(rest) = rest.filter(|r| r.is_empty() || r.starts_with(char::is_whitespace)) {
            return Ok(made(reference(rest)?));
        }
    }
    let word = text.strip_prefix("is ").unwrap_or(text).trim();
    if word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        return Ok(Limit::Is(word.to_owned()));
    }
    let message = if text.is_empty() {
        "an expectation is empty".to_owned()
    } else {
        format!("`{text}` does not read as an expectation")
    };
    wrong(
        text,
        message,
        "write `>= 38 tok/s`, `<= 130 s`, `= 8`, `between 1 and 2`, `>= 1.05 x BUILD`, `within 2 % of BUILD`, `in band of BUILD` or `is WORD`",
    )
}

type Banded = fn(Reference) -> Limit;

const BANDS: &[(&str, Banded)] = &[
    ("in band of", Limit::InBand),
    ("above band of", Limit::AboveBand),
    ("below band of", Limit::BelowBand),
];

fn strip_any<'t>(text: &'t str, heads: &[&str]) -> Option<&'t str> {
    heads.iter().find_map(|head| text.strip_prefix(head))
}

/// A quantity, or a ratio to a reference: `1.05 x incumbent`.
fn compared<'t>(
    text: &'t str,
    figure: &FigureKind,
    absolute: fn(f64) -> Limit,
    relative: fn(f64, Reference) -> Limit,
) -> Parsed<'t, Limit> {
    let (number, rest) = front(text);
    let Some(name) = strip_any(rest, &["x", "×"]) else {
        return quantity(text, figure).map(absolute);
    };
    // `x` begins no unit, but a figure may get one some day: `2 xy` is no ratio.
    if !(name.is_empty() || name.starts_with(char::is_whitespace)) {
        return quantity(text, figure).map(absolute);
    }
    Ok(relative(digits(number)?, reference(name)?))
}

fn within<'t>(text: &'t str, figure: &FigureKind) -> Parsed<'t, Limit> {
    let Some((amount, name)) = text.split_once(" of ") else {
        return wrong(
            text,
            format!("`within {text}` names nothing to be near to"),
            "write `within 2 % of incumbent`",
        );
    };
    let name = reference(name)?;
    if let Some(percent) = amount.trim().strip_suffix('%') {
        return Ok(Limit::WithinFraction(digits(percent)? / 100.0, name));
    }
    Ok(Limit::WithinAmount(quantity(amount, figure)?, name))
}

fn reference(text: &str) -> Parsed<'_, Reference> {
    let name = text.trim();
    if name.is_empty() {
        return wrong(
            name,
            "the build to compare with is missing",
            "write the build's name, or `run:NAME`",
        );
    }
    if name.contains(char::is_whitespace) {
        return wrong(
            name,
            format!("`{name}` is no name of a build"),
            "write the build's name, or `run:NAME`",
        );
    }
    Ok(match name.strip_prefix("run:") {
        Some(run) => Reference::Run(run.to_owned()),
        None => Reference::Build(name.to_owned()),
    })
}

/// The number at the front and the rest, both trimmed. An `e` is an exponent only before a digit or a sign.
fn front(text: &str) -> (&str, &str) {
    let text = text.trim();
    let bytes = text.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let sign = |i: usize| bytes.get(i).is_some_and(|b| b"+-".contains(b));
    let exponent = |i: usize| i > 0 && (digit(i + 1) || (sign(i + 1) && digit(i + 2)));
    let end = (0..bytes.len())
        .find(|&i| match bytes.get(i) {
            Some(b'0'..=b'9' | b'.' | b'_' | b',') => false,
            Some(b'+' | b'-') => i > 0 && !matches!(bytes.get(i - 1), Some(b'e' | b'E')),
            Some(b'e' | b'E') => !exponent(i),
            _ => true,
        })
        .unwrap_or(bytes.len());
    let (number, rest) = text.split_at(end);
    (number.trim(), rest.trim())
}

/// A number with the figure's unit.
fn quantity<'t>(text: &'t str, figure: &FigureKind) -> Parsed<'t, f64> {
    let text = text.trim();
    let (number, unit) = front(text);
    if number.is_empty() {
        let found = if text.is_empty() { "nothing" } else { text };
        return wrong(
            text,
            format!("a number stands here, not `{found}`"),
            format!("write digits, as in `38 {}`", figure.unit)
                .trim()
                .to_owned(),
        );
    }
    let value = digits(number)?;
    if unit == figure.unit {
        return Ok(value);
    }
    if let Some((_, factor)) = figure.unit_aliases.iter().find(|(name, _)| *name == unit) {
        return Ok(value * factor);
    }
    if unit.is_empty() {
        return wrong(
            text,
            format!("`{text}` has no unit"),
            format!(
                "`{}` is in {}: write `{number} {}`",
                figure.name, figure.unit, figure.unit
            ),
        );
    }
    let right = if figure.unit.is_empty() {
        "is a pure number".to_owned()
    } else {
        format!("is in {}", figure.unit)
    };
    let write = format!("{number} {}", figure.unit);
    wrong(
        unit,
        format!(
            "`{unit}` is not the unit of `{}`, which {right}",
            figure.name
        ),
        format!("write `{}`", write.trim()),
    )
}

/// A number whose unit stands elsewhere, or its own.
fn plain<'t>(text: &'t str, figure: &FigureKind) -> Parsed<'t, f64> {
    digits(text).or_else(|_| quantity(text, figure))
}

/// Digits with `_` or `,` between thousands.
fn digits(text: &str) -> Parsed<'_, f64> {
    let text = text.trim();
    // `1,05` is five hundredths to half of the world: read as thousands it would be 105.
    if text.contains(',') && !thousands(text) {
        return wrong(
            text,
            format!("`{text}`: a comma stands between thousands only"),
            format!("write `{}` for a fraction", text.replacen(',', ".", 1)),
        );
    }
    let clean: String = text.chars().filter(|c| *c != '_' && *c != ',').collect();
    if text.is_empty() {
        return wrong(
            text,
            "a number is missing",
            "write digits, as in `1_000` or `0.5`",
        );
    }
    match clean.parse::<f64>() {
        Ok(x) if x.is_finite() && clean.bytes().any(|b| b.is_ascii_digit()) => Ok(x),
        _ => wrong(
            text,
            format!("`{text}` is no number"),
            "write digits, as in `1_000` or `0.5`",
        ),
    }
}

/// Whether the commas of a number part it into threes: `391,000`, `1,000.5`.
fn thousands(text: &str) -> bool {
    let whole = text.split('.').next().unwrap_or_default();
    let mut groups = whole.trim_start_matches(['+', '-']).split(',');
    let first = groups.next().unwrap_or_default();
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    (1..=3).contains(&first.len())
        && digits(first)
        && groups.all(|g| g.len() == 3 && digits(g))
        && text.split('.').skip(1).all(|part| !part.contains(','))
}
