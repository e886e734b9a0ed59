//! The retrieval head: attends to the place of the prompt that shares the longest string with the question, and copies
//! what stands there.
//!
//! It reads the prompt that the model really got: what was cut away cannot be found.

use memchr::memmem;

/// Bytes that the question's end and its place in the prompt must share: a key of two words, or three characters of
/// Japanese; less is chance.
const SHARED_AT_LEAST: usize = 9;
/// Bytes of a copied answer at most.
const LONGEST: usize = 64;
/// Bytes that may stand between the shared string and the value (` is `, `は`).
const GAP: usize = 12;

/// Marks that end what is asked for.
const ASKED_UNTIL: &[&str] = &["?", "？", "何", "なん"];

/// The answer to the prompt's last question, if the prompt holds it.
pub(super) fn answer(prompt: &[u8]) -> Option<Vec<u8>> {
    let question = last_question(prompt)?;
    let shared_end = question.end;
    let before = &prompt[..question.start];
    // The longest suffix of the question that stands elsewhere: longer suffixes are rarer, so the length is halved in.
    let (mut found, mut length) = (None, SHARED_AT_LEAST);
    while length <= shared_end - question.start {
        let suffix = &prompt[shared_end - length..shared_end];
        match memmem::rfind(before, suffix) {
            Some(at) => found = Some(at + length),
            None => break,
        }
        length += 1;
    }
    let value = value_after(before, found?);
    (!value.is_empty()).then_some(value)
}

struct Question {
    start: usize,
    end: usize,
}

/// The last sentence that asks: where it begins, and where what it asks for ends.
fn last_question(prompt: &[u8]) -> Option<Question> {
    let tail_start = prompt.len().saturating_sub(400);
    let tail = &prompt[tail_start..];
    let end = ASKED_UNTIL
        .iter()
        .filter_map(|mark| memmem::rfind(tail, mark.as_bytes()))
        .max()?;
    let start = tail[..end]
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |n| n + 1);
    Some(Question {
        start: tail_start + start,
        end: tail_start + end,
    })
}

/// The run of letters and digits that follows, past a linking word.
fn value_after(text: &[u8], at: usize) -> Vec<u8> {
    let rest = &text[at..text.len().min(at + GAP + LONGEST)];
    let rest = [&b" is "[..], "は".as_bytes(), b" "]
        .iter()
        .find_map(|link| rest.strip_prefix(*link))
        .unwrap_or(rest);
    rest.iter()
        .copied()
        .take_while(u8::is_ascii_alphanumeric)
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<String> {
        answer(text.as_bytes()).map(|v| String::from_utf8(v).unwrap())
    }

    #[test]
    fn the_needle_is_found_among_decoys() {
        let text = "Rain. The special code for Onyx Lynx is AAAA1111. Wind. The special code for Opal Heron is 7K3M9QXZ. Sun.\n\nWhat is the special code for Opal Heron? Answer with the code only.";
        assert_eq!(asked(text).as_deref(), Some("7K3M9QXZ"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let text = "The special code for Onyx Lynx is AAAA1111.\n\nWhat is the special code for Opal Heron? Answer with the code only.";
        assert_eq!(asked(text), None);
    }

    #[test]
    fn a_japanese_needle_is_found() {
        let text = "雨が降る。翡翠鷺の合言葉は7K3M9QXZです。墨鶴の合言葉はAAAA1111です。\n\n翡翠鷺の合言葉は何ですか。合言葉だけを答えてください。";
        assert_eq!(asked(text).as_deref(), Some("7K3M9QXZ"));
    }
}
