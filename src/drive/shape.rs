//! The shape that one stream's chunks share, so that a chunk like the last one is read by comparing, not parsing.
//!
//! The chunks of a stream differ in their text, their running token counts and their token ids, and in nothing else
//! but the few that carry more. A shape is what a fully parsed chunk looked like around those places. A payload that
//! fits it byte for byte means the same as that chunk; any other is parsed in full, so a shape can make reading
//! faster but never different.

use std::borrow::Cow;
use std::ops::Range;

/// A place where chunks of one shape differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    /// A JSON string, from after its opening quote to before its closing one.
    Text,
    /// `completion_tokens`.
    Completion,
    /// A number that nobody reads (`total_tokens`).
    Number,
    /// A list of token ids, between its brackets.
    Ids,
}

/// Bytes between holes, followed by a hole.
#[derive(Debug)]
struct Part {
    literal: Range<usize>,
    hole: Hole,
}

/// What the chunks of a stream have in common.
#[derive(Debug, Default)]
pub(super) struct Shape {
    bytes: Vec<u8>,
    parts: Vec<Part>,
    tail: usize,
}

/// What a payload holds at the holes of its shape.
#[derive(Debug, PartialEq)]
pub(super) struct Fit<'a> {
    /// The text, unescaped.
    pub(super) text: Cow<'a, str>,
    /// `completion_tokens`, where the shape has it.
    pub(super) completion: Option<u64>,
    /// The ids as their decimal list, where the shape has one.
    pub(super) ids: Option<&'a str>,
}

impl Shape {
    /// Takes the shape of `payload`, whose text lies unescaped at `text`.
    ///
    /// Counts and ids are looked for after the text only, where every known server has them. A string cannot hold what
    /// is looked for, because its quotes would be escaped.
    pub(super) fn learn(&mut self, payload: &[u8], text: Range<usize>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(payload);
        self.parts.clear();
        let mut literal = 0;
        self.parts.push(Part {
            literal: literal..text.start,
            hole: Hole::Text,
        });
        literal = text.end;
        let mut holes: Vec<(Range<usize>, Hole)> = Vec::new();
        for (key, hole) in [
            (&b"\"token_ids\":["[..], Hole::Ids),
            (b"\"completion_tokens\":", Hole::Completion),
            (b"\"total_tokens\":", Hole::Number),
        ] {
            if let Some(found) = memchr::memmem::find(&payload[text.end..], key) {
                let start = text.end + found + key.len();
                let length = match hole {
                    Hole::Ids => id_list(&payload[start..]),
                    _ => digits(&payload[start..]),
                };
                holes.push((start..start + length, hole));
            }
        }
        holes.sort_by_key(|(range, _)| range.start);
        for (range, hole) in holes {
            self.parts.push(Part {
                literal: literal..range.start,
                hole,
            });
            literal = range.end;
        }
        self.tail = literal;
    }

    /// Forgets the shape.
    pub(super) fn forget(&mut self) {
        self.parts.clear();
    }

    /// What `payload` holds, if it has this shape.
    pub(super) fn fit<'a>(&self, payload: &'a [u8]) -> Option<Fit<'a>> {
        if self.parts.is_empty() {
            return None;
        }
        let mut rest = payload;
        let mut fit = Fit {
            text: Cow::Borrowed(""),
            completion: None,
            ids: None,
        };
        for part in &self.parts {
            rest = rest.strip_prefix(&self.bytes[part.literal.clone()])?;
            let length = match part.hole {
                Hole::Text => string(rest)?,
                Hole::Completion | Hole::Number => digits(rest),
                Hole::Ids => id_list(rest),
            };
            let (value, after) = rest.split_at(length);
            match part.hole {
                Hole::Text => fit.text = unescape(value)?,
                Hole::Completion => fit.completion = Some(number(value)?),
                Hole::Number => {
                    number(value)?;
                }
                Hole::Ids => fit.ids = Some(ids(value)?),
            }
            rest = after;
        }
        (rest == &self.bytes[self.tail..]).then_some(fit)
    }
}

/// Bytes of the string that begins here, up to its closing quote.
fn string(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[found] == b'"' {
            return Some(found);
        }
        at = found + 2;
    }
}

