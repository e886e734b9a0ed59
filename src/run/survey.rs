//! A live seat looked at once: which evidence it can give, and what would give more.

use std::time::Duration;

use crate::dialect::{Dialect, PromptLogprobs};
use crate::drive::cancel::Cancel;
use crate::drive::client::Client;
use crate::drive::metrics::scrape;
use crate::drive::prompt_logprobs::{ScoreFault, Scoring, discover};
use crate::drive::recognise::{Expected, RecogniseFault, recognise};
use crate::evidence::absence::Sighting;
use crate::evidence::exposition::Exposition;
use crate::evidence::window::{Identity, Residents};
use crate::judge::movement::total;

use super::residents;

/// What a seat can give.
#[derive(Debug)]
pub struct Survey {
    /// How it speaks.
    pub dialect: &'static Dialect,
    /// What it says of itself.
    pub identity: Identity,
    /// Its metrics, or why there are none.
    pub metrics: Result<Exposition, String>,
    /// Whether drafts are counted, and by which series.
    pub drafts: Option<&'static str>,
    /// Whether the logprobs of a prompt can be had.
    pub logprobs: Result<PromptLogprobs, String>,
    /// Its processes, if it is on this host.
    pub residents: Residents,
    /// Files that its processes have open and that look like a log.
    pub log_files: Vec<String>,
}

/// How long each look may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Looks at the seat.
///
/// # Errors
/// When nobody answers there, or not as a server of models.
pub async fn survey(
    client: &Client,
    expected: &Expected,
    gate: &crate::spec::gate::Gate,
) -> Result<Survey, RecogniseFault> {
    let seat = recognise(client, expected).await?;
    let metrics = scrape(client, seat.dialect, DEADLINE)
        .await
        .map(|t| Exposition::parse(&t))
        .map_err(|e| e.to_string());
    let drafts = match (&metrics, &seat.dialect.metrics) {
        (Ok(exposition), Some(names)) => names
            .drafts
            .iter()
            .copied()
            .find(|name| total(exposition, name).is_some()),
        _ => None,
    };
    let residents = residents::look("b0", client.base_url(), gate);
    Ok(Survey {
        logprobs: logprobs(client, seat.dialect, &seat.identity.model).await,
        log_files: log_files(&residents),
        dialect: seat.dialect,
        identity: seat.identity,
        metrics,
        drafts,
        residents,
    })
}

async fn logprobs(
    client: &Client,
    dialect: &'static Dialect,
    model: &str,
) -> Result<PromptLogprobs, String> {
    let scoring = Scoring {
        client: client.clone(),
        model: model.to_owned(),
        dialect,
        route: dialect.requests.prompt_logprobs,
        top: 0,
        deadline: DEADLINE,
        stall: DEADLINE,
    };
    discover(&scoring, &Cancel::never())
        .await
        .map_err(|fault: ScoreFault| fault.to_string())
}

/// Regular files behind standard output and error of the seat's processes.
fn log_files(residents: &Residents) -> Vec<String> {
    let Sighting::Seen { value: set } = &residents.set else {
        return Vec::new();
    };
    let mut files: Vec<String> = set
        .processes
        .iter()
        .flat_map(|p| [1, 2].map(|fd| format!("/proc/{}/fd/{fd}", p.pin.pid)))
        .filter_map(|link| std::fs::read_link(link).ok())
        .filter(|path| path.is_file() && !path.starts_with("/dev"))
        .map(|path| path.display().to_string())
        .collect();
    files.sort();
    files.dedup();
    files
}
