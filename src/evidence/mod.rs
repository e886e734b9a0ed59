//! What was seen: windows with their testimony, and the pure readers of what is recorded in them.
//!
//! Nothing here touches the world. `drive` and `witness` make these values, `archive` keeps them on disk,
//! `judge` and `check` read them.

pub mod absence;
pub mod body;
pub mod container;
pub mod count;
pub mod counters;
pub mod environ;
pub mod exchange;
pub mod exposition;
mod exposition_line;
pub mod gpu;
pub mod gpu_tally;
pub mod invariants;
pub mod kv;
pub mod libraries;
pub mod log;
pub mod log_copy;
pub mod log_count;
mod log_hint;
mod log_text;
pub mod mounts;
pub mod pack;
pub mod pack_fault;
pub mod packages;
pub mod processes;
pub mod rank;
pub mod redaction;
pub mod resident;
pub mod restart;
pub mod role;
pub mod selector;
pub mod tool_output;
pub mod window;

#[cfg(test)]
mod recordings_tests;
