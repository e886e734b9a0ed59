//! The embedded seat: a small real language model behind a real HTTP server, with faults to switch on.
//!
//! The model is an n-gram mixture over bytes and characters, trained at start; decoding, speculation, logprobs, prompts
//! and caches are real, only the pace is set. It speaks the OpenAI API and vLLM's surface, and says in `owned_by` that it is no vLLM.

mod answer;
mod counters;
#[cfg(test)]
mod decoding_tests;
mod engine;
pub mod fault;
mod histogram;
mod logfile;
mod logprobs;
mod metrics;
mod model;
mod ngram;
pub mod options;
mod prefix_cache;
mod request;
mod retrieval;
mod scoring;
mod sequence;
mod server;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod shape_tests;
mod streaming;
#[cfg(test)]
mod test_seat;
mod texts;
mod tokenizer;
mod topic;

pub use options::Options;
pub use server::{Bound, SimError, bind};
