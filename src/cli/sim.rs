//! `sekimon sim`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{exit, print};
use crate::sim::fault::{self, FAULTS, Fault};
use crate::sim::options::{Options, Path};

/// Serve the embedded seat.
#[derive(Debug, Args)]
#[command(after_long_help = faults())]
pub(super) struct Sim {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Name of the model.
    #[arg(long, default_value = "sekimon-ngram")]
    model_name: String,
    /// Code path: which kernel decodes.
    #[arg(long, value_enum, default_value_t = Kernel::Lna2)]
    path: Kernel,
    /// Ranks that it claims to have.
    #[arg(long, default_value_t = 1)]
    ranks: u32,
    /// Draft tokens a step.
    #[arg(long, default_value_t = 3)]
    draft_k: u32,
    /// No speculation.
    #[arg(long)]
    no_spec: bool,
    /// Log file instead of standard output.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Milliseconds of one decode step instead of the path's own.
    #[arg(long, value_name = "MS")]
    step_ms: Option<f64>,
    /// Longest prompt plus answer in tokens.
    #[arg(long, default_value_t = 389_120)]
    max_model_len: u64,
    /// Switch a fault on; may be given again. `--help` lists them.
    #[arg(long = "fault", value_name = "NAME", value_parser = fault::parse)]
    faults: Vec<Fault>,
}

/// A code path by its name.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kernel {
    /// The new one.
    Lna2,
    /// The old one.
    Exllamav3,
}

/// The table of faults, for the help.
fn faults() -> String {
    let rows: Vec<String> = FAULTS
        .iter()
        .map(|r| format!("  {:<26} {}", r.name, r.about))
        .collect();
    format!("Faults:\n{}", rows.join("\n"))
}

impl Sim {
    /// Serves until it is told to stop.
    pub(super) fn go(self) -> ExitCode {
        let options = Options {
            port: self.port,
            model: self.model_name,
            path: match self.path {
                Kernel::Lna2 => Path::Lna2,
                Kernel::Exllamav3 => Path::Exllamav3,
            },
            ranks: self.ranks.clamp(1, 1024),
            draft: (!self.no_spec).then_some(self.draft_k.clamp(1, 16)),
            log: self.log,
            step_ms: self.step_ms.filter(|ms| ms.is_finite() && *ms > 0.0),
            max_model_len: self.max_model_len,
            faults: self.faults,
            ..Options::default()
        };
        let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
        else {
            return ExitCode::from(exit::INTERNAL);
        };
        let served = runtime.block_on(async {
            let bound = crate::sim::bind(options).await?;
            print::message(&format!("the embedded seat answers at {}", bound.url));
            bound.serve(stopped()).await
        });
        // The engine's thread and open streams end with the process.
        runtime.shutdown_background();
        match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(cause) => {
                print::message(&format!("error: {cause}"));
                ExitCode::from(exit::USAGE)
            }
        }
    }
}

/// Done at SIGINT or SIGTERM.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut int), Ok(mut term)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = int.recv() => {}
        _ = term.recv() => {}
    }
}
