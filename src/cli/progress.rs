//! Progress of a run on standard error: a bar with an ETA on a terminal, plain lines elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::print;
use crate::plan::{Plan, PlannedWindow};
use crate::run::progress::Progress;

/// Draws progress.
pub(super) struct Painter {
    bar: ProgressBar,
    quiet: bool,
    interactive: bool,
    weights: Vec<(String, u64)>,
}

impl Painter {
    /// A painter for this plan.
    pub(super) fn new(plan: &Plan, quiet: bool) -> Self {
        let interactive = print::is_interactive() && !quiet;
        // Windows weigh by their expected time, in tenths of a second, so that the ETA knows a needle from a word.
        let weigh = |w: &PlannedWindow| {
            (
                w.id.clone(),
                (w.task.expected_seconds() * 10.0).ceil() as u64,
            )
        };
        let weights: Vec<_> = plan.windows().map(weigh).collect();
        let total = weights.iter().map(|w| w.1).sum();
        let target = if interactive {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {percent:>3} % · {eta} left · {msg}")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            bar,
            quiet,
            interactive,
            weights,
        }
    }

    /// Draws one event.
    pub(super) fn paint(&mut self, progress: Progress) {
        if self.quiet {
            return;
        }
        match progress {
            Progress::Planned {
                windows,
                boots,
                dir,
            } => {
                self.line(&format!("{windows} windows on {boots} boots → {dir}"));
            }
            Progress::Booting { build, how } => {
                self.bar.set_message(format!("{how} {build}"));
                self.line(&format!("{how} `{build}`"));
            }
            Progress::Ready {
                build,
                seconds,
                identity,
            } => {
                self.line(&format!(
                    "`{build}` is ready after {seconds:.1} s: {identity}"
                ));
            }
            Progress::BootFailed { build, why } => {
                self.line(&format!("`{build}` is not at the seat: {why}"))
            }
            Progress::Opening {
                window,
                case,
                build,
                task,
            } => {
                self.bar.set_message(format!("{case} on {build}: {task}"));
                if !self.interactive {
                    print::message(&format!("{window} {case} on {build}: {task}"));
                }
            }
            Progress::Closed { window, failed, .. } => {
                let weight = self
                    .weights
                    .iter()
                    .find(|w| w.0 == window)
                    .map_or(0, |w| w.1);
                self.bar.inc(weight);
                if failed > 0 {
                    self.line(&format!("{window}: {failed} requests failed"));
                }
            }
            Progress::Note(text) => self.line(&text),
            Progress::Stopped { build, how } => {
                self.line(&format!("`{build}` left the seat: {how}"))
            }
        }
    }

    fn line(&self, text: &str) {
        let text: String = text
            .chars()
            .filter(|c| !c.is_control() || *c == '\n')
            .collect();
        if self.interactive {
            self.bar.println(text);
        } else {
            print::message(&text);
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
