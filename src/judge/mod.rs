//! From evidence to verdicts: proof of path, bounds against limits, preconditions.
//!
//! Pure: the same evidence gives the same findings, bit for bit.

pub mod case;
mod conditions;
mod estimate;
pub mod figure;
pub mod finding;
mod gpu;
mod limit;
pub mod log;
pub mod looks;
pub mod movement;
mod path;
mod precondition;
pub mod recorded;
mod residence;
pub mod sample;
mod steadiness;
pub mod symmetry;
pub mod verdict;
