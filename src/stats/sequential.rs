//! When to look at the repeats so far, and how strict to be at each look.
//!
//! Judging at 5 % after every repeat until it passes is wrong 9.5 % of the time with four looks already. A schedule is
//! fixed before the first repeat: at each look both verdicts are open, in between the run just goes on.

use super::alpha::Alpha;
use super::bound::Decision;
use super::error::StatsError;
use super::signed_rank::{MIN_REPEATS, bound_rank};
use serde::{Deserialize, Serialize};

/// One look: after `n` repeats, at level `alpha`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Repeats in all at this look.
    pub n: usize,
    /// The level of each one-sided bound at this look.
    pub alpha: Alpha,
}

/// All looks of a gate, in order of n.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    looks: Vec<Look>,
}

/// What to do after a number of repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Make more repeats, up to this many in all.
    GoOn {
        /// Repeats in all at the next look.
        until: usize,
    },
    /// Stop with this decision.
    Stop(Decision),
}

impl Schedule {
    /// Looks at 8, 12 and 20 with levels .004, .014 and .041: 4.6 % false PASS in all (60,000 simulated normal runs), and
    /// no look at 5, where the strictest possible bound is 3.1 % already.
    pub fn standard() -> Self {
        let looks = [(8, 0.004), (12, 0.014), (20, 0.041)]
            .map(|(n, a)| Look {
                n,
                alpha: Alpha::literal(a),
            })
            .to_vec();
        Self { looks }
    }

    /// One look after `n` repeats.
    pub fn fixed(n: usize, alpha: Alpha) -> Self {
        Self {
            looks: vec![Look { n, alpha }],
        }
    }

    /// Looks for `repeats = { min, max }`: at min, at the geometric middle, and at max.
    ///
    /// By the look at n, `alpha · (n/max)³` is spent in all (near to O'Brien–Fleming), and each look gets what was
    /// spent since the one before. The levels sum to alpha, so false PASS (and false FAIL) stays at or below alpha
    /// whatever the looks have to do with each other. The first look gets at least the level of "all on one side" when
    /// that costs no more than a tenth of alpha; a look whose level no sample of that size can reach is left out, and
    /// what it would have spent goes to the next.
    pub fn between(min: usize, max: usize, alpha: Alpha) -> Result<Self, StatsError> {
        if min < MIN_REPEATS || max < min {
            return Err(StatsError::OutOfRange {
                what: "`repeats`",
                value: if max < min { max as f64 } else { min as f64 },
                wants: "`min` of at least 5, and `max` not below `min`",
            });
        }
        let middle = ((min * max) as f64).sqrt().round() as usize;
        let mut sizes = vec![min, middle, max];
        sizes.dedup();
        let mut looks: Vec<Look> = Vec::new();
        let mut spent = 0.0;
        for n in sizes {
            let by_now = alpha.value() * (n as f64 / max as f64).powi(3);
            let one_sided = 0.5_f64.powi(n as i32);
            let cheap = n < max && looks.is_empty() && one_sided <= alpha.value() / 10.0;
            let share = (by_now - spent).max(if cheap { one_sided } else { 0.0 });
            let level = Alpha::literal(share);
            if share > 0.0 && bound_rank(n, level).is_some() {
                looks.push(Look { n, alpha: level });
                spent += share;
            }
        }
        if looks.is_empty() {
            return Err(StatsError::TooFew {
                what: "repeats",
                have: max,
                need: super::signed_rank::observations_needed(alpha),
            });
        }
        Ok(Self { looks })
    }

    /// The looks in order.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The look that falls on exactly `n` repeats, if one does.
    pub fn look_at(&self, n: usize) -> Option<Look> {
        self.looks.iter().copied().find(|l| l.n == n)
    }

    /// Repeats in all at the last look.
    pub fn most(&self) -> usize {
        self.looks.last().map_or(0, |l| l.n)
    }

    /// What to do after `n` repeats that gave `decision` at the level of the look at `n`.
    pub fn next(&self, n: usize, decision: Decision) -> Next {
        let on_look = self.look_at(n).is_some();
        let until = self.looks.iter().map(|l| l.n).find(|&at| at > n);
        match (decision, until) {
            (Decision::Straddles, Some(until)) => Next::GoOn { until },
            // Between looks no decision counts: that would be one more look.
            (_, Some(until)) if !on_look => Next::GoOn { until },
            _ if on_look => Next::Stop(decision),
            _ => Next::Stop(Decision::Straddles),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_any_range_sum_to_alpha_or_less_and_each_look_can_decide() {
        for min in 5..=20 {
            for max in min..=60 {
                let schedule = Schedule::between(min, max, Alpha::FIVE_PERCENT).unwrap();
                let sum: f64 = schedule.looks().iter().map(|l| l.alpha.value()).sum();
                assert!(sum <= 0.05 + 1e-12, "{min}..{max}: {sum}");
                assert_eq!(schedule.most(), max);
                for look in schedule.looks() {
                    assert!(
                        bound_rank(look.n, look.alpha).is_some(),
                        "{min}..{max}: {look:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_range_of_one_number_is_one_look_at_alpha() {
        let one = Schedule::between(7, 7, Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(one, Schedule::fixed(7, Alpha::FIVE_PERCENT));
    }

    #[test]
    fn eight_to_twenty_looks_at_eight_for_the_price_of_all_on_one_side() {
        let schedule = Schedule::between(8, 20, Alpha::FIVE_PERCENT).unwrap();
        let first = schedule.look_at(8).unwrap();
        assert_eq!(first.alpha.value(), 1.0 / 256.0);
        assert_eq!(schedule.looks().len(), 3);
    }

    #[test]
    fn five_to_ten_does_not_look_at_five() {
        let schedule = Schedule::between(5, 10, Alpha::FIVE_PERCENT).unwrap();
        assert!(schedule.look_at(5).is_none());
    }

    #[test]
    fn ranges_that_can_decide_nothing_are_refused() {
        assert!(Schedule::between(4, 8, Alpha::FIVE_PERCENT).is_err());
        assert!(Schedule::between(9, 8, Alpha::FIVE_PERCENT).is_err());
        assert!(matches!(
            Schedule::between(5, 5, Alpha::literal(0.01)),
            Err(StatsError::TooFew { need: 7, .. })
        ));
    }

    #[test]
    fn between_looks_no_decision_stops_the_run() {
        let schedule = Schedule::standard();
        assert_eq!(schedule.next(5, Decision::Clears), Next::GoOn { until: 8 });
        assert_eq!(
            schedule.next(8, Decision::Clears),
            Next::Stop(Decision::Clears)
        );
        assert_eq!(
            schedule.next(8, Decision::Straddles),
            Next::GoOn { until: 12 }
        );
        assert_eq!(
            schedule.next(20, Decision::Straddles),
            Next::Stop(Decision::Straddles)
        );
        assert_eq!(
            schedule.next(21, Decision::Clears),
            Next::Stop(Decision::Straddles)
        );
    }
}
