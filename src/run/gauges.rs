//! Gauges between the two scrapes of a window: requests running and waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::dialect::Dialect;
use crate::drive::metrics::Endpoints;
use crate::evidence::exposition::Exposition;
use crate::evidence::window::GaugeSample;
use crate::judge::movement::total;

/// Time to the first sample: after the streams have started, and before a short window is over.
const FIRST: Duration = Duration::from_millis(60);
/// Time between samples: often enough for a window of some seconds, seldom enough not to be a load of its own.
const BETWEEN: Duration = Duration::from_millis(500);
/// Samples kept: a window of a quarter of an hour; what comes later is not sampled.
const KEPT: usize = 1800;
/// How long one sample may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// A sampler that runs while a window is open.
#[derive(Debug)]
pub struct Sampler {
    task: JoinHandle<()>,
    samples: Arc<Mutex<Vec<GaugeSample>>>,
}

impl Sampler {
    /// Begins to sample; nothing is sampled from a dialect without metrics.
    pub fn start(endpoints: Endpoints, dialect: &'static Dialect, opened: Instant) -> Self {
        let samples = Arc::new(Mutex::new(Vec::new()));
        let kept = samples.clone();
        let task = tokio::spawn(async move {
            sleep(FIRST).await;
            while kept.lock().unwrap_or_else(PoisonError::into_inner).len() < KEPT {
                if let Some(sample) = sample(&endpoints, dialect, opened).await {
                    kept.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(sample);
                }
                sleep(BETWEEN).await;
            }
        });
        Self { task, samples }
    }

    /// Ends it.
    pub fn stop(self) -> Vec<GaugeSample> {
        self.task.abort();
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn sample(
    endpoints: &Endpoints,
    dialect: &'static Dialect,
    opened: Instant,
) -> Option<GaugeSample> {
    let metrics = dialect.metrics.as_ref()?;
    let at_s = opened.elapsed().as_secs_f64();
    let text = endpoints.scrape(dialect, DEADLINE).await.ok()?;
    let exposition = Exposition::parse(&text);
    let read =
        |names: crate::dialect::Names| names.iter().find_map(|name| total(&exposition, name));
    Some(GaugeSample {
        at_s,
        running: read(metrics.running),
        waiting: read(metrics.waiting),
    })
}
