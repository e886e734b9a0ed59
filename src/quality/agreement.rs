//! How far two answers to one prompt agree, and how often answers differ.

use std::collections::HashSet;
use std::hash::Hash;

/// How two answers part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// They are equal to the end.
    Equal,
    /// One is the beginning of the other.
    Prefix,
    /// They differ at a place that both have.
    Diverged,
}

/// How far two answers agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Items (characters or tokens) that both have in common from the front.
    pub common: usize,
    /// What comes then.
    pub end: End,
}

/// Agreement in characters.
pub fn in_characters(left: &str, right: &str) -> Agreement {
    of(left.chars(), right.chars())
}

/// Agreement in tokens.
pub fn in_tokens(left: &[u32], right: &[u32]) -> Agreement {
    of(left.iter(), right.iter())
}

fn of<T: PartialEq>(left: impl Iterator<Item = T>, right: impl Iterator<Item = T>) -> Agreement {
    let (mut left, mut right) = (left, right);
    let mut common = 0;
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => common += 1,
            (Some(_), Some(_)) => {
                return Agreement {
                    common,
                    end: End::Diverged,
                };
            }
            (None, None) => {
                return Agreement {
                    common,
                    end: End::Equal,
                };
            }
            _ => {
                return Agreement {
                    common,
                    end: End::Prefix,
                };
            }
        }
    }
}

/// How many of these answers are different ones.
pub fn unique<T: Eq + Hash>(answers: impl IntoIterator<Item = T>) -> usize {
    answers.into_iter().collect::<HashSet<T>>().len()
}

/// The first place where two answers part, with what stands around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// Characters before it.
    pub at: usize,
    /// The last characters in common.
    pub before: String,
    /// How the left one goes on.
    pub left: String,
    /// How the right one goes on.
    pub right: String,
}

/// Characters shown on each side of a divergence: about one line.
const SHOWN: usize = 24;

/// The first place where two texts part; none when they are equal.
pub fn divergence(left: &str, right: &str) -> Option<Divergence> {
    let agreement = in_characters(left, right);
    if agreement.end == End::Equal {
        return None;
    }
    let at = agreement.common;
    let next = |text: &str| text.chars().skip(at).take(SHOWN).collect::<String>();
    Some(Divergence {
        at,
        before: left
            .chars()
            .take(at)
            .skip(at.saturating_sub(SHOWN))
            .collect(),
        left: next(left),
        right: next(right),
    })
}

/// Rate of divergence per item: divergences over items that were gone through in common.
///
/// This is the maximum-likelihood rate of an exponential law with censoring: a pair that never parted counts with its whole
/// length and no divergence. Absent when nothing was gone through.
pub fn hazard(pairs: &[Agreement]) -> Option<f64> {
    let parted = pairs.iter().filter(|p| p.end != End::Equal).count();
    let exposed: usize = pairs
        .iter()
        .map(|p| p.common + usize::from(p.end != End::Equal))
        .sum();
    (exposed > 0).then(|| parted as f64 / exposed as f64)
}

/// Median and smallest common beginning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Smallest.
    pub least: usize,
    /// Median; the mean of the two middle ones for an even number.
    pub median: f64,
    /// Pairs that never parted.
    pub equal: usize,
}

/// Median and smallest common beginning of several pairs; absent without pairs.
pub fn spread(pairs: &[Agreement]) -> Option<Spread> {
    let mut common: Vec<usize> = pairs.iter().map(|p| p.common).collect();
    common.sort_unstable();
    let least = *common.first()?;
    let half = common.len() / 2;
    let median = match common.len() % 2 {
        1 => common[half] as f64,
        _ => (common[half - 1] + common[half]) as f64 / 2.0,
    };
    Some(Spread {
        least,
        median,
        equal: pairs.iter().filter(|p| p.end == End::Equal).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_not_bytes() {
        assert_eq!(
            in_characters("日本語", "日本人"),
            Agreement {
                common: 2,
                end: End::Diverged
            }
        );
        assert_eq!(
            in_characters("ab", "ab"),
            Agreement {
                common: 2,
                end: End::Equal
            }
        );
        assert_eq!(
            in_characters("ab", "abc"),
            Agreement {
                common: 2,
                end: End::Prefix
            }
        );
        assert_eq!(
            in_characters("", ""),
            Agreement {
                common: 0,
                end: End::Equal
            }
        );
    }

    #[test]
    fn tokens_are_compared_by_id() {
        assert_eq!(
            in_tokens(&[1, 2, 3], &[1, 2, 4]),
            Agreement {
                common: 2,
                end: End::Diverged
            }
        );
    }

    #[test]
    fn unique_answers_are_counted_once() {
        assert_eq!(unique(["a", "b", "a"]), 2);
        assert_eq!(unique::<&str>([]), 0);
    }

    #[test]
    fn a_divergence_shows_both_sides() {
        let found = divergence("the river is wide", "the river is deep").expect("they part");
        assert_eq!((found.at, found.before.as_str()), (13, "the river is "));
        assert_eq!(
            (found.left.as_str(), found.right.as_str()),
            ("wide", "deep")
        );
        assert_eq!(divergence("same", "same"), None);
        assert_eq!(
            divergence("same", "sam").map(|d| d.right),
            Some(String::new())
        );
    }

    #[test]
    fn the_hazard_counts_what_never_parted_as_exposure() {
        let parted = Agreement {
            common: 99,
            end: End::Diverged,
        };
        let equal = Agreement {
            common: 100,
            end: End::Equal,
        };
        assert_eq!(hazard(&[parted, equal]), Some(0.005));
        assert_eq!(hazard(&[equal]), Some(0.0));
        assert_eq!(hazard(&[]), None);
    }

    #[test]
    fn the_spread_is_median_and_least() {
        let of = |common| Agreement {
            common,
            end: End::Diverged,
        };
        assert_eq!(
            spread(&[of(15), of(136), of(40)]),
            Some(Spread {
                least: 15,
                median: 40.0,
                equal: 0
            })
        );
        assert_eq!(spread(&[of(1), of(2)]).map(|s| s.median), Some(1.5));
        assert_eq!(spread(&[]), None);
    }
}
