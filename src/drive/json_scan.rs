//! JSON read as it comes: a body of hundreds of megabytes passes through a few kilobytes.
//!
//! `NaN`, `Infinity` and `-Infinity` are read as numbers, because Python servers write them; the caller decides.

use std::fmt;

/// Bytes kept of a string or number; the text of a 166k-token prompt, which nobody reads here, is a megabyte.
const TOKEN_LIMIT: usize = 256;

/// Deepest nesting that is followed: the deepest honest body has seven levels.
const DEPTH_LIMIT: usize = 64;

/// A piece of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// `{`.
    OpenObject,
    /// `}`.
    CloseObject,
    /// `[`.
    OpenArray,
    /// `]`.
    CloseArray,
    /// The key of a member; escapes are left as they are, what is over 256 bytes is cut off.
    Key(&'a str),
    /// A string value, as a key.
    String(&'a str),
    /// A number, as written.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// Where and why a text is no JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    /// Byte of the text, from 0.
    pub at: u64,
    /// What is wrong.
    pub cause: &'static str,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no JSON at byte {}: {}", self.at, self.cause)
    }
}

impl std::error::Error for JsonFault {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Array,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A value.
    Value,
    /// A value or `]`.
    ValueOrEnd,
    /// A key.
    Key,
    /// A key or `}`.
    KeyOrEnd,
    /// `:`.
    Colon,
    /// `,` or the end of the level.
    CommaOrEnd,
    /// Nothing but white space.
    Nothing,
}

/// What is being read across chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// A string; whether its last byte was an open backslash.
    String {
        escaped: bool,
    },
    /// A number or word.
    Word,
}

/// A push reader.
#[derive(Debug)]
pub struct JsonScanner {
    levels: Vec<Level>,
    expect: Expect,
    inside: Inside,
    token: Vec<u8>,
    at: u64,
}

impl Default for JsonScanner {
    fn default() -> Self {
        Self {
            levels: Vec::new(),
            expect: Expect::Value,
            inside: Inside::Nothing,
            token: Vec::new(),
            at: 0,
        }
    }
}

