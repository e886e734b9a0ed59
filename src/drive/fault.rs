//! What can go wrong between us and a seat: where, what, and how to mend it.

use std::fmt;

/// A failed conversation with a seat.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The URL that was asked.
    pub url: String,
    /// What happened.
    pub kind: FaultKind,
}

/// The kinds of failed conversations.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultKind {
    /// The URL itself is no URL that we can use.
    BadUrl(String),
    /// The client could not be set up (no root certificates …).
    Setup(String),
    /// Nobody listens on the port.
    Refused,
    /// The host name has no address.
    Dns(String),
    /// The TLS handshake failed.
    Tls(String),
    /// The connection failed for another reason.
    Connect(String),
    /// No whole answer within this many seconds.
    TimedOut(f64),
    /// 401 or 403.
    Unauthorised {
        /// The status.
        status: u16,
        /// Start of the body.
        body: String,
    },
    /// 404: the seat has no such route (or no such model).
    NotFound(String),
    /// 503: the seat is loading.
    Loading(String),
    /// Another status that is not a success.
    Status {
        /// The status.
        status: u16,
        /// Start of the body.
        body: String,
    },
    /// The port answers, but not HTTP.
    NotHttp(String),
    /// The body is not the JSON that was expected.
    NotJson {
        /// What is wrong.
        cause: String,
        /// Start of the body.
        excerpt: String,
    },
    /// The body is longer than this many bytes.
    TooLarge(usize),
    /// The connection broke in the middle of an answer.
    Broken(String),
    /// The run was interrupted.
    Interrupted,
}

/// Bytes of a server's words that a message quotes: enough for the error object of any known server.
pub const QUOTE_LIMIT: usize = 1024;

impl Fault {
    /// Whether the machine or network failed, rather than the seat's answer being wrong; worth another try.
    pub fn is_infra(&self) -> bool {
        match &self.kind {
            FaultKind::Refused
            | FaultKind::Connect(_)
            | FaultKind::TimedOut(_)
            | FaultKind::Loading(_)
            | FaultKind::Broken(_)
            | FaultKind::Interrupted => true,
            FaultKind::Status { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }

    /// Sorts a failure of the HTTP client by its cause.
    pub(super) fn from_reqwest(url: &str, error: &reqwest::Error) -> Self {
        let kind = sort(error);
        Self {
            url: url.to_owned(),
            kind,
        }
    }

    /// The fault of a status that is not a success.
    pub(super) fn from_status(url: &str, status: u16, body: &str) -> Self {
        let body = quote(body, QUOTE_LIMIT);
        let kind = match status {
            401 | 403 => FaultKind::Unauthorised { status, body },
            404 => FaultKind::NotFound(body),
            503 => FaultKind::Loading(body),
            _ => FaultKind::Status { status, body },
        };
        Self {
            url: url.to_owned(),
            kind,
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: ", self.url)?;
        match &self.kind {
            FaultKind::BadUrl(cause) => write!(
                f,
                "not a URL of a seat ({cause}); write it like `http://127.0.0.1:8000`"
            ),
            FaultKind::Setup(cause) => write!(
                f,
                "the HTTP client cannot be set up ({cause}); if root certificates are missing, set `SSL_CERT_FILE`"
            ),
            FaultKind::Refused => f.write_str(
                "connection refused: nothing listens there; start the seat, or name its address with `--seat`",
            ),
            FaultKind::Dns(cause) => {
                write!(f, "the host name cannot be resolved ({cause}); check its spelling")
            }
            FaultKind::Tls(cause) => write!(
                f,
                "TLS failed ({cause}); a plain port needs `http://`, a private certificate needs `SSL_CERT_FILE`"
            ),
            FaultKind::Connect(cause) => write!(
                f,
                "no connection ({cause}); check that the host can be reached from here"
            ),
            FaultKind::TimedOut(seconds) => write!(
                f,
                "no whole answer within {seconds} s; look at the seat's log, or give it a longer deadline"
            ),
            answered => answered.write_answered(f),
        }
    }
}

impl FaultKind {
    /// The words for a seat that answered, but not as it should.
    fn write_answered(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unauthorised { status, body } => write!(
                f,
                "HTTP {status}{}; put the API key into the environment variable that the gate names",
                said(body)
            ),
            Self::NotFound(body) => write!(
                f,
                "HTTP 404{}; this server has no such route or model",
                said(body)
            ),
            Self::Loading(body) => write!(
                f,
                "HTTP 503{}; the seat is loading or overloaded, wait and try again",
                said(body)
            ),
            Self::Status { status, body } => {
                write!(f, "HTTP {status}{}; look at the seat's log", said(body))
            }
            Self::NotHttp(cause) => write!(
                f,
                "the port answers, but not HTTP ({cause}); it is another service, or it wants `https://`"
            ),
            Self::NotJson { cause, excerpt } => write!(
                f,
                "the body is not the expected JSON ({cause}): `{excerpt}`; check that the URL is the seat's root"
            ),
            Self::TooLarge(limit) => write!(
                f,
                "the body is longer than {limit} bytes; this is no answer of a seat"
            ),
            Self::Broken(cause) => write!(
                f,
                "the connection broke in the middle of the answer ({cause}); look at the seat's log for a crash"
            ),
            Self::Interrupted => f.write_str("interrupted"),
            // What did not even answer is written by the caller.
            _ => Ok(()),
        }
    }
}

fn said(body: &str) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!(": `{body}`")
    }
}

