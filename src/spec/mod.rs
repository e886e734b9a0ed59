//! The gate file: strict TOML in, a [`Gate`](gate::Gate) out, every fault at once and each at its place.
//!
//! Pure: text comes in as an argument. The kinds of checks come in as a table, so that this room need not know them.

mod builds;
mod checks;
pub mod expect;
mod expectations;
pub mod faults;
pub mod gate;
pub mod kind;
pub mod kinds;
mod params;
mod paths;
mod presets;
pub mod read;
mod scalar;
pub mod schema;
mod seat;
mod walk;

#[cfg(test)]
mod expect_tests;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod test_kinds;
