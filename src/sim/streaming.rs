//! Answers that are streamed: server-sent events, one for each step of the engine.

use std::fmt;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::mpsc::UnboundedReceiver;

use super::answer::{Answer, Billed, Part};
use super::fault::Fault;
use super::logprobs::Told;
use super::options::Options;
use super::sequence::{Event, Finish};
use super::tokenizer::TextPieces;

/// How a faulty stream goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    Cut,
    Stall,
    Malformed,
}

impl Trouble {
    /// The trouble of this stream: every third has one, where a fault says so.
    pub(super) fn of(options: &Options, number: u64) -> Self {
        let faults = [
            (Fault::StreamCut, Self::Cut),
            (Fault::Stall, Self::Stall),
            (Fault::MalformedSse, Self::Malformed),
        ];
        let found = faults.iter().find(|(fault, _)| options.has(*fault));
        found
            .filter(|_| number % 3 == 2)
            .map_or(Self::None, |(_, trouble)| *trouble)
    }
}

/// Tokens of one event of a bundling server.
const BUNDLE: usize = 16;
/// Events after which a faulty stream goes wrong.
const TROUBLE_AFTER: u32 = 4;

/// A stream on its way.
#[derive(Debug)]
pub(super) struct Streaming {
    answer: Answer,
    events: UnboundedReceiver<Event>,
    billed: Billed,
    pieces: TextPieces,
    /// Tokens that were not sent yet.
    held: Vec<Told>,
    /// Text that was not sent yet, because a stop text may be forming in it.
    unsent: String,
    /// Bytes of the longest stop text.
    longest_stop: usize,
    bundle: usize,
    sent: u32,
    trouble: Trouble,
    ended: bool,
}

/// The connection is broken off.
#[derive(Debug)]
pub(super) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken off")
    }
}

impl std::error::Error for Broken {}

impl Streaming {
    /// A stream of what the engine writes, after the `echo` of the prompt.
    pub(super) fn new(
        answer: Answer,
        events: UnboundedReceiver<Event>,
        stops: Vec<String>,
        echo: Part,
        trouble: Trouble,
    ) -> Self {
        Self {
            answer,
            events,
            billed: Billed::default(),
            pieces: TextPieces::default(),
            held: echo.tokens,
            unsent: echo.text,
            longest_stop: stops.iter().map(String::len).max().unwrap_or(0),
            bundle: 1,
            sent: 0,
            trouble,
            ended: false,
        }
    }

    /// The response that carries it.
    pub(super) fn response(mut self, options: &Options) -> Response {
        if options.has(Fault::BundledChunks) {
            self.bundle = BUNDLE;
        }
        let parts = stream::unfold(self, |mut streaming| async move {
            let part = streaming.next().await?;
            Some((part, streaming))
        });
        let kind = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
        (kind, Body::from_stream(parts)).into_response()
    }

    /// The next part of the body; none at its end.
    async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        if self.ended {
            return None;
        }
        loop {
            if let Some(trouble) = self.trouble().await {
                return Some(trouble);
            }
            match self.events.recv().await? {
                Event::Read { prompt, cached } => {
                    (self.billed.prompt, self.billed.cached) = (prompt, cached);
                }
                Event::Written { tokens, finish } => {
                    let ids: Vec<u32> = tokens.iter().map(|t| t.id).collect();
                    self.billed.completion += ids.len() as u64;
                    self.unsent.push_str(&self.pieces.push(&ids));
                    self.held.extend(tokens);
                    // The first event goes out at once, also where later ones are held back.
                    if finish.is_some() || self.held.len() >= self.bundle || self.sent == 0 {
                        return Some(Ok(self.flush(finish).into()));
                    }
                }
            }
        }
    }

    async fn trouble(&mut self) -> Option<Result<Bytes, Broken>> {
        if self.sent < TROUBLE_AFTER {
            return None;
        }
        match self.trouble {
            Trouble::None => None,
            Trouble::Cut => {
                self.ended = true;
                Some(Err(Broken))
            }
            Trouble::Stall => std::future::pending().await,
            Trouble::Malformed => {
                self.trouble = Trouble::None;
                let half = b"data: {\"choices\":[{\"delta\":{\"content\":\n\n";
                Some(Ok(Bytes::from_static(half)))
            }
        }
    }

    /// What is sent now; after the last words the usage and the end.
    fn flush(&mut self, finish: Option<Finish>) -> String {
        // As in vLLM the role goes out with the first token, not before it.
        let mut body = if self.sent == 0 {
            self.answer.role(self.billed)
        } else {
            String::new()
        };
        let last = finish.is_some();
        let part = Part {
            text: self.text(finish.as_ref()),
            tokens: std::mem::take(&mut self.held),
            finish,
        };
        self.sent += 1;
        body.push_str(&self.answer.words(&part, self.billed));
        if last {
            self.ended = true;
            body.push_str(&self.answer.usage(self.billed));
            body.push_str("data: [DONE]\n\n");
        }
        body
    }

    /// The text that can be sent: all but what may become a stop text, and never a stop text itself.
    fn text(&mut self, finish: Option<&Finish>) -> String {
        let Some(finish) = finish else {
            let mut free = self.unsent.len().saturating_sub(self.longest_stop);
            while !self.unsent.is_char_boundary(free) {
                free -= 1;
            }
            let rest = self.unsent.split_off(free);
            return std::mem::replace(&mut self.unsent, rest);
        };
        self.unsent.push_str(&self.pieces.rest());
        let stop = finish.stop.as_ref().map_or(0, String::len);
        self.unsent.truncate(self.unsent.len().saturating_sub(stop));
        std::mem::take(&mut self.unsent)
    }
}
