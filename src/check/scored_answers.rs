//! Answers that another build scored: whether the scores can be believed, and what they say token by token.

use crate::evidence::body::ScoredWindow;
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::sample::View;
use crate::judge::verdict::Verdict;
use crate::quality::greedy::{Audit, Scored, audit};
use crate::quality::logprobs::{Fault, guard};

/// What the auditors found, window by window.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// One total a window.
    pub(super) totals: Vec<Total>,
    /// What speaks against the case.
    pub(super) reasons: Vec<Reason>,
}

/// What one window of an auditor found over all its answers.
#[derive(Debug, Default)]
pub(super) struct Total {
    /// Window id.
    pub(super) window: String,
    /// Tokens of the answers.
    pub(super) tokens: usize,
    /// Of these, the likeliest of their places.
    pub(super) first: usize,
    /// Largest distance from the likeliest in nats.
    pub(super) worst_gap: f64,
    /// Tokens further behind than a near tie.
    pub(super) departures: usize,
    /// Tokens of which nothing tells how far behind they are.
    unknown: usize,
    /// The first departure, told.
    told: Option<String>,
}

impl Total {
    fn add(&mut self, scored: &ScoredWindow, audit: &Audit) {
        self.tokens += audit.tokens;
        self.first += audit.first;
        self.worst_gap = self.worst_gap.max(audit.worst_gap);
        self.departures += audit.departures;
        self.unknown += audit.unknown;
        if let (Some(departure), None) = (&audit.departure, &self.told) {
            let id = start(scored).and_then(|from| scored.ids.get(from + departure.at));
            let id = id.map_or_else(String::new, |id| format!(" (id {id})"));
            self.told = Some(format!("{} {}: {departure}{id}", self.window, scored.name));
        }
    }
}

impl Ledger {
    /// Adds what an auditor said of these windows' answers.
    pub(super) fn add(&mut self, view: &View<'_>, auditor: &str, own: &[&Window], gap: f64) {
        let mut scores = 0;
        for window in windows(view, auditor, "measure") {
            let mut total = Total {
                window: window.id.clone(),
                ..Total::default()
            };
            for scored in view.evidence.scores.get(&window.id).into_iter().flatten() {
                if let Some(found) = audited(scored, gap) {
                    scores += 1;
                    total.add(scored, &found);
                }
            }
            self.reasons.extend(lossy(&total, auditor, gap));
            self.reasons.extend(untold(&total, auditor));
            if total.tokens > 0 && total.unknown == 0 {
                self.totals.push(total);
            }
        }
        self.reasons.dedup_by(|a, b| a.code == b.code);
        let whole = own
            .iter()
            .flat_map(|w| &w.exchanges)
            .filter(|e| e.is_complete())
            .count();
        if scores < whole {
            self.reasons.push(Reason::new(
                "audit.partial",
                Verdict::Unproven,
                format!("`{auditor}` scored {scores} of {whole} answers"),
                format!("`{auditor}` が採点したのは {whole} 件中 {scores} 件"),
            ));
        }
    }
}

fn windows<'a>(view: &View<'a>, build: &'a str, part: &'a str) -> impl Iterator<Item = &'a Window> {
    view.evidence.windows_of(&view.case.id, build, part)
}

/// Where the answer begins; absent for a window that holds none.
fn start(scored: &ScoredWindow) -> Option<usize> {
    let from = usize::try_from(scored.answer_from?).ok()?;
    (from > 0 && from < scored.logprobs.len()).then_some(from)
}

/// What one scored answer is; absent without scores.
fn audited(scored: &ScoredWindow, gap: f64) -> Option<Audit> {
    let from = start(scored).filter(|_| scored.fault.is_none())?;
    let told = |at: usize| Scored {
        logprob: scored.logprobs[at],
        rank: scored.ranks.get(at).copied().flatten(),
        best: scored.best.get(at).copied().flatten(),
    };
    Some(audit((from..scored.logprobs.len()).map(told), gap))
}

fn lossy(total: &Total, auditor: &str, gap: f64) -> Option<Reason> {
    let told = total.told.as_ref()?;
    Some(Reason::new(
        "audit.lossy",
        Verdict::Fail,
        format!(
            "{} of {} tokens are not what `{auditor}` would have written, by more than {gap} nats; first in {told}",
            total.departures, total.tokens
        ),
        format!(
            "{} トークン中 {} 個は `{auditor}` なら書かないもの（差 {gap} nat 超）。最初は {told}",
            total.tokens, total.departures
        ),
    ))
}

fn untold(total: &Total, auditor: &str) -> Option<Reason> {
    (total.unknown > 0).then(|| {
        Reason::new(
            "audit.ranks",
            Verdict::Unproven,
            format!(
                "`{auditor}` does not tell how far {} of {} tokens are behind the likeliest: the audit needs ranks and the best logprob (vLLM's `prompt_logprobs`)",
                total.unknown, total.tokens
            ),
            format!(
                "`{auditor}` の採点では {} 個中 {} 個のトークンの順位が分からない: 順位と最良の logprob（vLLM の `prompt_logprobs`）が要る",
                total.tokens, total.unknown
            ),
        )
    })
}

