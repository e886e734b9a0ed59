//! One file per kind of check: what it declares, which windows it wants, what it concludes.
//!
//! A new kind is one file with one unit struct and its row in [`KINDS`].

mod accept_length;
mod agreement;
mod answers;
mod attribution;
mod beyond;
mod canary;
mod config;
mod essays;
mod external;
mod greedy_audit;
#[cfg(test)]
mod handmade;
mod health;
mod kv_window;
mod length;
mod needle;
mod pack;
mod path;
mod perplexity;
mod repeat;
mod score_difference;
mod scored_answers;
mod throughput;
mod traffic;

use crate::judge::sample::Concludes;
use crate::plan::Planned;
use crate::spec::kind::Kind;

/// Every kind, in the order of the docs.
pub static KINDS: &[&dyn Concludes] = &[
    &throughput::Throughput,
    &needle::Needle,
    &perplexity::Perplexity,
    &accept_length::AcceptLength,
    &agreement::Agreeing,
    &repeat::Repeat,
    &greedy_audit::GreedyAudit,
    &essays::Essays,
    &length::Length,
    &canary::Canary,
    &path::Path,
    &beyond::Beyond,
    &kv_window::KvWindow,
    &config::Config,
    &pack::Pack,
    &health::Health,
    &external::External,
];

/// The kinds as the gate file knows them.
pub fn kinds() -> Vec<&'static dyn Kind> {
    KINDS.iter().map(|k| *k as &dyn Kind).collect()
}

/// The kind of this name, as the plan knows it.
pub fn planned(name: &str) -> Option<&'static dyn Planned> {
    KINDS
        .iter()
        .find(|k| k.name() == name)
        .map(|k| *k as &dyn Planned)
}

/// The kind of this name, as the judge knows it.
pub fn concludes(name: &str) -> Option<&'static dyn Concludes> {
    KINDS.iter().copied().find(|k| k.name() == name)
}