impl JsonScanner {
    /// Reads a chunk and hands each piece that it ends to `each`; stops at the first error.
    pub fn feed<E, F>(&mut self, chunk: &[u8], each: &mut F) -> Result<(), E>
    where
        E: From<JsonFault>,
        F: FnMut(Piece<'_>) -> Result<(), E>,
    {
        let start = self.at;
        let mut i = 0;
        while i < chunk.len() {
            self.at = start + i as u64;
            match self.inside {
                Inside::String { escaped } => i += self.string(&chunk[i..], escaped, each)?,
                Inside::Word => {
                    let length = chunk[i..].iter().take_while(|b| is_word(**b)).count();
                    self.keep(&chunk[i..i + length]);
                    i += length;
                    if i < chunk.len() {
                        self.word(each)?;
                    }
                }
                Inside::Nothing => {
                    self.mark(chunk[i], each)?;
                    // A word begins with the byte that was looked at.
                    i += usize::from(self.inside != Inside::Word);
                }
            }
        }
        self.at = start + chunk.len() as u64;
        Ok(())
    }

    /// Whether the text is whole.
    pub fn is_whole(&self) -> bool {
        self.expect == Expect::Nothing
    }

    /// Bytes read.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    fn fault(&self, cause: &'static str) -> JsonFault {
        JsonFault { at: self.at, cause }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = TOKEN_LIMIT.saturating_sub(self.token.len());
        self.token
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Reads on in a string; returns the bytes taken.
    fn string<E, F>(&mut self, bytes: &[u8], escaped: bool, each: &mut F) -> Result<usize, E>
    where
        E: From<JsonFault>,
        F: FnMut(Piece<'_>) -> Result<(), E>,
    {
        if escaped {
            self.keep(&bytes[..1]);
            self.inside = Inside::String { escaped: false };
            return Ok(1);
        }
        let Some(end) = memchr::memchr2(b'"', b'\\', bytes) else {
            self.keep(bytes);
            return Ok(bytes.len());
        };
        self.keep(&bytes[..end]);
        if bytes[end] == b'\\' {
            self.keep(b"\\");
            self.inside = Inside::String { escaped: true };
            return Ok(end + 1);
        }
        self.inside = Inside::Nothing;
        let token = std::mem::take(&mut self.token);
        let text = text(&token).ok_or_else(|| self.fault("a string is not UTF-8"))?;
        if matches!(self.expect, Expect::Key | Expect::KeyOrEnd) {
            self.expect = Expect::Colon;
            each(Piece::Key(text))?;
        } else {
            self.value_ended();
            each(Piece::String(text))?;
        }
        self.token = token;
        self.token.clear();
        Ok(end + 1)
    }

    /// Ends a number or word.
    fn word<E, F>(&mut self, each: &mut F) -> Result<(), E>
    where
        E: From<JsonFault>,
        F: FnMut(Piece<'_>) -> Result<(), E>,
    {
        self.inside = Inside::Nothing;
        let token = std::mem::take(&mut self.token);
        let piece = match token.as_slice() {
            b"null" => Piece::Null,
            b"true" => Piece::Bool(true),
            b"false" => Piece::Bool(false),
            word if is_number(word) => Piece::Number(text(word).unwrap_or("")),
            _ => return Err(self.fault("a word that is no value").into()),
        };
        self.value_ended();
        each(piece)?;
        self.token = token;
        self.token.clear();
        Ok(())
    }

    /// Takes a byte outside strings and words.
    fn mark<E, F>(&mut self, byte: u8, each: &mut F) -> Result<(), E>
    where
        E: From<JsonFault>,
        F: FnMut(Piece<'_>) -> Result<(), E>,
    {
        let may_be_value = matches!(self.expect, Expect::Value | Expect::ValueOrEnd);
        match (byte, self.expect) {
            (b' ' | b'\n' | b'\r' | b'\t', _) => {}
            (b'{', _) if may_be_value => {
                self.open(Level::Object, Expect::KeyOrEnd)?;
                each(Piece::OpenObject)?;
            }
            (b'[', _) if may_be_value => {
                self.open(Level::Array, Expect::ValueOrEnd)?;
                each(Piece::OpenArray)?;
            }
            (b'"', Expect::Value | Expect::ValueOrEnd | Expect::Key | Expect::KeyOrEnd) => {
                self.inside = Inside::String { escaped: false };
            }
            (b':', Expect::Colon) => self.expect = Expect::Value,
            (b',', Expect::CommaOrEnd) => {
                self.expect = match self.levels.last() {
                    Some(Level::Object) => Expect::Key,
                    _ => Expect::Value,
                };
            }
            (b'}', Expect::KeyOrEnd | Expect::CommaOrEnd)
                if self.levels.last() == Some(&Level::Object) =>
            {
                self.close();
                each(Piece::CloseObject)?;
            }
            (b']', Expect::ValueOrEnd | Expect::CommaOrEnd)
                if self.levels.last() == Some(&Level::Array) =>
            {
                self.close();
                each(Piece::CloseArray)?;
            }
            (b, _) if may_be_value && is_word(b) => self.inside = Inside::Word,
            _ => return Err(self.fault("a byte that cannot stand here").into()),
        }
        Ok(())
    }

    fn open(&mut self, level: Level, expect: Expect) -> Result<(), JsonFault> {
        if self.levels.len() == DEPTH_LIMIT {
            return Err(self.fault("nested too deep"));
        }
        self.levels.push(level);
        self.expect = expect;
        Ok(())
    }

    fn close(&mut self) {
        self.levels.pop();
        self.value_ended();
    }

    fn value_ended(&mut self) {
        self.expect = if self.levels.is_empty() {
            Expect::Nothing
        } else {
            Expect::CommaOrEnd
        };
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    matches!(digits, b"NaN" | b"Infinity") || digits.first().is_some_and(u8::is_ascii_digit)
}

/// The text of a token that may have been cut in the middle of a character.
fn text(token: &[u8]) -> Option<&str> {
    match std::str::from_utf8(token) {
        Ok(text) => Some(text),
        Err(e) if token.len() == TOKEN_LIMIT && e.error_len().is_none() => {
            std::str::from_utf8(&token[..e.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &[u8], step: usize) -> Result<Vec<String>, JsonFault> {
        let mut scanner = JsonScanner::default();
        let mut seen = Vec::new();
        for chunk in text.chunks(step) {
            scanner.feed(chunk, &mut |piece| {
                seen.push(format!("{piece:?}"));
                Ok::<(), JsonFault>(())
            })?;
        }
        assert_eq!(scanner.bytes(), text.len() as u64);
        seen.push(format!("whole: {}", scanner.is_whole()));
        Ok(seen)
    }

    #[test]
    fn every_split_gives_the_same_pieces() {
        let text =
            r#" {"a\"b": [null, -1.5e-3, NaN, "x\\", {}, []], "c": {"日": true}} "#.as_bytes();
        let whole = pieces(text, text.len()).expect("JSON");
        assert_eq!(
            whole.join(" "),
            r#"OpenObject Key("a\\\"b") OpenArray Null Number("-1.5e-3") Number("NaN") String("x\\\\") OpenObject CloseObject OpenArray CloseArray CloseArray Key("c") OpenObject Key("日") Bool(true) CloseObject CloseObject whole: true"#
        );
        for step in 1..text.len() {
            assert_eq!(pieces(text, step).expect("JSON"), whole, "step {step}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_and_what_is_cut_is_not_whole() {
        for wrong in [
            "{,}",
            "[1 2]",
            "{\"a\" 1}",
            "[}",
            "nil ",
            "{\"a\":}",
            "{} x",
            "<html>",
        ] {
            assert!(pieces(wrong.as_bytes(), 3).is_err(), "{wrong}");
        }
        assert!(pieces("[".repeat(100).as_bytes(), 7).is_err(), "depth");
        assert!(pieces(b"[\"\xff\"]", 7).is_err(), "UTF-8");
        for cut in ["{\"a\":[1,2", "{\"a\":\"", "["] {
            let seen = pieces(cut.as_bytes(), 2).expect("so far JSON");
            assert_eq!(
                seen.last().map(String::as_str),
                Some("whole: false"),
                "{cut}"
            );
        }
    }

    #[test]
    fn a_giant_string_takes_no_memory() {
        let mut text = b"[\"".to_vec();
        text.extend("あ".repeat(100_000).as_bytes());
        text.extend(b"\",7]");
        let mut scanner = JsonScanner::default();
        let mut last = String::new();
        let mut each = |piece: Piece<'_>| {
            last = format!("{piece:?}");
            Ok::<(), JsonFault>(())
        };
        for chunk in text.chunks(1000) {
            scanner.feed(chunk, &mut each).expect("JSON");
        }
        assert!(scanner.is_whole() && scanner.token.capacity() <= 2 * TOKEN_LIMIT);
        assert_eq!(last, "CloseArray");
    }
}
