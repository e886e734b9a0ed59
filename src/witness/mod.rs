//! The witnesses that stand beside the traffic: what processes, files, containers, GPUs and logs say.
//!
//! Each reader returns what it saw or a typed absence with its cure; no missing right ends a run.

mod bounded;
pub mod container;
mod digest;
mod elf;
pub mod environ;
pub mod gpu;
pub mod libraries;
mod log_file;
pub mod log_follower;
pub mod log_source;
mod log_stream;
mod log_writer;
pub mod mounts;
pub mod occurrences;
pub mod pack;
pub mod packages;
pub mod processes;
pub mod resident;
pub mod rooted;
