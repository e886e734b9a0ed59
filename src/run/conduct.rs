//! The walk through a plan.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

use tokio::time::Instant;

use super::boot::{self, Context, LogHand, Stage};
use super::progress::{Listener, Progress};
use super::window::{Open, Yield};
use super::{audit, count, external, host, load, look, needle, pack, references, residents, score};
use crate::archive::journal::Journal;
use crate::archive::record::{Record, Start};
use crate::archive::rundir::{ArchiveError, RunDir, sha256_hex};
use crate::drive::cancel::Cancel;
use crate::drive::client::Secret;
use crate::evidence::absence::Absent;
use crate::evidence::exchange::{Exchange, Outcome};
use crate::plan::order::{self, Undecided};
use crate::plan::task::{ExternalTask, Task};
use crate::plan::{Plan, PlannedWindow, Step, WARM_UP};
use crate::spec::gate::Gate;
use crate::witness::gpu::GpuWitness;

/// What a run is asked to do.
pub struct Order<'a> {
    /// The gate.
    pub gate: &'a Gate,
    /// File name of the gate.
    pub gate_file: &'a str,
    /// Folder of the gate file.
    pub gate_dir: &'a Path,
    /// The plan.
    pub plan: &'a Plan,
    /// Folder of the run, to be made.
    pub dir: PathBuf,
    /// Id of the run.
    pub id: String,
    /// URL in place of the gate's.
    pub seat_override: Option<String>,
    /// The API key.
    pub api_key: Option<Secret>,
    /// Seed of needles and salts.
    pub seed: u64,
    /// Runs of this gate on this build that came before.
    pub earlier_runs: u32,
    /// Why earlier runs do not count, in the words of who started it.
    pub new_build: Option<String>,
    /// Reads the evidence so far and names the cases that more repeats could settle.
    pub undecided: &'a Undeciding<'a>,
}

/// What names the cases that more repeats could settle.
pub type Undeciding<'a> = dyn Fn(&RunDir) -> Vec<Undecided> + Sync + 'a;

