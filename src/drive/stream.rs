//! Server-sent events out of byte chunks: bounded memory, no copy where an event lies whole in one chunk.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>. Two liberties:
//! an event that the clean end of the body finishes counts (some servers leave out the last empty line), and the first
//! line that is no SSE field is kept for the message.

use std::fmt;

use super::fault::quote;

/// Longest line and longest event in bytes. The largest honest one holds the ids of a 166k-token prompt: about 1 MB.
pub const EVENT_LIMIT: usize = 16 << 20;

/// What makes a stream unreadable before its events are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamFault {
    /// A line or event passes this many bytes.
    Giant(usize),
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Giant(limit) => write!(
                f,
                "giant line: an event of more than {limit} bytes; the server does not end its lines"
            ),
        }
    }
}

impl std::error::Error for StreamFault {}

/// Cuts a byte stream into the `data` of its events.
#[derive(Debug)]
pub struct EventReader {
    /// A line whose end has not come yet.
    line: Vec<u8>,
    /// `data` of an event whose end has not come yet.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return: a line feed that follows belongs to it.
    after_cr: bool,
    limit: usize,
    stray: Option<String>,
}

impl Default for EventReader {
    fn default() -> Self {
        Self::new(EVENT_LIMIT)
    }
}

impl EventReader {
    /// A reader that gives up on a line or event of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            limit,
            stray: None,
        }
    }

    /// Reads a chunk and hands the `data` of each event that it ends to `each`; stops at the first error.
    pub fn feed<E, F>(&mut self, chunk: &[u8], each: &mut F) -> Result<(), E>
    where
        E: From<StreamFault>,
        F: FnMut(&[u8]) -> Result<(), E>,
    {
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while !rest.is_empty() {
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.room(self.line.len() + rest.len())?;
                self.line.extend_from_slice(rest);
                break;
            };
            let line = &rest[..end];
            rest = self.past_line_end(&rest[end..]);
            self.room(self.line.len() + line.len())?;
            if self.line.is_empty() {
                rest = self.read_line(line, rest, each)?;
            } else {
                self.line.extend_from_slice(line);
                let whole = std::mem::take(&mut self.line);
                rest = self.read_line(&whole, rest, each)?;
                self.line = whole;
                self.line.clear();
            }
        }
        Ok(())
    }

    /// Tells the reader that the body ended cleanly: what is left is its last event.
    pub fn finish<E, F>(&mut self, each: &mut F) -> Result<(), E>
    where
        E: From<StreamFault>,
        F: FnMut(&[u8]) -> Result<(), E>,
    {
        let last = std::mem::take(&mut self.line);
        if !last.is_empty() {
            self.read_line(&last, &[], each)?;
        }
        self.read_line(&[], &[], each)?;
        Ok(())
    }

    /// Whether an event has begun whose end has not come.
    pub fn is_inside_event(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    /// The start of the first line that is no SSE field, if there was one.
    pub fn stray(&self) -> Option<&str> {
        self.stray.as_deref()
    }

    fn room(&self, bytes: usize) -> Result<(), StreamFault> {
        if bytes > self.limit {
            Err(StreamFault::Giant(self.limit))
        } else {
            Ok(())
        }
    }

    /// What follows the line end at the front of `rest`.
    fn past_line_end<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        match rest {
            [b'\r', b'\n', after @ ..] => after,
            [b'\r'] => {
                self.after_cr = true;
                &[]
            }
            [_, after @ ..] => after,
            [] => &[],
        }
    }

    /// Takes one line; returns `rest`, less an empty line that ended the event.
    fn read_line<'a, E, F>(
        &mut self,
        line: &[u8],
        rest: &'a [u8],
        each: &mut F,
    ) -> Result<&'a [u8], E>
    where
        E: From<StreamFault>,
        F: FnMut(&[u8]) -> Result<(), E>,
    {
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            if !self.has_data && matches!(rest.first(), Some(b'\n' | b'\r')) {
                // The common case: one line of data and its end in one chunk, handed on where it lies.
                each(value)?;
                return Ok(self.past_line_end(rest));
            }
            self.keep(value)?;
        } else if line.is_empty() {
            if self.has_data {
                self.has_data = false;
                let data = std::mem::take(&mut self.data);
                each(&data)?;
                self.data = data;
                self.data.clear();
            }
        } else if line == b"data" {
            self.keep(&[])?;
        } else if self.stray.is_none() && !is_other_field(line) {
            let start = &line[..line.len().min(200)];
            self.stray = Some(quote(&String::from_utf8_lossy(start), 120));
        }
        Ok(rest)
    }

    fn keep(&mut self, value: &[u8]) -> Result<(), StreamFault> {
        self.room(self.data.len() + value.len() + 1)?;
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
        Ok(())
    }
}

fn is_other_field(line: &[u8]) -> bool {
    [&b":"[..], b"event", b"id", b"retry", b"\xef\xbb\xbf"]
        .iter()
        .any(|field| line.starts_with(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Vec::new();
        let mut reader = EventReader::new(100);
        let mut each = |data: &[u8]| {
            events.push(String::from_utf8_lossy(data).into_owned());
            Ok::<(), StreamFault>(())
        };
        for piece in pieces {
            reader.feed(piece, &mut each).expect("no giant line");
        }
        reader.finish(&mut each).expect("no giant line");
        events
    }

    #[test]
    fn every_line_end_and_every_split_gives_the_same_events() {
        let texts: [&[u8]; 3] = [
            b": hi\n\ndata: a\n\nevent: x\ndata:b\ndata: c\nid: 1\n\ndata\n\ndata:  d\n\n",
            b": hi\r\n\r\ndata: a\r\n\r\nevent: x\r\ndata:b\r\ndata: c\r\nid: 1\r\n\r\ndata\r\n\r\ndata:  d\r\n\r\n",
            b": hi\r\rdata: a\r\revent: x\rdata:b\rdata: c\rid: 1\r\rdata\r\rdata:  d\r\r",
        ];
        for text in texts {
            for cut in 0..=text.len() {
                let (left, right) = text.split_at(cut);
                assert_eq!(
                    read(&[left, right]),
                    ["a", "b\nc", "", " d"],
                    "cut at {cut}"
                );
            }
            let single: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(read(&single), ["a", "b\nc", "", " d"]);
        }
    }

    #[test]
    fn an_event_that_the_end_of_the_body_finishes_counts() {
        assert_eq!(read(&[b"data: a\n\ndata: b\n"]), ["a", "b"]);
        assert_eq!(read(&[b"data: a\n\ndata: b"]), ["a", "b"]);
    }

    #[test]
    fn a_giant_line_is_refused_with_bounded_memory() {
        let mut reader = EventReader::new(100);
        let mut each = |_: &[u8]| Ok::<(), StreamFault>(());
        let mut result = Ok(());
        for _ in 0..30 {
            result = reader.feed(b"data: xxxx", &mut each);
            if result.is_err() {
                break;
            }
        }
        assert_eq!(result, Err(StreamFault::Giant(100)));
        assert!(reader.line.len() <= 100);
        let mut many = EventReader::new(100);
        let lines = b"data: 0123456789\n".repeat(20);
        assert_eq!(many.feed(&lines, &mut each), Err(StreamFault::Giant(100)));
    }

    #[test]
    fn a_line_that_is_no_field_is_kept_for_the_message() {
        let mut reader = EventReader::default();
        let mut each = |_: &[u8]| Ok::<(), StreamFault>(());
        reader
            .feed(b"<html>\x1b[1m oops\n", &mut each)
            .expect("short");
        assert_eq!(reader.stray(), Some("<html>[1m oops"));
    }
}