/// A server's words for a message: control characters stripped, cut at `limit` bytes.
pub fn quote(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for c in text.trim().chars() {
        let c = match c {
            '\n' | '\r' | '\t' => ' ',
            // Bidirectional overrides and invisible marks could make a terminal show another text than was sent.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => continue,
            c if c.is_control() => continue,
            c => c,
        };
        if out.len() + c.len_utf8() > limit {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

fn sort(error: &reqwest::Error) -> FaultKind {
    let words = chain(error);
    if error.is_builder() {
        return FaultKind::BadUrl(words);
    }
    for cause in causes(error) {
        let io = cause.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return FaultKind::Refused;
        }
        if is_tls(cause) {
            return FaultKind::Tls(words);
        }
    }
    let low = words.to_lowercase();
    if low.contains("dns error") || low.contains("failed to lookup address") {
        return FaultKind::Dns(words);
    }
    if low.contains("certificate") || low.contains("handshake") || low.contains("tls") {
        return FaultKind::Tls(words);
    }
    if low.contains("invalid http") || low.contains("message head is too large") {
        return FaultKind::NotHttp(words);
    }
    if error.is_connect() {
        return FaultKind::Connect(words);
    }
    FaultKind::Broken(words)
}

/// rustls reports its faults inside I/O errors, which hide what they hold from `source`.
fn is_tls(cause: &(dyn std::error::Error + 'static)) -> bool {
    let inner = cause
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref);
    cause.is::<rustls::Error>() || inner.is_some_and(|e| is_tls(e))
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

/// The causes of an error from the second on, joined: the first one only repeats the URL.
fn chain(error: &reqwest::Error) -> String {
    let mut words = Vec::<String>::new();
    for cause in causes(error) {
        let text = quote(&cause.to_string(), 200);
        if !words.iter().any(|w| w.contains(&text)) {
            words.push(text);
        }
    }
    if words.is_empty() {
        return quote(&error.to_string(), 200);
    }
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_hold_no_control_characters_and_are_cut() {
        assert_eq!(quote("a\x1b[31mb\nc\u{202e}d", 100), "a[31mb cd");
        assert_eq!(quote("ああああ", 7), "ああ…");
    }

    #[test]
    fn a_server_error_is_the_machine_s_fault_and_a_bad_request_is_not() {
        assert!(Fault::from_status("u", 500, "").is_infra());
        assert!(Fault::from_status("u", 503, "").is_infra());
        assert!(!Fault::from_status("u", 400, "").is_infra());
        assert!(!Fault::from_status("u", 404, "").is_infra());
    }
}
