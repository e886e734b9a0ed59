//! Expectations: what a figure must be, as a gate author writes it.
//!
//! The grammar, by example: `">= 38 tok/s"` · `"<= 130 s"` · `"= 8"` · `"between 150 and 400 tokens"` ·
//! `">= 1.05 x incumbent"` · `"<= 1.02 x run:certified"` · `"within 2 % of incumbent"` · `"within 0.02 of incumbent"` ·
//! `"in band of incumbent"` · `"above band of incumbent"` · `"below band of incumbent"` · `"is exact"`.

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
