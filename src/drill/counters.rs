//! Faults in the counters.

use std::fmt::Write as _;

use super::fault::{Injection, Target, done_if, windows};
use crate::dialect::{Metrics, Names};
use crate::evidence::body::Evidence;
use crate::evidence::exposition::{Exposition, Kind, Sample};
use crate::evidence::selector::Selector;
use crate::evidence::window::{Scrape, Window};
use crate::spec::gate::CounterClaim;

/// What becomes of one sample: another value, or nothing.
type Edit<'a> = dyn Fn(&Sample<'_>) -> Option<f64> + 'a;

/// The exposition with every sample edited.
fn edited(exposition: &Exposition, edit: &Edit<'_>) -> Exposition {
    let mut text = String::new();
    let mut last = "";
    for sample in exposition.samples() {
        let Some(value) = edit(&sample) else { continue };
        if sample.name() != last {
            last = sample.name();
            let word = match exposition.kind(last) {
                Some(Kind::Counter) => "counter",
                Some(Kind::Gauge) => "gauge",
                _ => "untyped",
            };
            let _ = writeln!(text, "# TYPE {last} {word}");
        }
        let labels: Vec<String> = sample
            .labels()
            .map(|l| {
                format!(
                    "{}=\"{}\"",
                    l.name,
                    l.value
                        .replace('\\', "\\\\")
                        .replace('"', "\\\"")
                        .replace('\n', "\\n")
                )
            })
            .collect();
        let braces = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        let _ = writeln!(text, "{last}{braces} {value}");
    }
    Exposition::parse(&text)
}

fn both(window: &mut Window) -> Option<Both<'_>> {
    match (&mut window.counters.before, &mut window.counters.after) {
        (
            Scrape::Taken {
                exposition: before, ..
            },
            Scrape::Taken {
                exposition: after, ..
            },
        ) => Some(Both { before, after }),
        _ => None,
    }
}

struct Both<'a> {
    before: &'a mut Exposition,
    after: &'a mut Exposition,
}

impl Both<'_> {
    /// The closing value of a sample becomes its opening one.
    fn hold(&mut self, which: &dyn Fn(&Sample<'_>) -> bool) {
        let before = self.before.clone();
        *self.after = edited(self.after, &|s| {
            if which(s) {
                Some(same(&before, s).unwrap_or(0.0))
            } else {
                Some(s.value())
            }
        });
    }

    fn drop(&mut self, which: &dyn Fn(&Sample<'_>) -> bool) {
        for side in [&mut *self.before, &mut *self.after] {
            *side = edited(side, &|s| (!which(s)).then(|| s.value()));
        }
    }

    fn add(&mut self, which: &dyn Fn(&Sample<'_>) -> bool, by: f64) {
        *self.after = edited(self.after, &|s| {
            Some(if which(s) { s.value() + by } else { s.value() })
        });
    }
}

/// The same series in another scrape.
fn same(exposition: &Exposition, sample: &Sample<'_>) -> Option<f64> {
    let labels: Vec<_> = sample.labels().collect();
    exposition
        .named(sample.name())
        .find(|s| s.labels().collect::<Vec<_>>() == labels)
        .map(|s| s.value())
}

fn selectors(claims: &[CounterClaim]) -> Vec<Selector> {
    claims
        .iter()
        .filter_map(|c| Selector::parse(&c.selector).ok())
        .collect()
}

fn matched(selectors: &[Selector], sample: &Sample<'_>) -> bool {
    selectors.iter().any(|s| s.accepts(sample))
}

fn metrics(evidence: &Evidence, target: &Target<'_>) -> Option<&'static Metrics> {
    let boot = evidence.boots.iter().find(|b| b.build == target.build)?;
    crate::dialect::named(&boot.identity.dialect)?
        .metrics
        .as_ref()
}

fn each(evidence: &mut Evidence, target: &Target<'_>, mut edit: impl FnMut(Both<'_>)) -> bool {
    let mut changed = false;
    for window in windows(evidence, target) {
        if let Some(both) = both(window) {
            edit(both);
            changed = true;
        }
    }
    changed
}

const NO_SCRAPES: &str = "no window was scraped";
const NO_METRICS: &str = "this dialect has no such counters";
const NO_CLAIM: &str = "the path makes no such claim";

/// No scrape at either end.
pub(super) fn remove(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    for window in windows(evidence, target) {
        let gone = || Scrape::Absent {
            why: "drill: taken away".into(),
        };
        window.counters.before = gone();
        window.counters.after = gone();
        window.counters.gauges.clear();
    }
    Injection::Done
}

fn claims<'a>(target: &Target<'a>) -> &'a [CounterClaim] {
    target.spec().map_or(&[], |p| &p.moved)
}

/// The claimed counters stand still.
pub(super) fn halt(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let wanted = selectors(claims(target));
    if wanted.is_empty() {
        return Injection::Impossible(NO_CLAIM.into());
    }
    done_if(
        each(evidence, target, |mut both| {
            both.hold(&|s| matched(&wanted, s))
        }),
        NO_SCRAPES,
    )
}

