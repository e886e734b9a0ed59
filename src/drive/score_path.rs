//! Where in a body with prompt logprobs a reader stands.

use crate::dialect::PromptLogprobs;

/// The brackets of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    /// `{`.
    Object,
    /// `[`.
    Array,
}

/// What a container of the body is; what is of no interest is `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    Root,
    Choices,
    Choice,
    /// vLLM's `prompt_logprobs`, one of its positions, and one id of a position.
    Positions,
    Position,
    Entry,
    /// `logprobs` of an echo and its two lists.
    Logprobs,
    TokenLogprobs,
    Tokens,
    PromptIds,
    Usage,
    UsageDetails,
    /// SGLang's `meta_info`, its `input_token_logprobs`, and one `[logprob, id, text]`.
    Meta,
    Triples,
    Triple,
    Other,
}

/// A container that is open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    pub(super) zone: Zone,
    /// Name of the member that comes next or is open, in an object.
    pub(super) key: Key,
    /// Number of the element that comes next or is open, in an array.
    pub(super) index: usize,
}

/// The keys that mean something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Choices,
    PromptLogprobs,
    Logprob,
    Rank,
    Logprobs,
    TokenLogprobs,
    Tokens,
    PromptTokenIds,
    Usage,
    PromptTokens,
    CompletionTokens,
    PromptTokensDetails,
    CachedTokens,
    MetaInfo,
    InputTokenLogprobs,
    /// A token id.
    Id(u32),
    Other,
}

impl Key {
    pub(super) fn of(key: &str, zone: Zone) -> Self {
        if zone == Zone::Position {
            return key.parse().map_or(Self::Other, Self::Id);
        }
        match key {
            "choices" => Self::Choices,
            "prompt_logprobs" => Self::PromptLogprobs,
            "logprob" => Self::Logprob,
            "rank" => Self::Rank,
            "logprobs" => Self::Logprobs,
            "token_logprobs" => Self::TokenLogprobs,
            "tokens" => Self::Tokens,
            "prompt_token_ids" => Self::PromptTokenIds,
            "usage" => Self::Usage,
            "prompt_tokens" => Self::PromptTokens,
            "completion_tokens" => Self::CompletionTokens,
            "prompt_tokens_details" => Self::PromptTokensDetails,
            "cached_tokens" => Self::CachedTokens,
            "meta_info" => Self::MetaInfo,
            "input_token_logprobs" => Self::InputTokenLogprobs,
            _ => Self::Other,
        }
    }
}

impl Level {
    /// What the container is that opens inside this one.
    pub(super) fn inside(self, opened: Opened, route: PromptLogprobs) -> Zone {
        let array = opened == Opened::Array;
        let vllm = route == PromptLogprobs::Vllm;
        let echo = route == PromptLogprobs::Echo;
        match (self.zone, self.key, array) {
            (Zone::Root, Key::Choices, true) => Zone::Choices,
            (Zone::Choices, _, false) if self.index == 0 => Zone::Choice,
            (Zone::Choice, Key::PromptLogprobs, true) if vllm => Zone::Positions,
            (Zone::Positions, _, false) => Zone::Position,
            (Zone::Position, Key::Id(_), false) => Zone::Entry,
            (Zone::Choice, Key::Logprobs, false) if echo => Zone::Logprobs,
            (Zone::Logprobs, Key::TokenLogprobs, true) => Zone::TokenLogprobs,
            (Zone::Logprobs, Key::Tokens, true) => Zone::Tokens,
            (Zone::Choice | Zone::Root, Key::PromptTokenIds, true) => Zone::PromptIds,
            (Zone::Root, Key::Usage, false) => Zone::Usage,
            (Zone::Usage, Key::PromptTokensDetails, false) => Zone::UsageDetails,
            (Zone::Root, Key::MetaInfo, false) => Zone::Meta,
            (Zone::Meta, Key::InputTokenLogprobs, true) => Zone::Triples,
            (Zone::Triples, _, true) => Zone::Triple,
            _ => Zone::Other,
        }
    }
}
