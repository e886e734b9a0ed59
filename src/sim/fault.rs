//! Faults of the embedded seat, each by its switch; they combine.

use std::fmt;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The old path runs, nothing is logged.
    SilentFallback,
    /// The last rank runs the old path.
    FallbackOnOneRank,
    /// ACTIVE on every rank, declined in every decode step.
    ActiveButDeclined,
    /// Speculation off although asked for.
    SpecOff,
    /// Drafts are nearly never accepted.
    AcceptCollapse,
    /// Long prompts are cut, and billed as cut.
    PromptTruncated,
    /// Long prompts are cut, and billed in full.
    PromptTruncatedHidden,
    /// The prefix cache answers whatever the salt says.
    PrefixCache,
    /// No usage in any answer.
    UsageMissing,
    /// Sixteen tokens a chunk.
    BundledChunks,
    /// Answers end after a quarter.
    EarlyStop,
    /// Every logprob is zero.
    ZeroLogprobs,
    /// Logprobs out of the row of the place before.
    ShiftedLogprobs,
    /// Logprobs that depend on what was asked before.
    OrderDependentLogprobs,
    /// Every answer is one byte over and over.
    RepetitionLoop,
    /// Somebody else uses the seat.
    ForeignTraffic,
    /// Counters begin anew every second.
    CounterReset,
    /// The log file is rotated every second.
    LogRotated,
    /// Nothing is logged.
    LogAbsent,
    /// Every third request answers HTTP 500.
    Http500Mid,
    /// Every third stream is cut.
    StreamCut,
    /// Every third stream stalls.
    Stall,
    /// Every third stream holds an event that is no JSON.
    MalformedSse,
    /// Every step is a twentieth slower.
    Slow,
    /// `/metrics` answers 404.
    NoMetrics,
    /// A question is answered with another value.
    WrongAnswer,
    /// All of the answer is in the reasoning channel.
    ThinkOnly,
    /// The KV window is a fifth smaller.
    KvSmall,
    /// Steps become slower while the seat runs.
    Drift,
    /// One rank is slow, and every step waits for it.
    SlowRank,
    /// Steps take more or less time at random, and some stall.
    Noisy,
    /// The verification lets drafts pass that are not the target's token.
    LossySpec,
    /// Answers differ from request to request.
    Unstable,
}

/// A row of the table of faults.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// The fault.
    pub fault: Fault,
    /// What the seat does, in one sentence.
    pub about: &'static str,
}

