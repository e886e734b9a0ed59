//! Bringing one build to the seat, and what is held while it sits there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::progress::{Listener, Progress};
use crate::archive::rundir::RunDir;
use crate::dialect::Dialect;
use crate::drive::cancel::Cancel;
use crate::drive::client::{Client, ClientOptions, Secret};
use crate::drive::metrics::Endpoints;
use crate::drive::recognise::{Expected, Recognised, wait_ready};
use crate::evidence::redaction::{EnvValue, EnvVar, redact_arguments};
use crate::evidence::window::{Boot, LogWitness};
use crate::seat::launch::{self, Launched, Recipe};
use crate::seat::placeholder::Filling;
use crate::spec::gate::{Build, Gate, LogSource};
use crate::witness::container::usual_sockets;
use crate::witness::log_follower::LogFollower;
use crate::witness::log_source::{LogSource as Source, Scope, Start};

/// A build at the seat.
#[derive(Debug)]
pub struct Stage {
    /// What is written down of it.
    pub boot: Boot,
    /// The client of its URL.
    pub client: Client,
    /// How it speaks.
    pub dialect: &'static Dialect,
    /// The running command; absent when attached.
    pub launched: Option<Launched>,
    /// The hand on its log.
    pub log: LogHand,
    /// Whether anything happened to the log since the boot after which absence proves nothing.
    pub log_broken: bool,
    /// Whether its processes were looked into.
    pub looked_into: bool,
    /// Clients of further API servers whose metrics belong to the seat.
    pub further: Vec<Client>,
}

impl Stage {
    /// Where its metrics are.
    pub fn endpoints(&self) -> Endpoints {
        Endpoints {
            own: self.client.clone(),
            further: self.further.clone(),
        }
    }
}

/// The hand on a boot's log.
#[derive(Debug)]
pub enum LogHand {
    /// The command's own output goes straight to the evidence.
    Captured(PathBuf),
    /// Another source is followed into the evidence.
    Followed(LogFollower),
    /// There is none.
    None,
}

/// What booting needs from the run.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The gate.
    pub gate: &'a Gate,
    /// Folder of the gate file; commands run from where sekimon runs, `{gate}` names this folder.
    pub gate_dir: &'a Path,
    /// Folder of the run.
    pub dir: &'a RunDir,
    /// The API key.
    pub api_key: Option<&'a Secret>,
    /// URL in place of the gate's.
    pub seat_override: Option<&'a str>,
    /// The stop sign.
    pub cancel: &'a Cancel,
}

/// How long an attached seat may take to answer: it serves already, so ten seconds cover a busy event loop.
const ATTACH: Duration = Duration::from_secs(10);

