//! What a series said at one moment, and what it did between two: absent, still, moved, reset.
//!
//! Zero is ambiguous in every metric, so absence never reads as zero here, and a series that appears counts from zero
//! only where its process is known to be the same.

use std::collections::BTreeMap;

use super::exposition::{Exposition, Kind, Sample};
use super::selector::Selector;
use crate::dialect::Names;

/// A series at one moment, summed over the label sets that match.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// No such series, or only NaN.
    Absent,
    /// The sum.
    Present(f64),
}

/// What a series did between two scrapes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Movement {
    /// In neither scrape.
    Absent,
    /// In both, unchanged.
    Still {
        /// Its value.
        at: f64,
    },
    /// In both, and greater.
    Moved {
        /// By how much.
        by: f64,
    },
    /// Some of its series fell or vanished, or the process was restarted: no difference can be taken.
    Reset {
        /// Sum before.
        before: f64,
        /// Sum after.
        after: f64,
    },
    /// Only in the second scrape.
    AppearedDuring {
        /// Its value then.
        at: f64,
        /// Whether `at` is what it moved by.
        origin: Origin,
    },
}

/// Where a series that appeared began to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// From zero inside the window: the process is the same as before.
    Zero,
    /// Not known: the process may be another, or another one answered.
    Unknown,
}

/// Whether the process that answered the second scrape is the one that answered the first.
#[derive(Debug, Clone, PartialEq)]
pub enum Continuity {
    /// Same start time.
    Same,
    /// Another start time, or a counter fell.
    Broken {
        /// What shows it.
        why: String,
    },
    /// It tells no start time; nothing speaks against it.
    Unknown,
}

/// A selector as this seat spells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spelled {
    /// The selector to use.
    pub selector: Selector,
    /// What was changed, or why nothing is found; for the report.
    pub note: Option<String>,
}

/// Whether a gauge's value belongs to its window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Freshness {
    /// It changed.
    Fresh,
    /// It is what it was although the work that it describes went on.
    Stale {
        /// The value.
        at: f64,
    },
    /// Absent, or nothing happened that could have changed it.
    Unknown,
}

impl Movement {
    /// By how much it moved, where that is known; absent and reset series have no difference.
    pub fn delta(self) -> Option<f64> {
        match self {
            Movement::Still { .. } => Some(0.0),
            Movement::Moved { by } => Some(by),
            Movement::AppearedDuring {
                at,
                origin: Origin::Zero,
            } => Some(at),
            Movement::Absent | Movement::Reset { .. } | Movement::AppearedDuring { .. } => None,
        }
    }
}

impl Exposition {
    /// The samples that a selector means.
    pub fn find<'a>(&'a self, selector: &'a Selector) -> impl Iterator<Item = Sample<'a>> {
        self.named(selector.name()).filter(|s| selector.accepts(s))
    }

    /// The sum of the samples that a selector means; NaN is no number and does not count.
    pub fn read(&self, selector: &Selector) -> Reading {
        let mut seen = Reading::Absent;
        for value in self
            .find(selector)
            .map(|s| s.value())
            .filter(|v| !v.is_nan())
        {
            seen = match seen {
                Reading::Absent => Reading::Present(value),
                Reading::Present(sum) => Reading::Present(sum + value),
            };
        }
        seen
    }

    /// The sums by one label's value; samples without the label are left out.
    pub fn read_by(&self, selector: &Selector, label: &str) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for sample in self.find(selector).filter(|s| !s.value().is_nan()) {
            if let Some(value) = sample.label(label) {
                *sums.entry(value.to_owned()).or_insert(0.0) += sample.value();
            }
        }
        sums
    }

    /// The first of these names that has a sample: versions spell one series differently.
    pub fn first_of(&self, names: Names) -> Option<&'static str> {
        names
            .iter()
            .copied()
            .find(|name| self.named(name).next().is_some())
    }

    /// The selector as this seat spells it: with or without `_total`, with a note; a histogram's base name is explained.
    pub fn spell(&self, selector: &Selector) -> Spelled {
        let name = selector.name();
        let as_is = |note| Spelled {
            selector: selector.clone(),
            note,
        };
        if self.named(name).next().is_some() {
            return as_is(None);
        }
        if matches!(self.kind(name), Some(Kind::Histogram | Kind::Summary)) {
            let help = format!(
                "`{name}` is a histogram: its series are `{name}_count`, `{name}_sum` and `{name}_bucket`"
            );
            return as_is(Some(help));
        }
        let other = match name.strip_suffix("_total") {
            Some(base) => base.to_owned(),
            None => format!("{name}_total"),
        };
        let counts = matches!(
            self.kind(&other),
            Some(Kind::Counter | Kind::Unknown) | None
        );
        if counts && self.named(&other).next().is_some() {
            let note = format!("`{name}` is spelled `{other}` by this seat");
            return Spelled {
                selector: selector.renamed(&other),
                note: Some(note),
            };
        }
        as_is(None)
    }
}

