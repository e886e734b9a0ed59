//! `sekimon run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::gate_file::{self, GateFile};
use super::progress::Painter;
use super::{exit, judge, print};
use crate::archive::attempts::{self, Question};
use crate::archive::rundir::{RunDir, sha256_hex};
use crate::drive::cancel::{Cancel, CancelSource};
use crate::drive::client::Secret;
use crate::plan::Plan;
use crate::report::outline::Language;
use crate::run::conduct::{Order, Walk, conduct};

/// Run a gate.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// Gate file.
    gate: PathBuf,
    /// Measure the seat at this URL instead of the gate's; nothing is started then.
    #[arg(long, value_name = "URL")]
    seat: Option<String>,
    /// Folder of the run; by default `reports/<gate>/<utc>-<build>`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Language of the terminal report; files come in both.
    #[arg(long, value_enum, default_value_t = judge::Tongue::En)]
    language: judge::Tongue,
    /// Print `report.json` on standard output instead of the table.
    #[arg(long)]
    json: bool,
    /// No progress, only the report.
    #[arg(long, short)]
    quiet: bool,
    /// Seed of needles and salts, for repeating a run exactly; by default drawn anew.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The build behind this gate was changed since its last run: earlier runs do not count against it. The reason is
    /// written into the report.
    #[arg(long, value_name = "WHY")]
    new_build: Option<String>,
}

impl Run {
    /// Runs the gate.
    pub(super) fn go(self) -> ExitCode {
        let file = match gate_file::open(&self.gate) {
            Ok(file) => file,
            Err(code) => return code,
        };
        let api_key = match api_key(&file) {
            Ok(key) => key,
            Err(code) => return code,
        };
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(code) => return code,
        };
        let language = self.language.language();
        let json = self.json;
        match runtime.block_on(self.walk(&file, api_key)) {
            Ok(walked) => finish(&walked, language, json),
            Err(code) => code,
        }
    }

    async fn walk(self, file: &GateFile, api_key: Option<Secret>) -> Result<Walked, ExitCode> {
        let plan = Plan::of(&file.gate, &crate::check::planned);
        let place = Place::of(&file.gate.name, subject(&file.gate), self.out.clone());
        let earlier_runs = self.earlier_runs(file);
        let order = Order {
            gate: &file.gate,
            gate_file: &file.name,
            gate_dir: &file.dir,
            plan: &plan,
            dir: place.dir,
            id: place.id,
            seat_override: self.seat,
            api_key,
            seed: self.seed.unwrap_or_else(fresh_seed),
            earlier_runs,
            new_build: self.new_build,
            undecided: &|dir| judge::undecided(file, dir),
        };
        let source = CancelSource::default();
        let cancel = source.watcher();
        let signal = tokio::spawn(watch_signals(source));
        let mut painter = Painter::new(&plan, self.quiet);
        let walk = walk_watched(order, &cancel, &mut painter).await;
        painter.finish();
        let interrupted = if cancel.is_cancelled() {
            signal.await.ok()
        } else {
            None
        };
        match walk {
            Ok(walk) => Ok(Walked { walk, interrupted }),
            Err(cause) => {
                print::message(&format!("error: {cause}"));
                Err(ExitCode::from(exit::INTERNAL))
            }
        }
    }
}

impl Run {
    /// How many attempts at the same question came before, told to the person who starts another one.
    fn earlier_runs(&self, file: &GateFile) -> u32 {
        if self.new_build.is_some() {
            return 0;
        }
        let question = Question {
            gate_sha256: &sha256_hex(file.gate.source.as_bytes()),
            seat: self.seat.as_deref(),
        };
        let home = Path::new("reports").join(&file.gate.name);
        let earlier = attempts::earlier(&home, question, jiff::Timestamp::now());
        if let Some(last) = earlier.last()
            && !self.quiet
        {
            print::message(&format!(
                "earlier runs of this gate that did not pass: {} (last {last}); this one is judged at alpha / {}; if the build behind it was changed, say so with --new-build WHY",
                earlier.len(),
                2_u64.saturating_pow(u32::try_from(earlier.len()).unwrap_or(30).min(30)),
            ));
        }
        u32::try_from(earlier.len()).unwrap_or(u32::MAX)
    }
}