/// The claimed counters are not there.
pub(super) fn drop_moved(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let wanted = selectors(claims(target));
    if wanted.is_empty() {
        return Injection::Impossible(NO_CLAIM.into());
    }
    done_if(
        each(evidence, target, |mut both| {
            both.drop(&|s| matched(&wanted, s))
        }),
        NO_SCRAPES,
    )
}

/// The claimed counters stand still on the last rank.
pub(super) fn halt_one_rank(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let ranks = target.gate.seat.ranks.total();
    let ranked: Vec<&CounterClaim> = claims(target)
        .iter()
        .filter(|c| c.rank_label.is_some())
        .collect();
    if ranked.is_empty() || ranks < 2 {
        return Injection::Impossible(
            "no counter of the path is claimed by rank, or there is one rank".into(),
        );
    }
    let last = (ranks - 1).to_string();
    let which = |s: &Sample<'_>| {
        ranked.iter().any(|c| {
            let label = c.rank_label.as_deref().unwrap_or_default();
            Selector::parse(&c.selector).is_ok_and(|x| x.accepts(s))
                && s.label(label) == Some(&last)
        })
    };
    done_if(
        each(evidence, target, |mut both| both.hold(&which)),
        NO_SCRAPES,
    )
}

/// The counters that must be still move.
pub(super) fn move_still(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let wanted = selectors(target.spec().map_or(&[], |p| &p.still));
    if wanted.is_empty() {
        return Injection::Impossible(NO_CLAIM.into());
    }
    let mut found = false;
    each(evidence, target, |mut both| {
        found |= both.after.samples().any(|s| matched(&wanted, &s));
        both.add(&|s| matched(&wanted, s), 100.0);
    });
    done_if(
        found,
        "the counters that must be still are not shown by this seat",
    )
}

fn named(names: Names) -> impl Fn(&Sample<'_>) -> bool {
    move |s| names.contains(&s.name())
}

/// A thousand tokens and a request of somebody else.
pub(super) fn add_foreign(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let Some(metrics) = metrics(evidence, target) else {
        return Injection::Impossible(NO_METRICS.into());
    };
    let changed = each(evidence, target, |mut both| {
        both.add(&named(metrics.generation_tokens), 1000.0);
        both.add(&named(metrics.prompt_tokens), 1000.0);
    });
    done_if(changed, NO_SCRAPES)
}

/// Every counter begins anew inside the window.
pub(super) fn reset(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let Some(metrics) = metrics(evidence, target) else {
        return Injection::Impossible(NO_METRICS.into());
    };
    let changed = each(evidence, target, |mut both| {
        both.add(&named(metrics.generation_tokens), -1e9);
        both.add(&named(metrics.process_start), 60.0);
    });
    done_if(changed, NO_SCRAPES)
}

fn speculation(metrics: &Metrics) -> Vec<&'static str> {
    [
        metrics.drafts,
        metrics.draft_tokens,
        metrics.accepted_tokens,
        metrics.accepted_per_position,
    ]
    .concat()
}

/// Nothing is drafted.
pub(super) fn stop_drafting(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let Some(metrics) = metrics(evidence, target) else {
        return Injection::Impossible(NO_METRICS.into());
    };
    let names = speculation(metrics);
    done_if(
        each(evidence, target, |mut both| {
            both.hold(&|s| names.contains(&s.name()))
        }),
        NO_SCRAPES,
    )
}

/// Nine steps in a hundred accept one token.
pub(super) fn collapse_acceptance(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let Some(metrics) = metrics(evidence, target) else {
        return Injection::Impossible(NO_METRICS.into());
    };
    let changed = each(evidence, target, |both| {
        let total = |e: &Exposition, names: Names| -> f64 {
            e.samples()
                .filter(|s| names.contains(&s.name()))
                .map(|s| s.value())
                .sum()
        };
        let drafts = total(both.after, metrics.drafts) - total(both.before, metrics.drafts);
        let accepted = total(both.before, metrics.accepted_tokens) + (drafts * 0.09).round();
        *both.after = edited(both.after, &|s| {
            Some(if metrics.accepted_tokens.contains(&s.name()) {
                accepted
            } else {
                s.value()
            })
        });
    });
    done_if(changed, NO_SCRAPES)
}

/// Drafts are counted while logprobs are read.
pub(super) fn draft_in_scoring(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let Some(metrics) = metrics(evidence, target) else {
        return Injection::Impossible(NO_METRICS.into());
    };
    let Some(name) = metrics.drafts.first() else {
        return Injection::Impossible(NO_METRICS.into());
    };
    let changed = each(evidence, target, |both| {
        let with = |value: f64, side: &mut Exposition| {
            let base = edited(side, &|s| (s.name() != *name).then(|| s.value()));
            let mut text = String::new();
            for s in base.samples() {
                let labels: Vec<String> = s
                    .labels()
                    .map(|l| format!("{}={:?}", l.name, l.value))
                    .collect();
                let braces = if labels.is_empty() {
                    String::new()
                } else {
                    format!("{{{}}}", labels.join(","))
                };
                let _ = writeln!(text, "{}{braces} {}", s.name(), s.value());
            }
            let _ = writeln!(text, "{name} {value}");
            *side = Exposition::parse(&text);
        };
        with(10.0, both.before);
        with(60.0, both.after);
    });
    done_if(changed, NO_SCRAPES)
}