/// How a run went, apart from its verdict.
#[derive(Debug)]
pub struct Walk {
    /// Folder of the run.
    pub dir: RunDir,
    /// Builds that never came to the seat, and why.
    pub unreachable: Vec<(String, String)>,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// A run that could not be written down.
#[derive(Debug)]
pub struct RunError(ArchiveError);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for RunError {}

impl From<ArchiveError> for RunError {
    fn from(cause: ArchiveError) -> Self {
        Self(cause)
    }
}

/// Walks the plan.
///
/// # Errors
/// When the evidence cannot be written; what was written before stays.
pub async fn conduct(
    order: Order<'_>,
    cancel: &Cancel,
    listener: Listener<'_>,
) -> Result<Walk, RunError> {
    let began = Instant::now();
    let dir = RunDir::create(order.dir.clone(), &order.gate.source)?;
    let mut journal = dir.journal()?;
    // NVML is loaded once; without it the windows say why they know nothing of the GPUs.
    let gpu = GpuWitness::open();
    journal.append(&Record::Start(Box::new(start(&order, &gpu))))?;
    listener(Progress::Planned {
        windows: order.plan.windows().count(),
        boots: order.plan.boots(),
        dir: dir.root().display().to_string(),
    });
    let mut walker = Walker {
        order: &order,
        dir: &dir,
        journal,
        cancel,
        stages: BTreeMap::new(),
        lost: BTreeMap::new(),
        unreachable: Vec::new(),
        boots: 0,
        next_window: u32::try_from(order.plan.windows().count()).unwrap_or(u32::MAX) + 1,
        gpu,
        answers: audit::Answers::of(order.plan),
    };
    let walked = walker.walk(listener).await;
    // Whatever happened, nothing that we started is left at the seat.
    walker.clear(listener).await;
    let interrupted = cancel.is_cancelled();
    let how = match (&walked, interrupted) {
        (Err(cause), _) => format!("ended early: {cause}"),
        (Ok(()), true) => "interrupted".into(),
        (Ok(()), false) => "complete".into(),
    };
    let end = Record::End {
        how,
        seconds: began.elapsed().as_secs_f64(),
    };
    let written = walker.journal.append(&end);
    let unreachable = std::mem::take(&mut walker.unreachable);
    drop(walker);
    walked?;
    written?;
    Ok(Walk {
        dir,
        unreachable,
        interrupted,
    })
}

fn start(order: &Order<'_>, gpu: &Result<GpuWitness, Absent>) -> Start {
    Start {
        id: order.id.clone(),
        started: jiff::Timestamp::now().to_string(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        gate: order.gate.name.clone(),
        gate_file: order.gate_file.into(),
        gate_sha256: sha256_hex(order.gate.source.as_bytes()),
        seed: order.seed,
        seat_override: order.seat_override.clone(),
        earlier_runs: order.earlier_runs,
        new_build: order.new_build.clone(),
        host: host::facts(),
        gpu: gpu
            .as_ref()
            .map(|g| host::gpus(g.identities()))
            .unwrap_or_default(),
        references: references::read(order.gate, order.gate_dir),
    }
}

struct Walker<'a> {
    order: &'a Order<'a>,
    dir: &'a RunDir,
    journal: Journal,
    cancel: &'a Cancel,
    stages: BTreeMap<String, Stage>,
    /// Builds that are not at the seat although the plan wants them, and why.
    lost: BTreeMap<String, String>,
    unreachable: Vec<(String, String)>,
    boots: u32,
    /// Number of the next window that the plan does not hold yet.
    next_window: u32,
    gpu: Result<GpuWitness, Absent>,
    /// Answers that are still to be audited.
    answers: audit::Answers,
}

impl<'a> Walker<'a> {
    async fn walk(&mut self, listener: Listener<'_>) -> Result<(), ArchiveError> {
        let mut steps: VecDeque<Step> = self.order.plan.steps.iter().cloned().collect();
        while let Some(step) = steps.pop_front() {
            if self.cancel.is_cancelled() {
                return Ok(());
            }
            match step {
                Step::Boot(build) => self.bring(&build, listener).await?,
                Step::Window(window) => self.window(&window, listener).await?,
                Step::Extend(group) => {
                    let further = self.further(&group, listener);
                    if !further.is_empty() {
                        steps.push_front(Step::Extend(group));
                        further.into_iter().rev().for_each(|s| steps.push_front(s));
                    }
                }
                Step::Stop(build) => self.stop(&build, listener).await?,
            }
        }
        Ok(())
    }

    /// The steps to the next look of what is still undecided on these builds.
    fn further(&mut self, group: &[String], listener: Listener<'_>) -> Vec<Step> {
        let Order { gate, plan, .. } = self.order;
        let undecided: Vec<Undecided> = (self.order.undecided)(self.dir)
            .into_iter()
            .filter(|u| {
                let check = &gate.checks[plan.cases[u.case].check];
                check.builds.iter().any(|b| group.contains(b))
            })
            .collect();
        for one in &undecided {
            listener(Progress::Note(format!(
                "{} is open after {} repeats: on to {}",
                plan.cases[one.case].id, one.done, one.until
            )));
        }
        let steps = order::further(
            gate,
            &plan.cases,
            &crate::check::planned,
            group,
            &undecided,
            self.next_window,
        );
        let windows = steps.iter().filter(|s| matches!(s, Step::Window(_)));
        self.next_window += u32::try_from(windows.count()).unwrap_or(u32::MAX);
        steps
    }

    async fn bring(&mut self, name: &str, listener: Listener<'_>) -> Result<(), ArchiveError> {
        if self.stages.contains_key(name) {
            // It stayed at the seat while it was decided to go on.
            return Ok(());
        }
        self.lost.remove(name);
        let Some(build) = self.order.gate.build(name) else {
            return Ok(());
        };
        self.boots += 1;
        let context = Context {
            gate: self.order.gate,
            gate_dir: self.order.gate_dir,
            dir: self.dir,
            api_key: self.order.api_key.as_ref(),
            seat_override: self.order.seat_override.as_deref(),
            cancel: self.cancel,
        };
        match boot::bring(context, &format!("b{}", self.boots), build, &mut *listener).await {
            Ok(stage) => {
                self.journal
                    .append(&Record::Boot(Box::new(stage.boot.clone())))?;
                self.stages.insert(name.into(), stage);
            }
            Err(why) => {
                listener(Progress::BootFailed {
                    build: name.into(),
                    why: why.clone(),
                });
                self.unreachable.push((name.into(), why.clone()));
                self.lost.insert(
                    name.into(),
                    format!("`{name}` did not come to the seat: {why}"),
                );
            }
        }
        Ok(())
    }

