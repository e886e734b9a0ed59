//! How figures become bounds, and bounds decisions: numbers in, numbers out.
//!
//! This room knows nothing of builds, gates or reports. Every bound is one-sided at the level given; a decision has three
//! ways (`bound`). Non-finite input is an error, never a decision; too few observations are an error that says how many
//! are needed, which `bound::Limit::rule` turns into an open decision; identical values are an ordinary sample.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::print_stdout,
        reason = "tests unwrap, and the simulations print the figures that they assert"
    )
)]

pub mod alpha;
pub mod bound;
pub mod clustered;
mod distribution;
pub mod drift;
pub mod error;
pub mod estimate;
pub mod holm;
pub mod independence;
pub mod mean;
pub mod modes;
pub mod order;
pub mod pairs;
pub mod power;
pub mod prediction;
pub mod proportion;
pub mod rank_sum;
pub mod ratio_of_sums;
pub mod sequential;
pub mod signed_rank;
pub mod steady;
pub mod swing;

#[cfg(test)]
mod calibration;
#[cfg(test)]
mod noise;
#[cfg(test)]
mod seat_gate;

pub use alpha::Alpha;
pub use bound::{Decision, Limit, Ruling};
pub use error::StatsError;
pub use estimate::{Estimate, Method};
