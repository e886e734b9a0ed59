//! Faults in the logs.

use regex::bytes::Regex;

use super::fault::{Injection, Target, done_if, windows};
use crate::evidence::body::Evidence;
use crate::evidence::window::LogWitness;

const NO_LOG: &str = "no log was followed";
const NO_CLAIM: &str = "the path makes no such claim";

fn boots(evidence: &Evidence, target: &Target<'_>) -> Vec<String> {
    evidence
        .boots
        .iter()
        .filter(|b| b.build == target.build)
        .map(|b| b.id.clone())
        .collect()
}

/// Edits every line of the build's logs; the length of each line is kept, so that the windows keep their offsets.
fn blank(evidence: &mut Evidence, target: &Target<'_>, hit: impl Fn(&[u8]) -> bool) -> bool {
    let mut changed = false;
    for boot in boots(evidence, target) {
        let Some(log) = evidence.logs.get_mut(&boot) else {
            continue;
        };
        for line in log.split_mut(|b| *b == b'\n') {
            if hit(line) {
                line.fill(b' ');
                changed = true;
            }
        }
    }
    changed
}

fn patterns(target: &Target<'_>) -> Vec<Regex> {
    let spec = target.spec();
    spec.map_or(&[][..], |p| &p.announced)
        .iter()
        .filter_map(|c| Regex::new(&c.pattern).ok())
        .collect()
}

/// The log cannot be read.
pub(super) fn remove(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    for boot in boots(evidence, target) {
        evidence.logs.remove(&boot);
    }
    for boot in evidence
        .boots
        .iter_mut()
        .filter(|b| b.build == target.build)
    {
        boot.log = LogWitness::Absent {
            why: "drill: taken away".into(),
        };
    }
    for window in windows(evidence, target) {
        window.log = None;
    }
    Injection::Done
}

/// The announcing lines are not there.
pub(super) fn silence(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let wanted = patterns(target);
    if wanted.is_empty() {
        return Injection::Impossible(NO_CLAIM.into());
    }
    done_if(
        blank(evidence, target, |line| {
            wanted.iter().any(|p| p.is_match(line))
        }),
        NO_LOG,
    )
}

/// The last rank's announcing lines are not there.
pub(super) fn silence_one_rank(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let ranks = target.gate.seat.ranks;
    if ranks.total() < 2 || ranks.tp != ranks.total() {
        return Injection::Impossible(
            "there is one rank, or the ranks are not only tensor parallel".into(),
        );
    }
    let (wanted, last) = (patterns(target), ranks.total() - 1);
    let tag = Regex::new(&format!(r"(?:TP|rank=){last}\b")).ok();
    let hit = |line: &[u8]| {
        tag.as_ref().is_some_and(|t| t.is_match(line)) && wanted.iter().any(|p| p.is_match(line))
    };
    done_if(
        blank(evidence, target, hit),
        "no announcing line carries its rank",
    )
}

/// Writes lines into each of the build's windows, over what stands there or behind it.
fn write(evidence: &mut Evidence, target: &Target<'_>, text: &str) -> bool {
    let mut changed = false;
    for boot in boots(evidence, target) {
        let Some(log) = evidence.logs.get_mut(&boot) else {
            continue;
        };
        let line = format!("{text}\n").into_bytes();
        let mut shift = 0usize;
        for window in evidence.windows.iter_mut().filter(|w| w.boot == boot) {
            let Some(slice) = &mut window.log else {
                continue;
            };
            let at = usize::try_from(slice.from).unwrap_or(0) + shift;
            slice.from += shift as u64;
            let at = at.min(log.len());
            log.splice(at..at, line.iter().copied());
            shift += line.len();
            slice.to += shift as u64;
            changed = true;
        }
    }
    changed
}

/// A refuting line in every window, as the gate's own example spells it.
pub(super) fn refute(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let lines = target.spec().map_or(&[][..], |p| &p.refuted);
    let Some(example) = lines.iter().find_map(|l| l.matches.first()) else {
        let why = if lines.is_empty() {
            NO_CLAIM
        } else {
            "the refuting line has no `matches` example to be injected"
        };
        return Injection::Impossible(why.into());
    };
    let text = format!("(Worker_TP0 pid=1) WARNING 01-01 00:00:00 [drill.py:1] {example}");
    done_if(write(evidence, target, &text), NO_LOG)
}

/// A traceback in every window.
pub(super) fn crash(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let text =
        "(EngineCore pid=1) ERROR 01-01 00:00:00 [core.py:1] Traceback (most recent call last):";
    done_if(write(evidence, target, text), NO_LOG)
}

/// Bytes of the log are lost in every window.
pub(super) fn rotate(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let mut changed = false;
    for slice in windows(evidence, target).filter_map(|w| w.log.as_mut()) {
        slice.whole = false;
        slice.unbroken = false;
        changed = true;
    }
    let wants_log = target.spec().is_some_and(|p| !p.refuted.is_empty());
    done_if(
        changed && wants_log,
        "the path claims nothing of which absence in the log is the proof",
    )
}

/// The KV window that the log and metrics tell is a fifth smaller.
pub(super) fn shrink_kv(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let Some(dialect) = spoken(evidence, target) else {
        return Injection::Impossible(NO_LOG.into());
    };
    let expressions: Vec<Regex> = dialect
        .kv
        .iter()
        .filter_map(|k| Regex::new(k.pattern).ok())
        .collect();
    let mut changed = false;
    for boot in boots(evidence, target) {
        let Some(log) = evidence.logs.get_mut(&boot) else {
            continue;
        };
        for line in log.split_mut(|b| *b == b'\n') {
            let found = expressions.iter().find_map(|e| {
                let captures = e.captures(line)?;
                let number = captures
                    .name("tokens")
                    .or_else(|| captures.name("blocks"))?;
                Some(number.range())
            });
            let Some(range) = found else { continue };
            // The leading digit is counted down, the rest stays: the line keeps its length.
            if let Some(digit) = line[range]
                .first_mut()
                .filter(|d| (b'2'..=b'9').contains(*d))
            {
                *digit -= 1;
                changed = true;
            }
        }
    }
    super::counters::remove(evidence, target);
    done_if(
        changed,
        "no line of the log tells the KV window in a way that can be shrunk",
    )
}

/// Nothing tells the KV window.
pub(super) fn hide_kv(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let Some(dialect) = spoken(evidence, target) else {
        return Injection::Impossible(NO_LOG.into());
    };
    let expressions: Vec<Regex> = dialect
        .kv
        .iter()
        .filter_map(|k| Regex::new(k.pattern).ok())
        .collect();
    blank(evidence, target, |line| {
        expressions.iter().any(|e| e.is_match(line))
    });
    super::counters::remove(evidence, target)
}

fn spoken(evidence: &Evidence, target: &Target<'_>) -> Option<&'static crate::dialect::Dialect> {
    let boot = evidence.boots.iter().find(|b| b.build == target.build)?;
    crate::dialect::named(&boot.identity.dialect)
}
