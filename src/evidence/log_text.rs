//! Physical lines of a log: cut from a stream with bounded memory, then made readable.

use std::borrow::Cow;
use std::io::{self, BufRead};

/// Longest line that is looked at, in bytes; the rest of a longer line is skipped and counted. vLLM's engine
/// configuration is the longest known line, 6 kB.
pub const LINE_LIMIT: usize = 1024 * 1024;

/// What a pass over a log saw besides the lines it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogAccount {
    /// Physical lines.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
    /// Lines longer than [`LINE_LIMIT`]; their rest was not looked at.
    pub too_long: u64,
    /// Whether the last line had no newline yet.
    pub open_end: bool,
}

/// Calls `each` with every line's offset and bytes, without its newline.
pub(super) fn for_each_line<R: BufRead>(
    mut source: R,
    mut each: impl FnMut(u64, &[u8]),
) -> io::Result<LogAccount> {
    let mut account = LogAccount::default();
    // The front of a line that a previous buffer began; empty nearly always.
    let mut carry: Vec<u8> = Vec::new();
    let mut start = 0u64;
    let mut skipped = false;
    loop {
        let buffer = match source.fill_buf() {
            Ok(buffer) => buffer,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if buffer.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', buffer);
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        let room = LINE_LIMIT.saturating_sub(carry.len());
        let kept = &piece[..piece.len().min(room)];
        skipped |= kept.len() < piece.len();
        let consumed = piece.len() + usize::from(end.is_some());
        if end.is_none() {
            carry.extend_from_slice(kept);
        } else if carry.is_empty() {
            each(start, kept);
        } else {
            carry.extend_from_slice(kept);
            each(start, &carry);
            carry.clear();
        }
        account.bytes += consumed as u64;
        if end.is_some() {
            account.lines += 1;
            account.too_long += u64::from(std::mem::take(&mut skipped));
            start = account.bytes;
        }
        source.consume(consumed);
    }
    if start < account.bytes {
        account.lines += 1;
        account.too_long += u64::from(skipped);
        account.open_end = true;
        each(start, &carry);
    }
    Ok(account)
}

/// A line as a person would read it: no terminal codes, bytes that are no UTF-8 replaced.
pub(super) fn clean(line: &[u8]) -> Cow<'_, str> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if memchr::memchr(0x1b, line).is_none() {
        return String::from_utf8_lossy(line);
    }
    Cow::Owned(String::from_utf8_lossy(&without_codes(line)).into_owned())
}

/// The line without escape sequences (colours, cursor movements, titles, links).
fn without_codes(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let length = match rest.first() {
            // A control sequence ends at its first byte from `@` to `~`.
            Some(b'[') => rest[1..]
                .iter()
                .position(|b| (0x40..=0x7e).contains(b))
                .map_or(rest.len(), |end| end + 2),
            // An operating-system command ends at BEL or at `ESC \`.
            Some(b']') => match memchr::memchr2(0x07, 0x1b, rest) {
                Some(end) if rest[end] == 0x1b => (end + 2).min(rest.len()),
                Some(end) => end + 1,
                None => rest.len(),
            },
            Some(_) => 1,
            None => 0,
        };
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
    out
}

/// A message cut to `limit` characters, control characters made visible as `·`; for reports.
pub fn excerpt(text: &str, limit: usize) -> String {
    let mut chars = text.chars();
    let mut out: String = chars
        .by_ref()
        .take(limit)
        .map(|c| if c.is_control() { '·' } else { c })
        .collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn lines(source: impl BufRead) -> (Vec<(u64, usize)>, LogAccount) {
        let mut seen = Vec::new();
        let account = for_each_line(source, |at, line| seen.push((at, line.len()))).unwrap();
        (seen, account)
    }

    #[test]
    fn lines_are_the_same_whatever_the_buffer() {
        let text = b"one\n\ntwo\r\nthree without an end";
        let (whole, account) = lines(&text[..]);
        assert_eq!(whole, [(0, 3), (4, 0), (5, 4), (10, 20)]);
        assert!(account.open_end);
        assert_eq!(account.lines, 4);
        for size in 1..40 {
            assert_eq!(
                lines(BufReader::with_capacity(size, &text[..])),
                (whole.clone(), account)
            );
        }
    }

    #[test]
    fn a_giant_line_is_cut_and_counted_and_the_next_one_is_read() {
        let mut text = vec![b'x'; LINE_LIMIT + 5];
        text.extend_from_slice(b"\nshort\n");
        for size in [4096, 10 * LINE_LIMIT] {
            let (seen, account) = lines(BufReader::with_capacity(size, &text[..]));
            assert_eq!(seen, [(0, LINE_LIMIT), (LINE_LIMIT as u64 + 6, 5)]);
            assert_eq!(account.too_long, 1);
            assert!(!account.open_end);
        }
    }

    #[test]
    fn terminal_codes_go_and_text_stays() {
        assert_eq!(
            clean(b"\x1b[0;36m(Worker pid=1)\x1b[0;0m INFO\r"),
            "(Worker pid=1) INFO"
        );
        assert_eq!(
            clean(b"a\x1b]8;;http://x\x07b\x1b]0;t\x1b\\c\x1b(d"),
            "abcd"
        );
        assert_eq!(clean(b"cut\x1b[0;3"), "cut");
        assert_eq!(clean(b"cut\x1b"), "cut");
        assert_eq!(clean(b"bad \xff byte"), "bad \u{fffd} byte");
    }

    #[test]
    fn an_excerpt_is_bounded_and_has_no_control_characters() {
        assert_eq!(excerpt("a\tb\u{7}", 10), "a·b·");
        assert_eq!(excerpt(&"é".repeat(400), 300).chars().count(), 301);
    }
}
