//! How an essay ended: by itself with real text, or not.

use super::content::{Thought, content};
use super::degeneration::degenerate;
use super::needle::{Answer, is_cut};

/// How an essay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// By itself, with real text.
    Ended,
    /// Cut at `max_tokens`: the limit's fault as often as the model's.
    Cut,
    /// Nothing was said.
    Empty,
    /// Thinking ate the whole budget, or no answer followed it.
    ThinkOnly,
    /// It ended by itself, but in a loop.
    Looped,
    /// It ended for another reason than its own end (`abort`, `content_filter`, an error).
    Stopped,
    /// The server did not say how.
    Unsaid,
}

impl Ending {
    /// Every ending, the good one first.
    pub const ALL: [Self; 7] = [
        Self::Ended,
        Self::Cut,
        Self::Empty,
        Self::ThinkOnly,
        Self::Looped,
        Self::Stopped,
        Self::Unsaid,
    ];

    /// The word that gates and reports use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Cut => "cut",
            Self::Empty => "empty",
            Self::ThinkOnly => "think_only",
            Self::Looped => "looped",
            Self::Stopped => "stopped",
            Self::Unsaid => "unsaid",
        }
    }
}

/// How an essay ended.
pub fn ending(answer: &Answer<'_>) -> Ending {
    let content = content(answer.text, answer.reasoning);
    if content.said.is_empty() {
        return if content.thought == Thought::None {
            Ending::Empty
        } else {
            Ending::ThinkOnly
        };
    }
    let ended = match answer.finish_reason {
        None => Ending::Unsaid,
        Some(reason) if is_cut(reason) => Ending::Cut,
        Some("stop" | "eos" | "end_turn" | "eos_token" | "stop_sequence") => Ending::Ended,
        Some(_) => Ending::Stopped,
    };
    if ended == Ending::Ended && degenerate(content.said).is_some() {
        Ending::Looped
    } else {
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, reasoning: &str, finish_reason: Option<&str>) -> Ending {
        ending(&Answer {
            text,
            reasoning,
            finish_reason,
        })
    }

    #[test]
    fn an_essay_that_ends_by_itself_is_ended() {
        assert_eq!(of("It was a good winter.", "", Some("stop")), Ending::Ended);
        assert_eq!(of("よい冬だった。", "考え", Some("stop")), Ending::Ended);
    }

    #[test]
    fn each_other_ending_is_told_apart() {
        assert_eq!(of("It was a", "", Some("length")), Ending::Cut);
        assert_eq!(of("", "", Some("stop")), Ending::Empty);
        assert_eq!(of("", "hm", Some("length")), Ending::ThinkOnly);
        assert_eq!(of("<think>hm", "", Some("length")), Ending::ThinkOnly);
        assert_eq!(of(&"so on ".repeat(60), "", Some("stop")), Ending::Looped);
        assert_eq!(of("It was", "", Some("abort")), Ending::Stopped);
        assert_eq!(of("It was good.", "", None), Ending::Unsaid);
    }

    #[test]
    fn every_ending_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<&str> =
            Ending::ALL.iter().map(|e| e.word()).collect();
        assert_eq!(words.len(), Ending::ALL.len());
    }
}