    async fn window(
        &mut self,
        planned: &PlannedWindow,
        listener: Listener<'_>,
    ) -> Result<(), ArchiveError> {
        let case = self.order.plan.cases[planned.case].id.clone();
        let Some(mut stage) = self.stages.remove(&planned.build) else {
            let reason = self
                .lost
                .get(&planned.build)
                .cloned()
                .unwrap_or_else(|| "the build is not at the seat".into());
            return self.omit(&case, planned, reason);
        };
        listener(Progress::Opening {
            window: planned.id.clone(),
            case: case.clone(),
            build: planned.build.clone(),
            task: planned.task.describe(),
        });
        let done = self.measure(&mut stage, planned, &case).await;
        let gone = match &done {
            Ok(exchanges) => self.gone(&mut stage, exchanges).await,
            Err(_) => None,
        };
        match gone {
            Some(why) => {
                listener(Progress::BootFailed {
                    build: planned.build.clone(),
                    why: why.clone(),
                });
                self.lost.insert(planned.build.clone(), why.clone());
                self.leave(stage, Some(why), listener).await?;
            }
            None => {
                self.stages.insert(planned.build.clone(), stage);
            }
        }
        let exchanges = done?;
        listener(Progress::Closed {
            window: planned.id.clone(),
            seconds: exchanges.iter().map(|e| e.ended_s).fold(0.0, f64::max),
            failed: exchanges.iter().filter(|e| !e.is_complete()).count(),
        });
        Ok(())
    }

    fn omit(
        &mut self,
        case: &str,
        planned: &PlannedWindow,
        reason: String,
    ) -> Result<(), ArchiveError> {
        if planned.part == WARM_UP {
            return Ok(());
        }
        self.journal.append(&Record::NotRun {
            case: case.into(),
            build: planned.build.clone(),
            reason,
        })
    }

    async fn measure(
        &mut self,
        stage: &mut Stage,
        planned: &PlannedWindow,
        case: &str,
    ) -> Result<Vec<Exchange>, ArchiveError> {
        let mut sink = Sink {
            journal: &mut self.journal,
            window: &planned.id,
            failed: None,
        };
        let seed = self.order.seed;
        let gate_dir = self.order.gate_dir;
        // What takes time and is not the measurement (prompts, tokenizing) is done before the window opens.
        let prepared = match &planned.task {
            Task::Load(task) => Prepared::Load(load::prepare(stage, task, gate_dir, seed)),
            Task::Needle(task) => {
                Prepared::Needle(needle::prepare(stage, task, seed, &planned.id).await)
            }
            Task::Score(task) => Prepared::Score(score::prepare(stage, task, gate_dir).await),
            Task::Look => Prepared::Look,
            Task::Count(rows) => Prepared::Done(count::count(stage, rows)),
            Task::Pack(task) => Prepared::Done(pack::compare(task, gate_dir)),
            Task::Audit(task) => Prepared::Score(
                audit::prepare(stage, task, planned, &self.answers, gate_dir, seed).await,
            ),
            Task::External(task) => Prepared::External(task),
        };
        let open = Open::open(self.dir, stage, planned, case, &self.gpu).await?;
        let outcome: Yield = match prepared {
            Prepared::Load(load) => {
                load::perform(stage, load, open.opened(), self.cancel, &mut sink).await
            }
            Prepared::Needle(needle) => {
                needle::perform(stage, needle, open.opened(), self.cancel, &mut sink).await
            }
            Prepared::Score(score) => {
                score::perform(stage, score, self.dir, &planned.id, self.cancel).await?
            }
            Prepared::External(task) => external::perform(stage, task, gate_dir, self.cancel).await,
            Prepared::Look => look::look(stage).await,
            Prepared::Done(outcome) => outcome,
        };
        if let Some(fault) = sink.failed.take() {
            return Err(fault);
        }
        let exchanges = outcome.exchanges.clone();
        self.answers.keep(planned, &exchanges);
        let window = open.close(stage, outcome).await?;
        self.journal.append(&Record::Window(Box::new(window)))?;
        if !exchanges.is_empty() && planned.part != WARM_UP {
            self.look_into(stage)?;
        }
        Ok(exchanges)
    }