/// Every fault.
pub static FAULTS: &[Row] = &[
    Row {
        name: "silent-fallback",
        fault: Fault::SilentFallback,
        about: "asked for lna2, runs exllamav3 at a plausible pace, logs nothing",
    },
    Row {
        name: "fallback-on-one-rank",
        fault: Fault::FallbackOnOneRank,
        about: "the last rank runs exllamav3: no ACTIVE line, the other counter moves",
    },
    Row {
        name: "active-but-declined",
        fault: Fault::ActiveButDeclined,
        about: "ACTIVE on every rank, every decode step declined",
    },
    Row {
        name: "spec-off",
        fault: Fault::SpecOff,
        about: "speculation is off although it was asked for",
    },
    Row {
        name: "accept-collapse",
        fault: Fault::AcceptCollapse,
        about: "accept length 1.09",
    },
    Row {
        name: "prompt-truncated",
        fault: Fault::PromptTruncated,
        about: "long prompts keep their last two fifths; usage tells the cut length",
    },
    Row {
        name: "prompt-truncated-hidden",
        fault: Fault::PromptTruncatedHidden,
        about: "the same, and usage claims the full length",
    },
    Row {
        name: "prefix-cache",
        fault: Fault::PrefixCache,
        about: "every prompt is answered from the cache, whatever its salt",
    },
    Row {
        name: "usage-missing",
        fault: Fault::UsageMissing,
        about: "no answer carries usage",
    },
    Row {
        name: "bundled-chunks",
        fault: Fault::BundledChunks,
        about: "sixteen tokens arrive in one chunk",
    },
    Row {
        name: "early-stop",
        fault: Fault::EarlyStop,
        about: "answers end after a quarter of max_tokens, end token ignored or not",
    },
    Row {
        name: "zero-logprobs",
        fault: Fault::ZeroLogprobs,
        about: "every logprob is 0.0",
    },
    Row {
        name: "shifted-logprobs",
        fault: Fault::ShiftedLogprobs,
        about: "each token has the logprob that the place before its own gives it",
    },
    Row {
        name: "order-dependent-logprobs",
        fault: Fault::OrderDependentLogprobs,
        about: "logprobs change with what was asked before",
    },
    Row {
        name: "repetition-loop",
        fault: Fault::RepetitionLoop,
        about: "every answer is one byte over and over, accept length near its maximum",
    },
    Row {
        name: "foreign-traffic",
        fault: Fault::ForeignTraffic,
        about: "somebody else's requests run beside ours",
    },
    Row {
        name: "counter-reset",
        fault: Fault::CounterReset,
        about: "the counters begin anew every second",
    },
    Row {
        name: "log-rotated",
        fault: Fault::LogRotated,
        about: "the log file is moved away and made anew every second (with --log)",
    },
    Row {
        name: "log-absent",
        fault: Fault::LogAbsent,
        about: "nothing is logged",
    },
    Row {
        name: "http-500-mid",
        fault: Fault::Http500Mid,
        about: "every third request answers HTTP 500",
    },
    Row {
        name: "stream-cut",
        fault: Fault::StreamCut,
        about: "every third stream is cut in the middle",
    },
    Row {
        name: "stall",
        fault: Fault::Stall,
        about: "every third stream falls silent for ever",
    },
    Row {
        name: "malformed-sse",
        fault: Fault::MalformedSse,
        about: "every third stream holds an event that is no JSON",
    },
    Row {
        name: "slow",
        fault: Fault::Slow,
        about: "every step takes a twentieth longer",
    },
    Row {
        name: "no-metrics",
        fault: Fault::NoMetrics,
        about: "/metrics answers 404",
    },
    Row {
        name: "wrong-answer",
        fault: Fault::WrongAnswer,
        about: "a question is answered with a value of its own",
    },
    Row {
        name: "think-only",
        fault: Fault::ThinkOnly,
        about: "the whole answer comes in the reasoning channel",
    },
    Row {
        name: "kv-small",
        fault: Fault::KvSmall,
        about: "the KV window is a fifth smaller",
    },
    Row {
        name: "drift",
        fault: Fault::Drift,
        about: "steps become a tenth slower every ten seconds",
    },
    Row {
        name: "slow-rank",
        fault: Fault::SlowRank,
        about: "the last rank takes three tenths longer, and every decode step waits for it",
    },
    Row {
        name: "noisy",
        fault: Fault::Noisy,
        about: "steps take up to a third more or less time at random, and one in sixty-four stalls",
    },
    Row {
        name: "lossy-spec",
        fault: Fault::LossySpec,
        about: "the verification lets a wrong draft pass once in eight tokens",
    },
    Row {
        name: "unstable",
        fault: Fault::Unstable,
        about: "one token in eight is the second likeliest, other ones in each answer",
    },
];

/// A name that is no fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFault(String);

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = FAULTS.iter().map(|r| r.name).collect();
        write!(f, "unknown fault `{}`; one of {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownFault {}

/// The fault of this name.
///
/// # Errors
/// When there is none; the message lists them all.
pub fn parse(name: &str) -> Result<Fault, UnknownFault> {
    FAULTS
        .iter()
        .find(|r| r.name == name)
        .map(|r| r.fault)
        .ok_or_else(|| UnknownFault(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_none_stands_twice() {
        for (place, row) in FAULTS.iter().enumerate() {
            assert_eq!(parse(row.name), Ok(row.fault));
            assert!(FAULTS[..place].iter().all(|other| other.fault != row.fault));
            assert!(
                !row.about.ends_with('.') && row.about.len() > 10,
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_all_known_ones() {
        let told = parse("slow-motion").unwrap_err().to_string();
        assert!(
            told.contains("`slow-motion`") && told.contains("silent-fallback"),
            "{told}"
        );
    }
}
