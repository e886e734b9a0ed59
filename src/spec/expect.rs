//! Expectations: what a figure must be, as a gate author writes it.
//!
//! The grammar, by example: `">= 38 tok/s"` · `"<= 130 s"` · `"= 8"` · `"between 150 and 400 tokens"` ·
//! `">= 1.05 x incumbent"` · `"<= 1.02 x run:certified"` · `"within 2 % of incumbent"` · `"within 0.02 of incumbent"` ·
//! `"in band of incumbent"` · `"above band of incumbent"` · `"below band of incumbent"` · `"is exact"`.

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
}

fn wrong<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong {
        message: message.into(),
        help: Some(help.into()),
    })
}

/// Reads an expectation of a figure.
///
/// # Errors
/// What does not read, with the form that would.
pub fn parse(text: &str, figure: &FigureKind) -> Result<Limit, Wrong> {
    let text = text.trim();
    if let Some(rest) = strip_any(text, &[">=", "≥"]) {
        return compared(rest, figure, Limit::AtLeast, Limit::RatioAtLeast);
    }
    if let Some(rest) = strip_any(text, &["<=", "≤"]) {
        return compared(rest, figure, Limit::AtMost, Limit::RatioAtMost);
    }
    if text.starts_with('>') || text.starts_with('<') {
        return wrong(
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
        if let Some(rest) = text.strip_prefix(words) {
            return Ok(made(reference(rest)?));
        }
    }
    let word = text.strip_prefix("is ").unwrap_or(text).trim();
    if !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || c == '_') {
        return Ok(Limit::Is(word.to_owned()));
    }
    wrong(
        format!("`{text}` does not read as an expectation"),
        "write `>= 38 tok/s`, `<= 130 s`, `= 8`, `between 1 and 2`, `>= 1.05 x BUILD`, `within 2 % of BUILD`, `in band of BUILD` or `is WORD`",
    )
}

type Banded = fn(Reference) -> Limit;

const BANDS: &[(&str, Banded)] = &[
    ("in band of ", Limit::InBand),
    ("above band of ", Limit::AboveBand),
    ("below band of ", Limit::BelowBand),
];

fn strip_any<'t>(text: &'t str, heads: &[&str]) -> Option<&'t str> {
    heads.iter().find_map(|head| text.strip_prefix(head))
}

/// A quantity, or a ratio to a reference: `1.05 x incumbent`.
fn compared(
    text: &str,
    figure: &FigureKind,
    absolute: fn(f64) -> Limit,
    relative: fn(f64, Reference) -> Limit,
) -> Result<Limit, Wrong> {
    for sign in [" x ", " × ", "x ", "× "] {
        if let Some((factor, name)) = text.split_once(sign)
            && let Ok(factor) = digits(factor)
        {
            return Ok(relative(factor, reference(name)?));
        }
    }
    quantity(text, figure).map(absolute)
}

fn within(text: &str, figure: &FigureKind) -> Result<Limit, Wrong> {
    let Some((amount, name)) = text.split_once(" of ") else {
        return wrong(
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

fn reference(text: &str) -> Result<Reference, Wrong> {
    let name = text.trim();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return wrong(
            format!("`{name}` is no name of a build"),
            "write the build's name, or `run:NAME`",
        );
    }
    Ok(match name.strip_prefix("run:") {
        Some(run) => Reference::Run(run.to_owned()),
        None => Reference::Build(name.to_owned()),
    })
}

/// A number with the figure's unit.
fn quantity(text: &str, figure: &FigureKind) -> Result<f64, Wrong> {
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || "._,+-eE".contains(c)))
        .unwrap_or(text.len());
    // An `e` that begins a unit is no exponent.
    let (number, unit) = text.split_at(split);
    let value = digits(number)?;
    let unit = unit.trim();
    if unit == figure.unit {
        return Ok(value);
    }
    if let Some((_, factor)) = figure.unit_aliases.iter().find(|(name, _)| *name == unit) {
        return Ok(value * factor);
    }
    if unit.is_empty() {
        return wrong(
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
    wrong(
        format!(
            "`{unit}` is not the unit of `{}`, which {right}",
            figure.name
        ),
        format!("write `{number} {}`", figure.unit)
            .trim()
            .to_owned(),
    )
}

/// A number whose unit stands elsewhere, or its own.
fn plain(text: &str, figure: &FigureKind) -> Result<f64, Wrong> {
    digits(text).or_else(|_| quantity(text, figure))
}

/// Digits with `_` or `,` between thousands.
fn digits(text: &str) -> Result<f64, Wrong> {
    let text = text.trim();
    let clean: String = text.chars().filter(|c| *c != '_' && *c != ',').collect();
    match clean.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => wrong(
            format!("`{text}` is no number"),
            "write digits, as in `1_000` or `0.5`",
        ),
    }
}
