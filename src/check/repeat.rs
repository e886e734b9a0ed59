//! `repeat`: one request again and again must give one answer.

use super::answers::{Measure, parting, words};
use super::traffic;
use crate::evidence::exchange::Exchange;
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{Ids, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::quality::agreement::unique;
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct Repeat;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "unique_answers",
        unit: "",
        unit_aliases: &[("answers", 1.0)],
        words: &[],
        judged: Judged::Each,
        about: "Different answers to the one request: those of a window and the first of the case. Must be 1 unless a limit says otherwise.",
    },
    FigureKind {
        name: "agreement",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "Common beginning with the case's first answer over the longer answer, mean over the answers of a window.",
    },
];

const KEYS: &[Key] = &[
    traffic::KEYS[0],
    Key {
        name: "streams",
        takes: Takes::Counts(1, 1024),
        default: Default::Counts(&[1]),
        about: "Numbers of streams at once; above 1 a server without batch-invariant kernels may differ soundly.",
    },
    Key {
        name: "requests",
        takes: Takes::Count(1, 10_000),
        // Five is what a bitwise repeat is usually shown with; fewer leave a rare race unseen.
        default: Default::Count(5),
        about: "Times that each stream sends the request in one window.",
    },
    traffic::KEYS[3],
    Key {
        name: "ending",
        takes: Takes::Word(&["ignored", "free"]),
        default: Default::Text("free"),
        about: "`free`: an answer ends by itself; `ignored`: the end token is ignored where the server can.",
    },
    traffic::KEYS[5],
];

const DECLARATION: Declaration = Declaration {
    name: "repeat",
    about: "The same greedy request n times: how many different answers come.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 1,
};

impl Kind for Repeat {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(params)
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let mut faults = traffic::faults(&check.params);
        let each = check.params.count("requests").unwrap_or(0) * u64::from(check.repeats.min);
        let fewest = check.params.counts("streams").iter().min().copied();
        if fewest.is_some_and(|streams| streams * each < 2) {
            faults.push(KindFault {
                key: Some("requests"),
                message: "one request is no repetition".into(),
                help: "write `requests = 5`".into(),
            });
        }
        faults
    }
}

impl Planned for Repeat {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load = traffic::load(&slot.check.params, slot.cell, Prompts::Same, Ids::Wanted);
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Load(load),
        }]
    }
}

impl Concludes for Repeat {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let all = traffic::all(&windows);
        let whole: Vec<&Exchange> = all
            .iter()
            .map(|(_, e)| *e)
            .filter(|e| e.is_complete())
            .collect();
        let mut conclusion = Conclusion {
            reasons: missing(&all, &whole).into_iter().collect(),
            ..Conclusion::default()
        };
        if traffic::voids_loops(view) {
            // A loop is the same each time in a build that is otherwise not.
            conclusion.reasons.extend(traffic::degenerate(&all));
        }
        conclusion.notes.extend(traffic::noted(view, &windows));
        let Some(first) = whole.first().filter(|_| whole.len() > 1) else {
            conclusion
                .reasons
                .extend(conclusion.reasons.is_empty().then(|| too_few(whole.len())));
            return conclusion;
        };
        let measure = Measure::of(whole.iter().copied());
        if whole.iter().all(|e| measure.length(e) == 0) {
            conclusion.reasons.push(empty(whole.len()));
            return conclusion;
        }
        let other = whole.iter().find(|e| differ(measure, first, e));
        if let Some(other) = other {
            conclusion
                .reasons
                .extend(differing(view, measure, &whole, other));
            conclusion.notes.extend(parting(first, other));
        }
        conclusion.notes.push(measure.note());
        conclusion.measured = figures(&windows, first, measure);
        conclusion
    }
}

/// What makes an answer this one: its ids, or its words and the digest of all of them.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity<'a> {
    Ids(&'a [u32]),
    Words(String, &'a str),
}

fn identity(measure: Measure, answer: &Exchange) -> Identity<'_> {
    match (measure, &answer.token_ids) {
        (Measure::Tokens, Some(ids)) => Identity::Ids(ids),
        _ => Identity::Words(words(answer), &answer.text_sha256),
    }
}

fn differ(measure: Measure, left: &Exchange, right: &Exchange) -> bool {
    identity(measure, left) != identity(measure, right)
}

fn figures(windows: &[&Window], first: &Exchange, measure: Measure) -> Vec<Measured> {
    let mut ids = Vec::new();
    let (mut uniques, mut shares) = (Vec::new(), Vec::new());
    for window in windows {
        let whole = || window.exchanges.iter().filter(|e| e.is_complete());
        let seen: Vec<f64> = whole().filter_map(|e| measure.share(first, e)).collect();
        if seen.is_empty() {
            continue;
        }
        ids.push(window.id.clone());
        shares.push(seen.iter().sum::<f64>() / seen.len() as f64);
        let answers = std::iter::once(first).chain(whole());
        uniques.push(unique(answers.map(|e| identity(measure, e))) as f64);
    }
    [("unique_answers", uniques), ("agreement", shares)]
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(figure, values)| Measured {
            figure,
            sample: Sample::Each(values),
            windows: ids.clone(),
        })
        .collect()
}