fn unescape(value: &[u8]) -> Option<Cow<'_, str>> {
    let plain = !value.iter().any(|b| *b == b'\\' || *b < 0x20);
    if plain {
        return std::str::from_utf8(value).ok().map(Cow::Borrowed);
    }
    let mut quoted = Vec::with_capacity(value.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(value);
    quoted.push(b'"');
    serde_json::from_slice::<String>(&quoted)
        .ok()
        .map(Cow::Owned)
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn id_list(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|b| b.is_ascii_digit() || **b == b',')
        .count()
}

/// A list of ids between its brackets, if each is one.
fn ids(value: &[u8]) -> Option<&str> {
    let each = |id: &[u8]| number(id).is_some_and(|id| u32::try_from(id).is_ok());
    let good = value.is_empty() || value.split(|b| *b == b',').all(each);
    std::str::from_utf8(value).ok().filter(|_| good)
}

/// A JSON number without sign or fraction; none if it is empty, has leading zeros or is too large.
fn number(value: &[u8]) -> Option<u64> {
    if value.len() > 1 && value[0] == b'0' {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] =
        br#"{"id":"x","choices":[{"delta":{"content":"Apple"},"finish_reason":null}]}"#;
    const FULL: &[u8] = br#"{"choices":[{"text":" cherry","token_ids":[23636]}],"usage":{"prompt_tokens":44,"total_tokens":45,"completion_tokens":1}}"#;

    fn learned(payload: &[u8], text: &str) -> Shape {
        let mut shape = Shape::default();
        let at = memchr::memmem::find(payload, text.as_bytes()).expect("in it");
        shape.learn(payload, at..at + text.len());
        shape
    }

    #[test]
    fn a_chunk_that_differs_in_its_text_only_fits() {
        let shape = learned(PLAIN, "Apple");
        let fit = |text: &str| {
            let payload = String::from_utf8_lossy(PLAIN).replace("Apple", text);
            shape.fit(payload.as_bytes()).map(|f| f.text.into_owned())
        };
        assert_eq!(fit("pear").as_deref(), Some("pear"));
        assert_eq!(fit("").as_deref(), Some(""));
        assert_eq!(fit("りんご").as_deref(), Some("りんご"));
        assert_eq!(fit(r#"a\"b\\\u00e9\n"#).as_deref(), Some("a\"b\\é\n"));
    }

    #[test]
    fn a_chunk_that_differs_elsewhere_or_is_no_json_does_not_fit() {
        let shape = learned(PLAIN, "Apple");
        for wrong in [
            r#"{"id":"x","choices":[{"delta":{"content":"Apple"},"finish_reason":"stop"}]}"#,
            r#"{"id":"x","choices":[{"delta":{"content":"Apple"},"finish_reason":null}]"#,
            r#"{"id":"x","choices":[{"delta":{"content":"App"le"},"finish_reason":null}]}"#,
            r#"{"id":"x","choices":[{"delta":{"content":"App\q"},"finish_reason":null}]}"#,
            r#"{"id":"x","choices":[{"delta":{"content":"Apple\"#,
            "",
        ] {
            assert_eq!(shape.fit(wrong.as_bytes()), None, "{wrong}");
        }
        let mut bytes = PLAIN.to_vec();
        let at = memchr::memmem::find(&bytes, b"Apple").expect("in it");
        bytes[at] = 0xff;
        assert_eq!(shape.fit(&bytes), None);
        bytes[at] = b'\n';
        assert_eq!(
            shape.fit(&bytes),
            None,
            "a raw control character is no JSON"
        );
    }

    #[test]
    fn counts_and_ids_are_read_at_their_places() {
        let shape = learned(FULL, " cherry");
        let payload = br#"{"choices":[{"text":", date","token_ids":[28,3688]}],"usage":{"prompt_tokens":44,"total_tokens":47,"completion_tokens":3}}"#;
        let fit = shape.fit(payload).expect("same shape");
        assert_eq!(fit.text, ", date");
        assert_eq!(fit.completion, Some(3));
        assert_eq!(fit.ids, Some("28,3688"));
        let other = br#"{"choices":[{"text":", date","token_ids":[28]}],"usage":{"prompt_tokens":45,"total_tokens":47,"completion_tokens":3}}"#;
        assert_eq!(shape.fit(other), None, "another prompt count");
    }
}
