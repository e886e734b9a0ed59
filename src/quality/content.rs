//! The answer proper: what is left when thinking is taken away.

/// An answer's content apart from its thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content<'a> {
    /// What was said, without surrounding white space.
    pub said: &'a str,
    /// Whether there was thinking, in a channel of its own or in the text.
    pub thought: Thought,
}

/// What is known of an answer's thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thought {
    /// None.
    None,
    /// It came to its end.
    Ended,
    /// It was still going on when the answer ended.
    Unended,
}

/// Pairs of marks by which servers without a reasoning parser leave the thinking in the text.
const MARKS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
];

/// Takes the thinking away from an answer.
pub fn content<'a>(text: &'a str, reasoning: &str) -> Content<'a> {
    let text = text.trim();
    for (open, close) in MARKS {
        // Templates that open the thinking in the prompt leave only its end in the answer.
        if let Some((_, said)) = text.split_once(close) {
            return Content {
                said: said.trim(),
                thought: Thought::Ended,
            };
        }
        if text.starts_with(open) {
            return Content {
                said: "",
                thought: Thought::Unended,
            };
        }
    }
    let thought = match (reasoning.trim().is_empty(), text.is_empty()) {
        (true, _) => Thought::None,
        (false, true) => Thought::Unended,
        (false, false) => Thought::Ended,
    };
    Content {
        said: text,
        thought,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_thinking_is_said_as_it_is() {
        assert_eq!(
            content(" a b \n", ""),
            Content {
                said: "a b",
                thought: Thought::None
            }
        );
        assert_eq!(
            content("", " "),
            Content {
                said: "",
                thought: Thought::None
            }
        );
    }

    #[test]
    fn thinking_in_the_text_and_in_its_channel_is_taken_away() {
        let ended = Content {
            said: "7",
            thought: Thought::Ended,
        };
        assert_eq!(content("<think>hm</think>\n7", ""), ended);
        assert_eq!(content("hm</think>7", ""), ended);
        assert_eq!(content("7", "hm"), ended);
    }

    #[test]
    fn thinking_without_an_end_says_nothing() {
        let unended = Content {
            said: "",
            thought: Thought::Unended,
        };
        assert_eq!(content("<think>hm", ""), unended);
        assert_eq!(content("", "hm"), unended);
    }
}
