//! Faults in the answers.

use super::fault::{Injection, Target, done_if, windows};
use crate::evidence::body::Evidence;
use crate::evidence::exchange::{Exchange, Outcome};

const NO_ANSWERS: &str = "no answer was recorded";

fn each(evidence: &mut Evidence, target: &Target<'_>, edit: impl Fn(&mut Exchange)) -> Injection {
    let mut changed = false;
    for exchange in windows(evidence, target).flat_map(|w| &mut w.exchanges) {
        edit(exchange);
        changed = true;
    }
    done_if(changed, NO_ANSWERS)
}

fn first(evidence: &mut Evidence, target: &Target<'_>, edit: impl Fn(&mut Exchange)) -> Injection {
    let mut changed = false;
    for exchange in windows(evidence, target).filter_map(|w| w.exchanges.first_mut()) {
        edit(exchange);
        changed = true;
    }
    done_if(changed, NO_ANSWERS)
}

/// No answer carries usage.
pub(super) fn drop_usage(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| e.usage = None)
}

/// The first request of each window answers HTTP 500.
pub(super) fn refuse(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    first(evidence, target, |e| {
        e.status = Some(500);
        e.outcome = Outcome::Refused {
            body: "Internal Server Error".into(),
        };
    })
}

/// The first stream of each window is cut.
pub(super) fn cut(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    first(evidence, target, |e| {
        e.outcome = Outcome::Cut {
            cause: "drill: the stream ended without its finish".into(),
        };
        e.finish_reason = None;
    })
}

/// The first answer of each window was cut at `max_tokens`.
pub(super) fn cut_at_limit(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    first(evidence, target, |e| {
        e.finish_reason = Some("length".into())
    })
}

/// The first answer of each window says one thing over and over.
pub(super) fn loop_one(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    first(evidence, target, |e| e.text = "and so on ".repeat(60))
}

/// The last window decodes at two fifths of its speed.
pub(super) fn slow_down(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let Some(last) = windows(evidence, target).last() else {
        return done_if(false, NO_ANSWERS);
    };
    for exchange in &mut last.exchanges {
        if let (Some(first), Some(end)) = (exchange.first_token_s, &mut exchange.last_token_s) {
            *end = first + (*end - first) * 2.5;
        }
    }
    done_if(!last.exchanges.is_empty(), NO_ANSWERS)
}

/// Nothing was written down beside the requests.
pub(super) fn forget_results(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let mut changed = false;
    for window in windows(evidence, target) {
        changed |= !window.results.is_empty();
        window.results.clear();
    }
    done_if(changed, "the window holds no results")
}

/// Answers of a quarter of their tokens.
pub(super) fn shorten(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| {
        if let Some(usage) = &mut e.usage {
            usage.completion /= 4;
        }
        e.finish_reason = Some("stop".into());
    })
}

/// Sixteen tokens a chunk.
pub(super) fn bundle(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| {
        let tokens = e.usage.map_or(0, |u| u.completion);
        e.token_chunks = u32::try_from(tokens / 16).unwrap_or(1).max(2);
    })
}

/// One word over and over.
pub(super) fn repeat(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| e.text = "the same ".repeat(120))
}

/// Half the speed: every moment after the sending is twice as far away.
pub(super) fn slow(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| {
        let sent = e.sent_s;
        let later = |t: f64| sent + (t - sent) * 2.0;
        e.first_token_s = e.first_token_s.map(later);
        e.last_token_s = e.last_token_s.map(later);
        e.ended_s = later(e.ended_s);
    })
}

/// The first token takes a hundred times as long.
pub(super) fn slow_prefill(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| {
        let sent = e.sent_s;
        e.first_token_s = e.first_token_s.map(|t| sent + (t - sent) * 100.0);
    })
}

/// Half of the prompt was read.
pub(super) fn truncate(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| {
        if let Some(usage) = &mut e.usage {
            usage.prompt /= 2;
        }
    })
}

/// The prompt came from the cache.
pub(super) fn cache(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| {
        if let Some(usage) = &mut e.usage {
            usage.cached = Some(usage.prompt);
        }
    })
}

/// Edits the answers of the measured windows, not those of the controls.
fn measured(
    evidence: &mut Evidence,
    target: &Target<'_>,
    edit: impl Fn(&mut Exchange),
) -> Injection {
    let mut changed = false;
    for window in windows(evidence, target).filter(|w| w.part == "measure") {
        window.exchanges.iter_mut().for_each(&edit);
        changed |= !window.exchanges.is_empty();
    }
    done_if(changed, NO_ANSWERS)
}

/// The answer is another value.
pub(super) fn mistake(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    measured(evidence, target, |e| e.text = "00000000".into())
}

/// The answer is empty.
pub(super) fn empty(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    measured(evidence, target, |e| e.text.clear())
}

/// Another token in place of one of an answer, and another letter in place of one of its words.
fn change(exchange: &mut Exchange, place: fn(usize) -> usize) {
    let ids = exchange.token_ids.as_deref_mut().unwrap_or_default();
    if let Some(id) = ids
        .len()
        .checked_sub(1)
        .map(place)
        .and_then(|at| ids.get_mut(at))
    {
        *id ^= 1;
    }
    let mut letters: Vec<char> = exchange.text.chars().collect();
    if let Some(at) = letters.len().checked_sub(1).map(place) {
        letters[at] = if letters[at] == 'x' { 'y' } else { 'x' };
    }
    exchange.text = letters.into_iter().collect();
    exchange.text_sha256.push('~');
}

/// The last answer of each measured window ends with another token.
pub(super) fn differ(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let mut changed = false;
    for window in windows(evidence, target).filter(|w| w.part == "measure") {
        if let Some(last) = window.exchanges.last_mut() {
            change(last, |last| last);
            changed = true;
        }
    }
    done_if(changed, NO_ANSWERS)
}

/// Every answer begins with another token.
pub(super) fn part(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    measured(evidence, target, |e| change(e, |_| 0))
}

/// Every answer is empty.
pub(super) fn void(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    measured(evidence, target, |e| {
        e.text.clear();
        e.reasoning.clear();
        e.token_ids = e.token_ids.take().map(|_| Vec::new());
    })
}

/// The answers came without token ids.
pub(super) fn drop_ids(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, |e| e.token_ids = None)
}

/// The health route answers HTTP 500.
pub(super) fn sicken(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    for window in windows(evidence, target) {
        window
            .results
            .insert("health_fault".into(), "`/health` answers HTTP 500".into());
    }
    Injection::Done
}

/// The case was never measured.
pub(super) fn skip(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    evidence
        .windows
        .retain(|w| w.build != target.build || !target.cases.contains(&w.case));
    Injection::Done
}
