//! One file per command; the only room that prints.
//!
//! Data goes to standard output, progress and messages to standard error.

mod drill;
mod exit;
mod gate_file;
mod init;
mod judge;
mod kinds;
mod pack;
mod plan;
mod print;
mod progress;
mod run;
mod schema;
mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The acceptance gate for LLM serving builds (席門): figures that carry the proof of the path that made them.
#[derive(Debug, Parser)]
#[command(
    name = "sekimon",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a gate: boot or attach, drive, witness, judge, report.
    Run(run::Run),
    /// Show what a run would do, in which order, how long, and what can never be decided.
    Plan(plan::Plan),
    /// Look at a live seat, say which evidence it can give, and write a starter gate.
    Init(init::Init),
    /// Judge a recorded run again, offline; the report comes out byte for byte the same.
    Judge(judge::Judge),
    /// Knock each proof out once and inject each known fault: which check turns red, and which does not.
    Drill(drill::Drill),
    /// Model packs on disk: write the manifest that a `pack` check holds a pack to.
    Pack(pack::Pack),
    /// Serve the embedded seat: a small real language model behind an OpenAI and vLLM surface, with faults to switch on.
    Sim(sim::Sim),
    /// Print the table of checks: keys, figures, need of proof.
    Kinds(kinds::Kinds),
    /// Print the JSON Schema of the gate file or of `report.json`.
    Schema(schema::Schema),
}

/// The whole program.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command {
        Command::Run(run) => run.go(),
        Command::Plan(plan) => plan.go(),
        Command::Init(init) => init.go(),
        Command::Judge(judge) => judge.go(),
        Command::Drill(drill) => drill.go(),
        Command::Pack(pack) => pack.go(),
        Command::Sim(sim) => sim.go(),
        Command::Kinds(kinds) => kinds.go(),
        Command::Schema(schema) => schema.go(),
    }
}
