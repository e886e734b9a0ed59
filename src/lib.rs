//! sekimon, the acceptance gate for LLM serving builds.

pub mod dialect;
pub mod drive;
pub mod evidence;
pub mod judge;
pub mod report;
pub mod spec;
