//! Whether a text is what greedy decoding would have written, by the logprobs that a scorer gives it.

use std::fmt;

/// What a scorer said of one token.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Scored {
    /// Natural-log probability.
    pub logprob: Option<f64>,
    /// Rank among all tokens, from 1, where told.
    pub rank: Option<u32>,
    /// Natural-log probability of the likeliest token at this place, where told.
    pub best: Option<f64>,
}

/// What a token is beside the likeliest one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// It is the likeliest.
    First,
    /// It is so many nats less likely than the likeliest.
    Behind(f64),
    /// It is not the likeliest, and nothing tells by how much.
    BehindUnknown,
    /// Nothing tells.
    Unknown,
}

impl Scored {
    /// What the token is beside the likeliest one; a tie with it is first.
    pub fn standing(&self) -> Standing {
        let gap = self.best.zip(self.logprob).map(|(best, own)| best - own);
        match (self.rank, gap) {
            (Some(1), _) => Standing::First,
            (_, Some(gap)) if gap <= 0.0 => Standing::First,
            (_, Some(gap)) if gap > 0.0 => Standing::Behind(gap),
            (Some(_), _) => Standing::BehindUnknown,
            (None, _) => Standing::Unknown,
        }
    }
}

/// A token that greedy decoding would not have written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departure {
    /// Its place in the answer, from 0.
    pub at: usize,
    /// What the scorer said.
    pub scored: Scored,
    /// Nats behind the likeliest.
    pub gap: f64,
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} of the answer", self.at)?;
        if let Some(rank) = self.scored.rank {
            write!(f, ", rank {rank}")?;
        }
        match (self.scored.logprob, self.scored.best) {
            (Some(own), Some(best)) => {
                write!(f, ", logprob {own:.3} where the likeliest has {best:.3}")
            }
            _ => write!(f, ", {:.3} nats behind the likeliest", self.gap),
        }
    }
}

/// What an audit of one answer found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Audit {
    /// Tokens of the answer.
    pub tokens: usize,
    /// Of these, the likeliest of their places.
    pub first: usize,
    /// Largest distance from the likeliest in nats, 0 where every token is first.
    pub worst_gap: f64,
    /// The first token that is further behind than allowed.
    pub departure: Option<Departure>,
    /// How many are.
    pub departures: usize,
    /// Tokens of which nothing tells how far behind they are.
    pub unknown: usize,
}

/// Audits an answer; tokens up to `allowed` nats behind the likeliest are near ties.
pub fn audit(answer: impl IntoIterator<Item = Scored>, allowed: f64) -> Audit {
    let mut audit = Audit::default();
    for (at, scored) in answer.into_iter().enumerate() {
        audit.tokens += 1;
        match scored.standing() {
            Standing::First => audit.first += 1,
            Standing::Behind(gap) => {
                audit.worst_gap = audit.worst_gap.max(gap);
                if gap > allowed {
                    audit.departures += 1;
                    audit.departure.get_or_insert(Departure { at, scored, gap });
                }
            }
            Standing::BehindUnknown | Standing::Unknown => audit.unknown += 1,
        }
    }
    audit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(logprob: f64, rank: Option<u32>, best: Option<f64>) -> Scored {
        Scored {
            logprob: Some(logprob),
            rank,
            best,
        }
    }

    #[test]
    fn rank_one_and_ties_are_first_and_near_ties_allowed() {
        let answer = [
            scored(-0.2, Some(1), None),
            scored(-0.7, None, Some(-0.7)),
            scored(-0.9, Some(2), Some(-0.6)),
        ];
        let found = audit(answer, 0.5);
        assert_eq!((found.tokens, found.first), (3, 2));
        assert!((found.worst_gap - 0.3).abs() < 1e-9);
        assert_eq!(found.departure, None);
    }

    #[test]
    fn a_token_far_behind_is_a_departure_with_its_place() {
        let answer = [
            scored(-0.2, Some(1), Some(-0.2)),
            scored(-6.0, Some(7), Some(-0.1)),
            scored(-7.0, Some(9), Some(-0.1)),
        ];
        let found = audit(answer, 0.5);
        assert_eq!((found.departures, found.worst_gap), (2, 6.9));
        let told = found.departure.map(|d| d.to_string()).unwrap_or_default();
        assert_eq!(
            told,
            "token 1 of the answer, rank 7, logprob -6.000 where the likeliest has -0.100"
        );
    }

    #[test]
    fn what_nothing_tells_is_no_departure_and_no_first() {
        let found = audit([scored(-6.0, Some(7), None), Scored::default()], 0.5);
        assert_eq!((found.first, found.departures, found.unknown), (0, 0, 2));
    }
}
