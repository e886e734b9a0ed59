//! Token accounts: chunks against usage, and answers that stopped before they should.

/// The account of one streamed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Tokens that the server billed.
    pub completion: u64,
    /// Chunks that carried a token.
    pub chunks: u64,
    /// Tokens in the first chunk, where known.
    pub first_chunk: Option<u64>,
}

/// How chunks and tokens compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Chunking {
    /// No chunk carries more than a step can yield.
    Plain {
        /// Tokens per chunk on average.
        mean: f64,
    },
    /// Chunks carry several steps: the times of the tokens are not known.
    Bundled {
        /// Tokens per chunk on average.
        mean: f64,
    },
    /// More chunks than tokens: the bill or the counting of chunks is wrong.
    MoreChunksThanTokens,
    /// Too few tokens to say, or none streamed.
    TooShort,
}

/// Tokens below which one full last chunk would decide the mean.
const FEWEST_TOKENS: u64 = 16;
/// Slack of the mean, in tokens per chunk: an answer's last chunk may be short, and the first may hold two.
const SLACK: f64 = 0.5;

/// Holds chunks against tokens; a step yields at most `draft_tokens` and one more.
pub fn chunking(account: Account, draft_tokens: u32) -> Chunking {
    if account.chunks == 0 || account.completion < FEWEST_TOKENS {
        return Chunking::TooShort;
    }
    // One chunk more than tokens is seen where the end token's empty text is sent too.
    if account.chunks > account.completion + 1 {
        return Chunking::MoreChunksThanTokens;
    }
    let mean = account.completion as f64 / account.chunks as f64;
    if mean > f64::from(draft_tokens) + 1.0 + SLACK {
        Chunking::Bundled { mean }
    } else {
        Chunking::Plain { mean }
    }
}

/// Tokens per second between the first and the last chunk: what came with the first chunk was there before the clock began.
/// Absent when the tokens of the first chunk are unknown, or no time passed.
pub fn decode_rate(account: Account, seconds: f64) -> Option<f64> {
    let later = account.completion.checked_sub(account.first_chunk?)?;
    (seconds > 0.0 && later > 0).then(|| later as f64 / seconds)
}

/// Whether the end token was obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndToken {
    /// The answer may end by itself.
    Obeyed,
    /// It must go on to `max_tokens`.
    Ignored,
}

/// How long an answer is beside what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As it should be.
    Whole,
    /// It ended before `max_tokens` although the end token was to be ignored, or although it says `length`.
    Early,
    /// It has more tokens than `max_tokens`: the bill is wrong, or the limit was not kept.
    Beyond,
}

/// Holds the tokens of an answer against its limit.
pub fn extent(
    completion: u64,
    max_tokens: u64,
    end: EndToken,
    finish_reason: Option<&str>,
) -> Extent {
    let says_cut = finish_reason.is_some_and(super::needle::is_cut);
    if completion > max_tokens {
        Extent::Beyond
    } else if completion < max_tokens && (end == EndToken::Ignored || says_cut) {
        Extent::Early
    } else {
        Extent::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(completion: u64, chunks: u64) -> Account {
        Account {
            completion,
            chunks,
            first_chunk: Some(1),
        }
    }

    #[test]
    fn one_step_a_chunk_is_plain_with_and_without_drafts() {
        assert_eq!(
            chunking(account(256, 256), 0),
            Chunking::Plain { mean: 1.0 }
        );
        assert_eq!(
            chunking(account(256, 100), 3),
            Chunking::Plain { mean: 2.56 }
        );
        assert_eq!(
            chunking(account(256, 257), 0),
            Chunking::Plain {
                mean: 256.0 / 257.0
            }
        );
    }

    #[test]
    fn several_steps_a_chunk_are_bundled() {
        assert_eq!(
            chunking(account(256, 64), 0),
            Chunking::Bundled { mean: 4.0 }
        );
        assert_eq!(
            chunking(account(256, 32), 3),
            Chunking::Bundled { mean: 8.0 }
        );
    }

    #[test]
    fn accounts_that_cannot_be_are_named() {
        assert_eq!(
            chunking(account(100, 256), 0),
            Chunking::MoreChunksThanTokens
        );
        assert_eq!(chunking(account(4, 1), 0), Chunking::TooShort);
        assert_eq!(chunking(account(100, 0), 0), Chunking::TooShort);
    }

    #[test]
    fn the_rate_leaves_the_first_chunk_out() {
        assert_eq!(
            decode_rate(
                Account {
                    completion: 104,
                    chunks: 30,
                    first_chunk: Some(4)
                },
                2.0
            ),
            Some(50.0)
        );
        assert_eq!(
            decode_rate(
                Account {
                    completion: 104,
                    chunks: 30,
                    first_chunk: None
                },
                2.0
            ),
            None
        );
        assert_eq!(decode_rate(account(104, 30), 0.0), None);
        assert_eq!(decode_rate(account(1, 1), 1.0), None);
        assert_eq!(decode_rate(account(0, 1), 1.0), None);
    }

    #[test]
    fn early_and_beyond_are_told_from_whole() {
        assert_eq!(
            extent(256, 256, EndToken::Ignored, Some("length")),
            Extent::Whole
        );
        assert_eq!(
            extent(100, 256, EndToken::Obeyed, Some("stop")),
            Extent::Whole
        );
        assert_eq!(
            extent(100, 256, EndToken::Ignored, Some("stop")),
            Extent::Early
        );
        assert_eq!(
            extent(100, 256, EndToken::Obeyed, Some("length")),
            Extent::Early
        );
        assert_eq!(
            extent(260, 256, EndToken::Ignored, Some("length")),
            Extent::Beyond
        );
    }
}
