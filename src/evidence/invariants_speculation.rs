//! What must be true of the counters of speculative decoding.

use super::{Delta, Holds, Invariant, Window, judged, unknown};
use crate::dialect::Names;
use crate::evidence::counters::{Movement, Reading, movement_by};
use crate::evidence::selector::Selector;

impl Window<'_> {
    /// The invariants of drafting that this family's counters can speak to; none where no drafts are counted now.
    pub(super) fn speculation(&self) -> Vec<Invariant> {
        let metrics = self.metrics;
        if self.movement(metrics.drafts).is_none()
            && self.movement(metrics.accepted_tokens).is_none()
        {
            return Vec::new();
        }
        let drafts = self.delta(metrics.drafts, "drafts");
        let accepted = self.delta(metrics.accepted_tokens, "accepted tokens");
        let drafted = self.delta(metrics.draft_tokens, "draft tokens");
        let counts = |names: Names| !names.is_empty();
        let mut all = Vec::new();
        if counts(metrics.accepted_per_position) {
            let positions = self.positions(&accepted);
            all.extend([
                position_sum(&positions, &accepted),
                position_order(&positions),
            ]);
        }
        if counts(metrics.accepted_tokens) && counts(metrics.draft_tokens) {
            all.push(accepted_of_drafted(&accepted, &drafted));
        }
        if counts(metrics.drafts) && counts(metrics.draft_tokens) {
            all.extend(self.draft_limit(&drafts, &drafted));
            if counts(metrics.accepted_tokens) {
                all.push(self.balance(drafts, accepted, drafted));
            }
        }
        all
    }

    /// Accepted tokens by position, or why they are not known.
    fn positions(&self, accepted: &Delta) -> Result<Vec<f64>, String> {
        let names = self.metrics.accepted_per_position;
        let Some(name) = self
            .after
            .first_of(names)
            .or_else(|| self.before.first_of(names))
        else {
            // llama.cpp makes these series at the first accepted draft.
            return match (accepted, names.first()) {
                (Ok(0.0), Some(_)) => Ok(Vec::new()),
                (_, Some(name)) => Err(format!("`{name}` is not in the scrapes")),
                (_, None) => Err("this server does not count by position".to_owned()),
            };
        };
        let label = self.metrics.position_label;
        let by = movement_by(
            self.before,
            self.after,
            &Selector::name_only(name),
            label,
            &self.process,
        );
        let mut positions = Vec::new();
        for (position, movement) in by {
            let index: u32 = position
                .parse()
                .map_err(|_| format!("`{name}` has {label}=\"{position}\""))?;
            let delta = movement.delta().or_else(|| self.began_at_zero(movement));
            positions.push((
                index,
                delta.ok_or_else(|| format!("`{name}` cannot be differenced"))?,
            ));
        }
        positions.sort_unstable_by_key(|p| p.0);
        Ok(positions.into_iter().map(|p| p.1).collect())
    }

    /// A position that appeared began at zero if nothing at all had been accepted before it.
    fn began_at_zero(&self, movement: Movement) -> Option<f64> {
        let total = self.before.first_of(self.metrics.accepted_tokens)?;
        match (movement, self.before.read(&Selector::name_only(total))) {
            (Movement::AppearedDuring { at, .. }, Reading::Present(0.0)) => Some(at),
            _ => None,
        }
    }

    fn draft_limit(&self, drafts: &Delta, drafted: &Delta) -> Option<Invariant> {
        let limit = self.expected.draft_limit?;
        let name = "draft-limit";
        let expected = format!("at most {limit} draft tokens a draft");
        Some(match (drafts, drafted) {
            (Ok(drafts), Ok(drafted)) => {
                let holds = *drafted <= f64::from(limit) * drafts;
                let seen = format!("{drafted} draft tokens in {drafts} drafts");
                Invariant {
                    name,
                    expected,
                    seen,
                    holds: if holds { Holds::Yes } else { Holds::No },
                }
            }
            (Err(why), _) | (_, Err(why)) => unknown(name, expected, why.clone()),
        })
    }

    /// Every draft emits its accepted tokens and one of its own; every request's first token comes from no draft.
    ///
    /// An answer that ends inside a draft drops what was accepted behind its end: at most the longest draft a request.
    fn balance(&self, drafts: Delta, accepted: Delta, drafted: Delta) -> Invariant {
        let name = "spec-balance";
        let expected =
            "generated ≥ drafts + accepted + first tokens, less what ends cut off".to_owned();
        let generated = self.delta(self.metrics.generation_tokens, "generated tokens");
        let (drafts, accepted, drafted, generated) = match (drafts, accepted, drafted, generated) {
            (Ok(a), Ok(b), Ok(c), Ok(d)) => (a, b, c, d),
            (Err(why), ..) | (_, Err(why), ..) | (_, _, Err(why), _) | (.., Err(why)) => {
                return unknown(name, expected, why);
            }
        };
        let longest = match self.expected.draft_limit {
            Some(limit) => f64::from(limit),
            None if drafts > 0.0 => (drafted / drafts).ceil(),
            None => 0.0,
        };
        let requests = (self.expected.requests + self.expected.broken_off) as f64;
        let rest = generated - drafts - accepted;
        let least = if drafts == 0.0 {
            0.0
        } else {
            requests - requests * longest
        };
        let mut invariant = judged(name, expected, Ok(rest), |rest| rest >= least);
        invariant.seen =
            format!("{generated} generated, {drafts} drafts, {accepted} accepted: {rest} left");
        invariant
    }
}

fn position_sum(positions: &Result<Vec<f64>, String>, accepted: &Delta) -> Invariant {
    let name = "position-sum";
    let expected = "Σ accepted by position = accepted".to_owned();
    match (positions, accepted) {
        (Ok(positions), Ok(accepted)) => {
            let sum: f64 = positions.iter().sum();
            let mut invariant = judged(name, expected, Ok(sum), |sum| sum == *accepted);
            invariant.seen = format!("{sum} by position, {accepted} in all");
            invariant
        }
        (Err(why), _) | (_, Err(why)) => unknown(name, expected, why.clone()),
    }
}

fn position_order(positions: &Result<Vec<f64>, String>) -> Invariant {
    let name = "position-order";
    let expected = "accepted by position never grows with the position".to_owned();
    match positions {
        Ok(positions) => {
            let falls = positions.windows(2).all(|pair| pair[1] <= pair[0]);
            let seen: Vec<String> = positions.iter().map(f64::to_string).collect();
            let holds = if falls { Holds::Yes } else { Holds::No };
            Invariant {
                name,
                expected,
                seen: seen.join(", "),
                holds,
            }
        }
        Err(why) => unknown(name, expected, why.clone()),
    }
}

fn accepted_of_drafted(accepted: &Delta, drafted: &Delta) -> Invariant {
    let name = "accepted-of-drafted";
    let expected = "accepted ≤ draft tokens".to_owned();
    match (accepted, drafted) {
        (Ok(accepted), Ok(drafted)) => {
            let mut invariant = judged(name, expected, Ok(*accepted), |accepted| {
                accepted <= *drafted
            });
            invariant.seen = format!("{accepted} of {drafted}");
            invariant
        }
        (Err(why), _) | (_, Err(why)) => unknown(name, expected, why.clone()),
    }
}