/// Worker threads: one reads the streams of any gate (64 streams cost a third of a core), one stands beside it for the samplers.
const WORKERS: usize = 2;

async fn walk_watched(
    order: Order<'_>,
    cancel: &Cancel,
    painter: &mut Painter,
) -> Result<Walk, crate::run::conduct::RunError> {
    conduct(order, cancel, &mut |progress| painter.paint(progress)).await
}

/// Runs a gate without progress and without a report on standard output; for `drill`.
pub(super) fn run_quietly(gate: &Path) -> Result<RunDir, ExitCode> {
    let run = Run {
        gate: gate.to_owned(),
        seat: None,
        out: None,
        language: judge::Tongue::En,
        json: false,
        quiet: true,
        seed: None,
        // A drill asks what the gate notices, not whether the build is good.
        new_build: Some("drill".into()),
    };
    let file = gate_file::open(gate)?;
    let api_key = api_key(&file)?;
    let runtime = runtime()?;
    let walked = runtime.block_on(run.walk(&file, api_key))?;
    judge::judge_and_write(&walked.walk.dir)?;
    Ok(walked.walk.dir)
}

fn runtime() -> Result<tokio::runtime::Runtime, ExitCode> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|cause| {
            print::message(&format!("error: cannot start: {cause}"));
            ExitCode::from(exit::INTERNAL)
        })
}

struct Walked {
    walk: Walk,
    /// Exit code of the signal that ended it.
    interrupted: Option<u8>,
}

fn finish(walked: &Walked, language: Language, json: bool) -> ExitCode {
    let lost = !walked.walk.unreachable.is_empty();
    match judge::judge_and_write(&walked.walk.dir) {
        Ok(report) => {
            judge::show(&report, &walked.walk.dir, language, json);
            match walked.interrupted {
                Some(code) => ExitCode::from(code),
                None => exit::of(&report, lost),
            }
        }
        Err(code) => code,
    }
}

/// Waits for SIGINT or SIGTERM, stops the run, and gives the exit code; a second signal ends the program at once.
async fn watch_signals(source: CancelSource) -> u8 {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut int), Ok(mut term)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    let code = tokio::select! {
        _ = int.recv() => 130,
        _ = term.recv() => 143,
    };
    print::message(
        "interrupted: ending the streams, stopping what was started, writing a partial report",
    );
    source.cancel();
    code
}

struct Place {
    dir: PathBuf,
    id: String,
}

impl Place {
    fn of(gate: &str, build: &str, out: Option<PathBuf>) -> Self {
        let utc = jiff::Timestamp::now()
            .strftime("%Y%m%dT%H%M%SZ")
            .to_string();
        let home = Path::new("reports").join(gate);
        let free = |n: u32| {
            if n == 0 {
                format!("{utc}-{build}")
            } else {
                format!("{utc}-{build}-{n}")
            }
        };
        // Two runs may begin in one second.
        let id = (0..)
            .map(free)
            .find(|id| !home.join(id).exists())
            .unwrap_or_else(|| free(0));
        Self {
            dir: out.unwrap_or_else(|| home.join(&id)),
            id,
        }
    }
}

fn subject(gate: &crate::spec::gate::Gate) -> &str {
    gate.checks.first().map_or("seat", |c| c.subject())
}

/// A seed that differs from run to run: needles must not be known before.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}

fn api_key(file: &GateFile) -> Result<Option<Secret>, ExitCode> {
    let Some(name) = &file.gate.seat.api_key_env else {
        return Ok(None);
    };
    match std::env::var(name) {
        Ok(key) if !key.is_empty() => Ok(Some(Secret::new(key))),
        _ => {
            print::message(&format!(
                "error: the gate takes its API key from `{name}`, which is not set\nhelp: export {name}=… and run again; the key is never written down"
            ));
            Err(ExitCode::from(exit::USAGE))
        }
    }
}
