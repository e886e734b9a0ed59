//! Standard output and standard error, and nothing else prints.
use std::io::{IsTerminal as _, Write as _};

/// Data, on standard output. A closed pipe is no fault of ours: what was asked for was read.
pub(super) fn data(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// A message, on standard error.
pub(super) fn message(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Whether colours may be used on this stream: a terminal, and `NO_COLOR` not set (<https://no-color.org>).
pub(super) fn colours_on(stream: &impl std::io::IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Whether standard error is a terminal.
pub(super) fn is_interactive() -> bool {
    std::io::stderr().is_terminal()
}