/// Whether one process answered both scrapes, by its start time and by its counters, which never fall.
pub fn continuity(before: &Exposition, after: &Exposition, process_start: Names) -> Continuity {
    let start = |e: &Exposition| {
        let name = e.first_of(process_start)?;
        let mut times: Vec<u64> = e.named(name).map(|s| s.value().to_bits()).collect();
        times.sort_unstable();
        Some(times)
    };
    match (start(before), start(after)) {
        (Some(a), Some(b)) if a == b => {}
        (Some(_), Some(_)) => {
            let why =
                "its process start time changed: a restart, or several processes answer by turns"
                    .to_owned();
            return Continuity::Broken { why };
        }
        _ => {
            return match first_fall(before, after) {
                Some(why) => Continuity::Broken { why },
                None => Continuity::Unknown,
            };
        }
    }
    match first_fall(before, after) {
        Some(why) => Continuity::Broken { why },
        None => Continuity::Same,
    }
}

/// The first counter that fell, as a sentence.
fn first_fall(before: &Exposition, after: &Exposition) -> Option<String> {
    let counters = |e: &'_ Exposition| -> BTreeMap<String, f64> {
        let of_kind = |s: &Sample<'_>| e.kind(s.name()) == Some(Kind::Counter);
        // `_max` is declared a counter by llama.cpp and is a maximum.
        let monotone = |s: &Sample<'_>| !s.name().ends_with("_max");
        e.samples()
            .filter(|s| of_kind(s) && monotone(s))
            .map(|s| (key(&s), s.value()))
            .collect()
    };
    let later = counters(after);
    counters(before).into_iter().find_map(|(key, was)| {
        let is = *later.get(&key)?;
        (is < was).then(|| {
            format!(
                "the counter `{}` fell from {was} to {is}",
                key.trim_end_matches("{}")
            )
        })
    })
}

/// What the series of a selector did between two scrapes of one seat.
pub fn movement(
    before: &Exposition,
    after: &Exposition,
    selector: &Selector,
    process: &Continuity,
) -> Movement {
    let was = series(before, selector);
    let is = series(after, selector);
    let sum = |series: &BTreeMap<String, f64>| series.values().sum::<f64>();
    if was.is_empty() && is.is_empty() {
        return Movement::Absent;
    }
    if was.is_empty() {
        let origin = match process {
            Continuity::Same => Origin::Zero,
            Continuity::Broken { .. } | Continuity::Unknown => Origin::Unknown,
        };
        return Movement::AppearedDuring {
            at: sum(&is),
            origin,
        };
    }
    // A child that appears beside its siblings began in the window: labelled children are made at their first use.
    let fell = was
        .iter()
        .any(|(key, was)| is.get(key).is_none_or(|is| is < was));
    if fell || matches!(process, Continuity::Broken { .. }) {
        return Movement::Reset {
            before: sum(&was),
            after: sum(&is),
        };
    }
    let by: f64 = is
        .iter()
        .map(|(key, is)| is - was.get(key).unwrap_or(&0.0))
        .sum();
    if by == 0.0 {
        Movement::Still { at: sum(&is) }
    } else {
        Movement::Moved { by }
    }
}

/// What the series did for each value of one label (a rank, an engine, a position); series without it are left out.
pub fn movement_by(
    before: &Exposition,
    after: &Exposition,
    selector: &Selector,
    label: &str,
    process: &Continuity,
) -> BTreeMap<String, Movement> {
    let was = before.read_by(selector, label);
    let is = after.read_by(selector, label);
    let values: std::collections::BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let broken = matches!(process, Continuity::Broken { .. });
    let each = |value: &String| match (was.get(value), is.get(value)) {
        (Some(&before), Some(&after)) if broken || after < before => {
            Movement::Reset { before, after }
        }
        (Some(&before), None) => Movement::Reset { before, after: 0.0 },
        (Some(&before), Some(&after)) if before == after => Movement::Still { at: after },
        (Some(&before), Some(&after)) => Movement::Moved { by: after - before },
        (None, Some(&at)) => {
            let known = *process == Continuity::Same || (!was.is_empty() && !broken);
            Movement::AppearedDuring {
                at,
                origin: if known { Origin::Zero } else { Origin::Unknown },
            }
        }
        (None, None) => Movement::Absent,
    };
    values
        .into_iter()
        .map(|value| (value.clone(), each(value)))
        .collect()
}

/// Whether a gauge says something about this window: one that is refreshed only now and then keeps an old value.
pub fn freshness(
    before: &Exposition,
    after: &Exposition,
    gauge: &Selector,
    work: Movement,
) -> Freshness {
    match (before.read(gauge), after.read(gauge)) {
        (Reading::Present(was), Reading::Present(is)) if was != is => Freshness::Fresh,
        (Reading::Absent, Reading::Present(_)) => Freshness::Fresh,
        (Reading::Present(_), Reading::Present(at)) if work.delta().is_some_and(|by| by > 0.0) => {
            Freshness::Stale { at }
        }
        _ => Freshness::Unknown,
    }
}

fn series(exposition: &Exposition, selector: &Selector) -> BTreeMap<String, f64> {
    exposition
        .find(selector)
        .filter(|s| !s.value().is_nan())
        .map(|s| (key(&s), s.value()))
        .collect()
}

/// Name and sorted labels: the identity of a series whatever the order of its labels.
fn key(sample: &Sample<'_>) -> String {
    let mut labels: Vec<_> = sample.labels().collect();
    labels.sort_unstable();
    let labels: Vec<String> = labels
        .iter()
        .map(|l| format!("{}={:?}", l.name, l.value))
        .collect();
    format!("{}{{{}}}", sample.name(), labels.join(","))
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
