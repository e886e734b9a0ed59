//! The witnesses that stand beside the traffic: what processes, files, containers, GPUs and logs say.
//!
//! Each reader returns what it saw or a typed absence with its cure; no missing right ends a run.

pub mod processes;
