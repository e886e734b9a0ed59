//! What an answer says of itself: classes, loops, agreement, lengths, token accounts, logprobs; pure functions.

pub mod agreement;
pub mod content;
pub mod degeneration;
pub mod essay;
pub mod greedy;
pub mod length;
pub mod logprobs;
pub mod needle;
pub mod physics;
pub mod tokens;
