//! From evidence to verdicts: proof of path, bounds against limits, preconditions.
//!
//! Pure: the same evidence gives the same findings, bit for bit.

pub mod figure;
pub mod finding;
pub mod verdict;
