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
    /// A number that nobody reads (`created`, `total_tokens`).
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
    /// Ids of the payload that fitted last.
    ids: Vec<u32>,
}

/// What a payload holds at the holes of its shape.
#[derive(Debug, PartialEq)]
pub(super) struct Fit<'a> {
    /// The text, unescaped.
    pub(super) text: Cow<'a, str>,
    /// `completion_tokens`, where the shape has it.
    pub(super) completion: Option<u64>,
    /// Whether the shape has a list of ids; [`Shape::ids`] holds it.
    pub(super) has_ids: bool,
}

impl Shape {
    /// Takes the shape of `payload`, whose text lies unescaped at `text`.
    ///
    /// What is looked for cannot stand inside a string, where its quotes would be escaped.
    pub(super) fn learn(&mut self, payload: &[u8], text: Range<usize>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(payload);
        self.parts.clear();
        let mut holes = vec![(text, Hole::Text)];
        for (key, hole) in [
            (&b"\"created\":"[..], Hole::Number),
            (b"\"token_ids\":[", Hole::Ids),
            (b"\"completion_tokens\":", Hole::Completion),
            (b"\"total_tokens\":", Hole::Number),
        ] {
            if let Some(found) = memchr::memmem::find(payload, key) {
                let start = found + key.len();
                let rest = &payload[start..];
                let length = match hole {
                    Hole::Ids => ids(rest, &mut self.ids),
                    _ => number(rest).map(|n| n.digits),
                };
                holes.extend(length.map(|length| (start..start + length, hole)));
            }
        }
        holes.sort_by_key(|(range, _)| range.start);
        let mut from = 0;
        for (range, hole) in holes {
            self.parts.push(Part {
                literal: from..range.start,
                hole,
            });
            from = range.end;
        }
        self.tail = from;
    }

    /// Forgets the shape.
    pub(super) fn forget(&mut self) {
        self.parts.clear();
    }

    /// What `payload` holds, if it has this shape.
    pub(super) fn fit<'a>(&mut self, payload: &'a [u8]) -> Option<Fit<'a>> {
        if self.parts.is_empty() {
            return None;
        }
        let mut rest = payload;
        let mut fit = Fit {
            text: Cow::Borrowed(""),
            completion: None,
            has_ids: false,
        };
        for part in &self.parts {
            rest = rest.strip_prefix(&self.bytes[part.literal.clone()])?;
            let length = match part.hole {
                Hole::Text => {
                    let length = string(rest)?;
                    fit.text = unescape(&rest[..length])?;
                    length
                }
                Hole::Completion => {
                    let number = number(rest)?;
                    fit.completion = Some(number.value);
                    number.digits
                }
                Hole::Number => number(rest)?.digits,
                Hole::Ids => {
                    fit.has_ids = true;
                    ids(rest, &mut self.ids)?
                }
            };
            rest = &rest[length..];
        }
        (rest == &self.bytes[self.tail..]).then_some(fit)
    }

    /// The ids of the payload that fitted last.
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids
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

/// A JSON number without sign or fraction.
struct Number {
    value: u64,
    digits: usize,
}

/// The number that begins here; none if there is none, or it has leading zeros or more than 19 digits.
fn number(bytes: &[u8]) -> Option<Number> {
    let mut number = Number {
        value: 0,
        digits: 0,
    };
    for byte in bytes {
        if !byte.is_ascii_digit() {
            break;
        }
        if number.digits == 19 || (number.digits == 1 && number.value == 0) {
            return None;
        }
        number.value = number.value * 10 + u64::from(byte - b'0');
        number.digits += 1;
    }
    (number.digits > 0).then_some(number)
}

/// Reads the list of ids that begins here, up to its closing bracket, into `ids`; returns its length in bytes.
fn ids(bytes: &[u8], ids: &mut Vec<u32>) -> Option<usize> {
    ids.clear();
    if bytes.first() == Some(&b']') {
        return Some(0);
    }
    let mut at = 0;
    loop {
        let number = number(&bytes[at..])?;
        ids.push(u32::try_from(number.value).ok()?);
        at += number.digits;
        if bytes.get(at) != Some(&b',') {
            return Some(at);
        }
        at += 1;
    }
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
        let mut shape = learned(PLAIN, "Apple");
        let mut fit = |text: &str| {
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
        let mut shape = learned(PLAIN, "Apple");
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
        let mut shape = learned(FULL, " cherry");
        let payload = br#"{"choices":[{"text":", date","token_ids":[28,3688]}],"usage":{"prompt_tokens":44,"total_tokens":47,"completion_tokens":3}}"#;
        let fit = shape.fit(payload).expect("same shape");
        assert_eq!(fit.text, ", date");
        assert_eq!(fit.completion, Some(3));
        assert!(fit.has_ids);
        assert_eq!(shape.ids(), [28, 3688]);
        let other = br#"{"choices":[{"text":", date","token_ids":[28]}],"usage":{"prompt_tokens":45,"total_tokens":47,"completion_tokens":3}}"#;
        assert_eq!(shape.fit(other), None, "another prompt count");
    }
}
