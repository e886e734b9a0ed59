//! What the gate says to a seat and what it hears back: requests, loads, streams, scores, scrapes.
//!
//! The only room (with `witness`) that opens sockets. It produces the types of `evidence` and consumes the data of
//! `dialect`; it judges nothing.

pub mod answer;
pub mod cancel;
mod chunk;
pub mod client;
pub mod fault;
pub mod fetch;
mod gaps;
pub mod json_scan;
pub mod load;
pub mod metrics;
pub mod prompt_logprobs;
pub mod recognise;
mod recognise_fault;
pub mod request;
mod score_path;
mod score_reader;
mod shape;
pub mod stream;
pub mod tokenize;

#[cfg(test)]
mod bad_days;
#[cfg(test)]
mod bad_seats;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod recordings;
#[cfg(test)]
mod scoring;
#[cfg(test)]
mod tiny_server;