/// Whether what an auditor says can be believed at all.
///
/// # Errors
/// The reason why not: it could not score, its logprobs are none, or it rejects its own answer.
pub(super) fn credible(view: &View<'_>, auditor: &str, gap: f64) -> Result<(), Reason> {
    let measured: Vec<&Window> = windows(view, auditor, "measure").collect();
    if measured.is_empty() {
        return Err(absent(view, auditor));
    }
    let control: Vec<&Window> = windows(view, auditor, "control-audit").collect();
    for window in control.iter().chain(&measured) {
        able(window, auditor)?;
        let scores = view.evidence.scores.get(&window.id);
        for scored in scores.into_iter().flatten() {
            sound(window, scored, auditor)?;
        }
    }
    let confirmed: Vec<Audit> = control
        .iter()
        .filter_map(|w| view.evidence.scores.get(&w.id))
        .flatten()
        .filter_map(|s| audited(s, gap))
        .collect();
    let rejected = confirmed.iter().find_map(|a| a.departure);
    match rejected {
        Some(departure) => Err(Reason::new(
            "audit.control",
            Verdict::Unproven,
            format!(
                "`{auditor}` rejects even its own greedy answer ({departure}): its logprobs are not those that it decodes by, and nothing follows for the judged build"
            ),
            format!(
                "`{auditor}` は自分の greedy 応答すら認めない（{departure}）: logprobs が復号と合っておらず、判定に使えない"
            ),
        )),
        None if confirmed.is_empty() => Err(Reason::new(
            "audit.control",
            Verdict::Unproven,
            format!(
                "`{auditor}` did not confirm an answer of its own, so that its logprobs are not known to be those that it decodes by"
            ),
            format!("`{auditor}` 自身の応答の採点が無く、logprobs が復号と合うか分からない"),
        )),
        None => Ok(()),
    }
}

fn absent(view: &View<'_>, auditor: &str) -> Reason {
    let omitted = view
        .evidence
        .not_run
        .iter()
        .find(|o| o.case == view.case.id && o.build == auditor);
    let why = omitted.map_or("no window of it was recorded", |o| o.reason.as_str());
    Reason::new(
        "audit.absent",
        Verdict::Unproven,
        format!("`{auditor}` scored nothing: {why}"),
        format!("`{auditor}` による採点が無い: {why}"),
    )
}

/// Whether the auditor has a route for prompt logprobs.
fn able(window: &Window, auditor: &str) -> Result<(), Reason> {
    let told = |name: &str| window.results.get(name).and_then(|v| v.as_str());
    if let Some(why) = told("unsupported") {
        return Err(Reason::new(
            "logprobs.unsupported",
            Verdict::Unproven,
            format!(
                "`{auditor}` cannot give the logprobs of a prompt: {why}; serve the auditor with vLLM"
            ),
            format!("`{auditor}` はプロンプトの logprobs を返せない: {why}"),
        ));
    }
    let Some(why) = told("probe_fault") else {
        return Ok(());
    };
    let infra = window.results.get("probe_infra").and_then(|v| v.as_bool());
    let (code, verdict) = if infra == Some(true) {
        ("logprobs.infra", Verdict::Inconclusive)
    } else {
        ("logprobs.invalid", Verdict::Unproven)
    };
    Err(Reason::new(
        code,
        verdict,
        format!(
            "{}: `{auditor}` fails already at the logprobs of three tokens: {why}",
            window.id
        ),
        format!(
            "{}: `{auditor}` は 3 トークンの logprobs で既に失敗: {why}",
            window.id
        ),
    ))
}

/// Whether these are logprobs of this sequence.
///
/// An unlikely answer is what an audit looks for, so that likelihood is asked of the prompt alone.
fn sound(window: &Window, scored: &ScoredWindow, auditor: &str) -> Result<(), Reason> {
    if let Some(fault) = &scored.fault {
        let (code, verdict) = if fault.infra {
            ("logprobs.infra", Verdict::Inconclusive)
        } else {
            ("audit.unscored", Verdict::Unproven)
        };
        return Err(Reason::new(
            code,
            verdict,
            format!(
                "{}: `{auditor}` could not score {}: {}",
                window.id, scored.name, fault.text
            ),
            format!(
                "{}: `{auditor}` が {} を採点できない: {}",
                window.id, scored.name, fault.text
            ),
        ));
    }
    let from = start(scored).unwrap_or(scored.logprobs.len());
    let fault = match guard(&scored.logprobs, None) {
        Err(Fault::WorseThanUniform { .. } | Fault::Surprises { .. }) | Ok(()) => {
            match guard(&scored.logprobs[..from], None) {
                Err(fault @ Fault::WorseThanUniform { .. }) => Some(fault),
                _ => None,
            }
        }
        Err(fault) => Some(fault),
    };
    match fault {
        Some(why) => Err(Reason::new(
            "logprobs.invalid",
            Verdict::Unproven,
            format!(
                "{}: the logprobs that `{auditor}` gives {} are none, so that nothing is audited: {why}",
                window.id, scored.name
            ),
            format!(
                "{}: `{auditor}` が {} に付けた logprobs が成り立たず、採点にならない: {why}",
                window.id, scored.name
            ),
        )),
        None => Ok(()),
    }
}
