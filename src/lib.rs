//! sekimon, the acceptance gate for LLM serving builds.

pub mod archive;
pub mod dialect;
pub mod evidence;
pub mod judge;
pub mod plan;
pub mod report;
pub mod seat;
pub mod spec;
pub mod stats;