/// Brings a build to the seat.
///
/// # Errors
/// The sentence that says why it is not there; everything that was started is ended again.
pub async fn bring(
    context: Context<'_>,
    id: &str,
    build: &Build,
    listener: Listener<'_>,
) -> Result<Stage, String> {
    let started = Instant::now();
    let starts = !build.start.is_empty() && context.seat_override.is_none();
    let how = if starts { "starting" } else { "attaching to" };
    listener(Progress::Booting {
        build: build.name.clone(),
        how: how.into(),
    });
    let place = Place::of(context, build)?;
    if starts {
        refuse_squatter(&place)?;
    }
    let log_file = format!("logs/{id}.log");
    let log_path = context.dir.evidence(&log_file);
    let source = build
        .log
        .as_ref()
        .or(context.gate.seat.log.as_ref())
        .map(|s| filled(s, &place.filling));
    let started_utc = jiff::Timestamp::now().to_string();
    // A log that is there before the boot holds older boots; one that is not there yet is ours from its first byte.
    let (mut hand, mut witness) = match &source {
        Some(source) => {
            follow(
                source,
                &log_path,
                &log_file,
                if starts { Start::End } else { Start::Beginning },
            )
            .await
        }
        None => (
            LogHand::None,
            LogWitness::Absent {
                why: no_log(starts),
            },
        ),
    };
    let mut launched = None;
    let mut recipe = None;
    if starts {
        let made = recipe_of(build, &place.filling);
        let output = if source.is_some() {
            context.dir.evidence(&format!("logs/{id}.out"))
        } else {
            log_path.clone()
        };
        launched = Some(Launched::start(made.clone(), &output).map_err(|e| e.to_string())?);
        if source.is_none() {
            hand = LogHand::Captured(log_path.clone());
            witness = LogWitness::Followed {
                file: log_file,
                source: "output of the command".into(),
                from_beginning: true,
            };
        }
        recipe = Some(made);
    }
    let deadline = if starts { build.ready } else { ATTACH };
    let recognised = ready(context, &place, deadline, launched.as_mut()).await;
    let recognised = match recognised {
        Ok(recognised) => recognised,
        Err(why) => {
            let tail = launched
                .as_ref()
                .map(|l| launch::tail(l.log()))
                .filter(|t| !t.is_empty());
            if let Some(launched) = launched {
                let _ = launched.stop().await;
            }
            return Err(match tail {
                Some(tail) => format!("{why}\nits last words:\n{tail}"),
                None => why,
            });
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    let Recognised { dialect, identity } = recognised;
    listener(Progress::Ready {
        build: build.name.clone(),
        seconds,
        identity: format!(
            "{} {} {}",
            dialect.name,
            identity.version.as_deref().unwrap_or(""),
            identity.model
        ),
    });
    let boot = Boot {
        id: id.into(),
        build: build.name.clone(),
        url: place.url.clone(),
        started: started_utc,
        ready_s: starts.then_some(seconds),
        command: recipe
            .as_ref()
            .map(|r| redact_arguments(&r.command))
            .unwrap_or_default(),
        env: recipe
            .as_ref()
            .map(|r| r.env.iter().map(redacted).collect())
            .unwrap_or_default(),
        identity,
        log: witness,
    };
    Ok(Stage {
        boot,
        further: further(context, dialect)?,
        client: place.client,
        dialect,
        launched,
        log: hand,
        log_broken: false,
        looked_into: false,
    })
}

fn no_log(starts: bool) -> String {
    if starts {
        "no log is named".into()
    } else {
        "the gate names no `log` for the seat; give `[seat] log = { file = … }` or `{ docker = … }`"
            .into()
    }
}

/// Clients of the further metrics URLs, each as the gate names it or with the dialect's metrics path at its end.
fn further(context: Context<'_>, dialect: &Dialect) -> Result<Vec<Client>, String> {
    let path = dialect.metrics.as_ref().map_or("", |m| m.path);
    let urls = context.gate.seat.metrics.iter();
    urls.map(|url| {
        let mut options = ClientOptions::new(url.trim_end_matches('/').trim_end_matches(path));
        options.api_key = context.api_key.cloned();
        Client::new(options).map_err(|e| format!("`{url}`: {e}"))
    })
    .collect()
}

/// Where a boot answers.
struct Place {
    url: String,
    client: Client,
    filling: Filling,
    expected: Expected,
}

impl Place {
    fn of(context: Context<'_>, build: &Build) -> Result<Self, String> {
        let given = context
            .seat_override
            .or(build.url.as_deref())
            .unwrap_or(&context.gate.seat.url);
        let (url, port) = with_port(given)?;
        let mut options = ClientOptions::new(&url);
        options.api_key = context.api_key.cloned();
        Ok(Self {
            client: Client::new(options).map_err(|e| e.to_string())?,
            url,
            filling: Filling {
                port,
                model: context.gate.seat.model.clone().unwrap_or_default(),
                gate_dir: context.gate_dir.display().to_string(),
            },
            expected: Expected {
                dialect: context.gate.seat.dialect,
                model: context.gate.seat.model.clone(),
            },
        })
    }
}

/// The URL with a real port where it asks for a free one.
fn with_port(given: &str) -> Result<(String, u16), String> {
    let url = reqwest::Url::parse(given).map_err(|e| format!("`{given}` is not a URL: {e}"))?;
    match url.port() {
        Some(0) => {
            let port = launch::free_port().map_err(|e| e.to_string())?;
            let mut url = url;
            let _ = url.set_port(Some(port));
            Ok((url.as_str().trim_end_matches('/').to_owned(), port))
        }
        _ => Ok((
            given.trim_end_matches('/').to_owned(),
            url.port_or_known_default().unwrap_or(80),
        )),
    }
}

/// An old process on the port would answer in the new build's place, with plausible figures.
fn refuse_squatter(place: &Place) -> Result<(), String> {
    let port = place.filling.port;
    let taken = std::net::TcpStream::connect_timeout(
        &([127, 0, 0, 1], port).into(),
        Duration::from_millis(200),
    )
    .is_ok();
    let local = place.url.contains("127.0.0.1") || place.url.contains("localhost");
    if taken && local {
        return Err(format!(
            "port {port} answers before the build is started: another process sits there and would be measured in its place; stop it, or use port 0"
        ));
    }
    Ok(())
}

fn recipe_of(build: &Build, filling: &Filling) -> Recipe {
    let fill = |list: &[String]| list.iter().map(|word| filling.fill(word)).collect();
    Recipe {
        command: fill(&build.start),
        env: build
            .env
            .iter()
            .map(|(k, v)| (k.clone(), filling.fill(v)))
            .collect(),
        cwd: build.cwd.as_ref().map(|c| PathBuf::from(filling.fill(c))),
        stop: fill(&build.stop),
    }
}

fn filled(source: &LogSource, filling: &Filling) -> LogSource {
    match source {
        LogSource::File(path) => LogSource::File(filling.fill(path)),
        LogSource::Docker(name) => LogSource::Docker(filling.fill(name)),
        LogSource::Command(words) => {
            LogSource::Command(words.iter().map(|w| filling.fill(w)).collect())
        }
        LogSource::Journald(unit) => LogSource::Journald(filling.fill(unit)),
        LogSource::Kubernetes(pod) => LogSource::Kubernetes(filling.fill(pod)),
    }
}

/// A variable of the recipe as it may be written down.
fn redacted((name, value): &(String, String)) -> (String, String) {
    let kept = match EnvVar::new(name, value).value {
        EnvValue::Plain { text } => text,
        EnvValue::Redacted { .. } => "(redacted)".into(),
    };
    (name.clone(), kept)
}

async fn follow(
    source: &LogSource,
    path: &Path,
    file: &str,
    start: Start,
) -> (LogHand, LogWitness) {
    let name = describe(source);
    match LogFollower::start(witnessed(source), path.to_owned(), start).await {
        Ok(follower) => {
            // At a boot of ours, what is written from now on is the whole log of the boot.
            let witness = LogWitness::Followed {
                file: file.into(),
                source: name,
                from_beginning: true,
            };
            (LogHand::Followed(follower), witness)
        }
        Err(absent) => (
            LogHand::None,
            LogWitness::Absent {
                why: format!("{name}: {}; {}", absent.why, absent.mend),
            },
        ),
    }
}

fn describe(source: &LogSource) -> String {
    match source {
        LogSource::File(path) => format!("file {path}"),
        LogSource::Docker(name) => format!("container {name}"),
        LogSource::Command(words) => format!("command {}", words.join(" ")),
        LogSource::Journald(unit) => format!("journal of {unit}"),
        LogSource::Kubernetes(pod) => format!("pod {pod}"),
    }
}

/// The gate's source as the witness knows it.
fn witnessed(source: &LogSource) -> Source {
    match source {
        LogSource::File(path) => Source::File {
            path: PathBuf::from(path),
        },
        LogSource::Command(command) => Source::Command {
            command: command.clone(),
        },
        LogSource::Docker(container) => Source::Docker {
            container: container.clone(),
            sockets: usual_sockets(
                std::env::var("DOCKER_HOST").ok().as_deref(),
                std::env::var("XDG_RUNTIME_DIR").ok().as_deref(),
            ),
        },
        LogSource::Journald(unit) => Source::Journald {
            unit: unit.clone(),
            scope: Scope::System,
        },
        LogSource::Kubernetes(place) => {
            let mut parts = place.split('/').map(ToOwned::to_owned);
            let (first, second, third) = (parts.next(), parts.next(), parts.next());
            let (namespace, pod) = if second.is_some() {
                (first, second)
            } else {
                (None, first)
            };
            Source::Kubernetes {
                pod: pod.unwrap_or_default(),
                namespace,
                container: third,
            }
        }
    }
}

async fn ready(
    context: Context<'_>,
    place: &Place,
    deadline: Duration,
    launched: Option<&mut Launched>,
) -> Result<Recognised, String> {
    let mut launched = launched;
    let alive = move || match launched.as_mut().and_then(|l| l.ended()) {
        // A launcher that detaches (docker run -d) ends well and leaves the seat behind.
        Some(status) if status != "exit status: 0" => {
            Err(format!("the command ended with {status}"))
        }
        _ => Ok(()),
    };
    wait_ready(
        &place.client,
        &place.expected,
        deadline,
        context.cancel,
        alive,
    )
    .await
    .map_err(|e| e.to_string())
}
