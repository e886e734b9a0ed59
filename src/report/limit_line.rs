//! Where a limit lies on the scale of its figure, from the author's own words, to draw it and to name its unit.

use crate::judge::figure::Figure;

/// Kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// In the figure's own unit.
    Own,
    /// As a ratio to a reference.
    Ratio,
    /// As a difference from a reference, in the figure's own unit.
    Difference,
    /// Beside a reference's band, or a word: nothing to draw.
    None,
}

/// A limit on the scale of its figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LimitLine {
    /// Its scale.
    pub(super) scale: Scale,
    /// Name of the reference that it compares with.
    pub(super) reference: Option<String>,
    ends: Vec<f64>,
}

impl LimitLine {
    /// Reads a limit as the gate file writes it; what does not read has nothing to draw.
    pub(super) fn of(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |index: usize| words.get(index).and_then(|w| parse(w));
        let reference = |index: usize| words.get(index).map(ToString::to_string);
        let none = Self { scale: Scale::None, reference: None, ends: Vec::new() };
        match words.as_slice() {
            ["in" | "above" | "below", "band", "of", name, ..] => Self { reference: Some((*name).into()), ..none },
            [">=" | "<=", _, "x" | "×", ..] => Self {
                scale: Scale::Ratio,
                reference: reference(3),
                ends: number(1).into_iter().collect(),
            },
            [">=" | "<=" | "=", ..] => Self { scale: Scale::Own, ends: number(1).into_iter().collect(), ..none },
            ["between", _, "and", ..] => {
                Self { scale: Scale::Own, ends: number(1).into_iter().chain(number(3)).collect(), ..none }
            }
            ["within", _, "%", "of", name, ..] => Self {
                scale: Scale::Ratio,
                reference: Some((*name).into()),
                ends: number(1).map(|p| vec![1.0 - p / 100.0, 1.0 + p / 100.0]).unwrap_or_default(),
            },
            ["within", _, "of", name, ..] => Self {
                scale: Scale::Difference,
                reference: Some((*name).into()),
                ends: number(1).map(|d| vec![-d, d]).unwrap_or_default(),
            },
            _ => none,
        }
    }

    /// Its ends in the figure's own unit; empty where there is nothing to draw.
    pub(super) fn positions(&self, figure: &Figure) -> Vec<f64> {
        let base = || {
            let against = figure.against.iter().find(|a| Some(&a.build) == self.reference.as_ref());
            against.or(figure.against.first()).map(|a| a.value)
        };
        let moved: Vec<f64> = match self.scale {
            Scale::Own => self.ends.clone(),
            Scale::Ratio => base().map(|b| self.ends.iter().map(|e| e * b).collect()).unwrap_or_default(),
            Scale::Difference => base().map(|b| self.ends.iter().map(|e| e + b).collect()).unwrap_or_default(),
            Scale::None => Vec::new(),
        };
        moved.into_iter().filter(|p| p.is_finite()).collect()
    }

    /// Unit of a margin to it.
    pub(super) fn unit<'a>(&self, figure: &'a Figure) -> &'a str {
        if self.scale == Scale::Ratio { "×" } else { &figure.unit }
    }
}

fn parse(word: &str) -> Option<f64> {
    word.replace(['_', ','], "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Scale, Option<String>, Vec<f64>) {
        let line = LimitLine::of(text);
        (line.scale, line.reference, line.ends)
    }

    #[test]
    fn every_spelling_of_the_grammar_reads() {
        let incumbent = Some("incumbent".to_owned());
        assert_eq!(read(">= 38 tok/s"), (Scale::Own, None, vec![38.0]));
        assert_eq!(read("<= 130 s"), (Scale::Own, None, vec![130.0]));
        assert_eq!(read("= 8"), (Scale::Own, None, vec![8.0]));
        assert_eq!(read("between 150 and 400 tokens"), (Scale::Own, None, vec![150.0, 400.0]));
        assert_eq!(read(">= 1.05 x incumbent"), (Scale::Ratio, incumbent.clone(), vec![1.05]));
        assert_eq!(read("<= 1.02 x run:certified"), (Scale::Ratio, Some("run:certified".into()), vec![1.02]));
        assert_eq!(read("within 2 % of incumbent"), (Scale::Ratio, incumbent.clone(), vec![0.98, 1.02]));
        assert_eq!(read("within 0.02 of incumbent"), (Scale::Difference, incumbent.clone(), vec![-0.02, 0.02]));
        assert_eq!(read("in band of incumbent"), (Scale::None, incumbent, vec![]));
        assert_eq!(read("is exact"), (Scale::None, None, vec![]));
        assert_eq!(read(">= 380_000 tokens"), (Scale::Own, None, vec![380_000.0]));
    }

    #[test]
    fn what_does_not_read_draws_nothing() {
        for text in ["", ">=", ">= fast", "within", "between 1 and"] {
            let line = LimitLine::of(text);
            assert!(line.ends.len() <= 1, "{text}");
        }
    }
}