    /// Looks into the processes of a boot, once: after its first traffic, when everything that decodes is loaded.
    fn look_into(&mut self, stage: &mut Stage) -> Result<(), ArchiveError> {
        if stage.looked_into {
            return Ok(());
        }
        stage.looked_into = true;
        let residents = residents::look(&stage.boot.id, &stage.boot.url, self.order.gate);
        self.journal.append(&Record::Residents(Box::new(residents)))
    }

    /// Why the build is gone, if it is: its command ended, or nothing listens any more.
    async fn gone(&self, stage: &mut Stage, exchanges: &[Exchange]) -> Option<String> {
        let build = stage.boot.build.clone();
        if let Some(status) = stage
            .launched
            .as_mut()
            .and_then(|l| l.ended())
            .filter(|s| s != "exit status: 0")
        {
            return Some(format!(
                "`{build}` ended in the middle of the run with {status}"
            ));
        }
        let unreachable = exchanges
            .iter()
            .any(|e| matches!(e.outcome, Outcome::Unreachable { .. }));
        if !unreachable || self.cancel.is_cancelled() {
            return None;
        }
        let look = look::look(stage).await;
        look.results
            .get("health_fault")
            .and_then(|f| f.as_str())
            .map(|f| format!("`{build}` answers no more: {f}"))
    }

    async fn stop(&mut self, name: &str, listener: Listener<'_>) -> Result<(), ArchiveError> {
        match self.stages.remove(name) {
            Some(stage) => self.leave(stage, None, listener).await,
            None => Ok(()),
        }
    }

    async fn leave(
        &mut self,
        mut stage: Stage,
        why: Option<String>,
        listener: Listener<'_>,
    ) -> Result<(), ArchiveError> {
        if why.is_none() {
            self.look_into(&mut stage)?;
        }
        let attached = stage.launched.is_none();
        let how = match stage.launched {
            Some(launched) => launched.stop().await,
            None => "left as it was".into(),
        };
        if let LogHand::Followed(follower) = stage.log {
            let _ = follower.stop().await;
        }
        if !attached {
            listener(Progress::Stopped {
                build: stage.boot.build.clone(),
                how: how.clone(),
            });
        }
        let how = why.map_or(how.clone(), |why| format!("{why}; {how}"));
        self.journal.append(&Record::Stop {
            boot: stage.boot.id,
            how,
        })
    }

    /// Ends what is still at the seat, but for the build that is to stay.
    async fn clear(&mut self, listener: Listener<'_>) {
        let restore = self
            .order
            .gate
            .seat
            .restore
            .as_deref()
            .filter(|_| !self.cancel.is_cancelled());
        while let Some((name, mut stage)) = self.stages.pop_first() {
            if restore == Some(name.as_str()) {
                if let Some(launched) = stage.launched.take() {
                    launched.release();
                }
                listener(Progress::Note(format!(
                    "`{name}` stays at the seat, {}",
                    stage.boot.url
                )));
            }
            let _ = self.leave(stage, None, &mut *listener).await;
        }
    }
}

enum Prepared<'t> {
    Load(load::Prepared),
    Needle(needle::Prepared),
    Score(score::Prepared),
    External(&'t ExternalTask),
    Look,
    /// What needed no open window: it is recorded in one all the same, so that it has a place and a time.
    Done(Yield),
}

/// Where each request goes as it ends.
#[derive(Debug)]
pub struct Sink<'a> {
    journal: &'a mut Journal,
    window: &'a str,
    failed: Option<ArchiveError>,
}

impl Sink<'_> {
    /// Writes one request down; the first refusal of the disk is kept and ends the run after the window.
    pub fn keep(&mut self, exchange: &Exchange) {
        let record = Record::Exchange {
            window: self.window.into(),
            exchange: Box::new(exchange.clone()),
        };
        if self.failed.is_none() {
            self.failed = self.journal.append(&record).err();
        }
    }
}