/// Answers differ; a limit of the author's on either figure decides in place of this.
fn differing(
    view: &View<'_>,
    measure: Measure,
    whole: &[&Exchange],
    other: &Exchange,
) -> Option<Reason> {
    let cell = view.case.cell.as_str();
    let limited = view
        .check
        .expect
        .iter()
        .any(|e| e.cell.as_deref().is_none_or(|c| c == cell));
    let different = unique(whole.iter().map(|e| identity(measure, e)));
    let first = whole.first()?;
    let at = measure.agreement(first, other).common;
    (!limited).then(|| {
        Reason::new(
            "answers.differ",
            Verdict::Fail,
            format!(
                "{} greedy requests of one prompt gave {different} different answers; the first two part after {at} {}",
                whole.len(),
                measure.word()
            ),
            format!(
                "同じ要求 {} 回に {different} 通りの応答（最初の分岐は {at} {}の後）",
                whole.len(),
                measure.word_ja()
            ),
        )
    })
}

/// What never came cannot be equal, and cannot differ either.
fn missing(all: &[(&Window, &Exchange)], whole: &[&Exchange]) -> Option<Reason> {
    let failed = traffic::failed(all)?;
    Some(Reason::new(
        "answers.missing",
        Verdict::Unproven,
        format!("only {} answers came whole: {}", whole.len(), failed.text),
        format!("完全な応答は {} 件だけ: {}", whole.len(), failed.text_ja),
    ))
}

fn too_few(answers: usize) -> Reason {
    Reason::new(
        "answers.absent",
        Verdict::Unproven,
        format!("{answers} answers are no repetition"),
        format!("応答 {answers} 件では繰り返しにならない"),
    )
}

fn empty(answers: usize) -> Reason {
    Reason::new(
        "answers.absent",
        Verdict::Unproven,
        format!("all {answers} answers are empty, which proves nothing"),
        format!("{answers} 件の応答がすべて空で、何の証拠にもならない"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::handmade::{Hand, answer, codes, conclude, faults, gate, numbers};
    use super::*;
    use crate::evidence::exchange::Outcome;

    const CHECK: &str = "kind = \"repeat\"\nbuilds = [\"candidate\"]\nrequests = 3";
    const CASE: &str = "repeat/en/1";

    fn concluded(check: &str, answers: Vec<Exchange>) -> Conclusion {
        let mut hand = Hand::default();
        hand.window(CASE, "candidate", answers);
        conclude(&gate(check), &hand.evidence, "candidate")
    }

    fn thrice(last: &[u32]) -> Vec<Exchange> {
        let same = answer("en/0", "abcd", Some(&[1, 2, 3, 4]));
        vec![same.clone(), same, answer("en/0", "abzz", Some(last))]
    }

    #[test]
    fn one_answer_passes() {
        let said = concluded(CHECK, thrice(&[1, 2, 3, 4]));
        assert_eq!(codes(&said), []);
        assert_eq!(numbers(&said, "unique_answers"), [1.0]);
        assert_eq!(numbers(&said, "agreement"), [1.0]);
    }

    #[test]
    fn two_answers_fail_with_the_place_where_they_part() {
        let said = concluded(CHECK, thrice(&[1, 2, 9, 9]));
        assert_eq!(codes(&said), [("answers.differ", Verdict::Fail)]);
        assert!(
            said.reasons[0].text.contains("after 2 tokens"),
            "{:?}",
            said.reasons
        );
        assert_eq!(numbers(&said, "unique_answers"), [2.0]);
        assert!(
            said.notes.iter().any(|n| n.contains("\"cd\"")),
            "{:?}",
            said.notes
        );
    }

    #[test]
    fn a_limit_decides_in_place_of_the_rule() {
        let check = format!("{CHECK}\nexpect = {{ unique_answers = \"<= 2\" }}");
        let said = concluded(&check, thrice(&[1, 2, 9, 9]));
        assert_eq!(codes(&said), []);
    }

    #[test]
    fn windows_that_differ_from_each_other_are_seen() {
        let mut hand = Hand::default();
        let same = |ids: &[u32]| vec![answer("en/0", "ab", Some(ids)); 2];
        hand.window(CASE, "candidate", same(&[1, 2]));
        hand.window(CASE, "candidate", same(&[1, 3]));
        let said = conclude(&gate(CHECK), &hand.evidence, "candidate");
        assert_eq!(numbers(&said, "unique_answers"), [1.0, 2.0]);
        assert_eq!(codes(&said), [("answers.differ", Verdict::Fail)]);
    }

    #[test]
    fn a_cut_answer_leaves_it_unproven() {
        let mut answers = thrice(&[1, 2, 3, 4]);
        answers[1].outcome = Outcome::Cut {
            cause: "reset".into(),
        };
        let said = concluded(CHECK, answers);
        assert_eq!(codes(&said), [("answers.missing", Verdict::Unproven)]);
    }

    #[test]
    fn empty_answers_prove_nothing() {
        let said = concluded(CHECK, vec![answer("en/0", "", Some(&[])); 3]);
        assert_eq!(codes(&said), [("answers.absent", Verdict::Unproven)]);
    }

    #[test]
    fn one_request_is_refused() {
        let once = CHECK.replace("requests = 3", "requests = 1");
        assert_eq!(faults(&once), ["one request is no repetition"]);
    }
}
