//! What is asked of a seat: prompts, haystacks, needles, corpora; pure text from seeds.

pub mod corpus;
pub mod grammar;
pub mod haystack;
pub mod length;
pub mod needle;
pub mod prompts;
pub mod splitmix;

pub use prompts::{Message, Task, Workload, WorkloadError, names};

/// SHA-256 of a text in lower-case hex.
fn sha256(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
