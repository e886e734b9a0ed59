//! One request from its sending to its exchange.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep};

use super::answer::{Answer, BodyEnd};
use super::cancel::Cancel;
use super::client::{Client, start_of};
use super::fault::{Fault, FaultKind, quote};
use super::request::Request;
use super::stream::{EVENT_LIMIT, EventReader};
use crate::dialect::Dialect;
use crate::evidence::exchange::{Exchange, Outcome};

/// How long each part of an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From sending to the first token: the prefill and the queue before it.
    pub first_token: Duration,
    /// Silence after the first token.
    pub stall: Duration,
    /// The whole answer.
    pub total: Duration,
}

impl Deadlines {
    /// Deadlines with this much time for the first token, the dialect's own silence, and an hour for the whole (more
    /// than 30 000 tokens at 10 tok/s: a longer answer is a runaway).
    pub fn of(dialect: &Dialect, first_token: Duration) -> Self {
        Self {
            first_token,
            stall: Duration::from_secs(dialect.requests.stall_s),
            total: Duration::from_secs(3600),
        }
    }
}

/// Where and how requests are sent.
#[derive(Debug, Clone)]
pub struct Line {
    /// The seat.
    pub client: Client,
    /// The model asked for.
    pub model: String,
    /// How the seat speaks.
    pub dialect: &'static Dialect,
    /// How long an answer may take.
    pub deadlines: Deadlines,
    /// Longest event in bytes.
    pub event_limit: usize,
    /// The opening of the window: time zero of the exchanges.
    pub opened: Instant,
}

impl Line {
    /// A line whose window opens now.
    pub fn new(
        client: Client,
        model: &str,
        dialect: &'static Dialect,
        deadlines: Deadlines,
    ) -> Self {
        Self {
            client,
            model: model.to_owned(),
            dialect,
            deadlines,
            event_limit: EVENT_LIMIT,
            opened: Instant::now(),
        }
    }

    /// Seconds since the window's opening.
    pub fn now_s(&self) -> f64 {
        self.opened.elapsed().as_secs_f64()
    }
}

/// Sends a request and follows its answer to the end, whatever that is; never fails, never waits past its deadlines.
pub async fn fetch(
    line: &Line,
    request: &Request,
    id: u32,
    stream: u32,
    cancel: &Cancel,
) -> Exchange {
    let mut exchange = Exchange {
        id,
        stream,
        prompt: request.name.clone(),
        sent_s: line.now_s(),
        ..Exchange::default()
    };
    let mut answer = Answer::default();
    let outcome = tokio::select! {
        biased;
        outcome = converse(line, request, &mut exchange, &mut answer) => outcome,
        () = cancel.cancelled() => Outcome::Interrupted,
    };
    exchange.outcome = outcome;
    if exchange.ended_s == 0.0 {
        exchange.ended_s = line.now_s();
    }
    answer.write_into(&mut exchange);
    exchange
}

async fn converse(
    line: &Line,
    request: &Request,
    exchange: &mut Exchange,
    answer: &mut Answer,
) -> Outcome {
    let body = match request.stream_body(&line.model, line.dialect) {
        Ok(body) => body,
        Err(fault) => {
            return Outcome::Unreachable {
                cause: fault.to_string(),
            };
        }
    };
    exchange.sent_s = line.now_s();
    let Deadlines {
        first_token, total, ..
    } = line.deadlines;
    let sent = Instant::now();
    let due = sent + first_token.min(total);
    let opened = tokio::time::timeout_at(due, line.client.open(request.path(), body)).await;
    let response = match opened {
        Err(_) if total < first_token => return given_up(total),
        Err(_) => return stalled(first_token),
        Ok(Err(fault)) => {
            return Outcome::Unreachable {
                cause: fault.to_string(),
            };
        }
        Ok(Ok(response)) => response,
    };
    exchange.headers_s = Some(line.now_s());
    exchange.status = Some(response.status().as_u16());
    if !response.status().is_success() {
        let body = tokio::time::timeout(line.deadlines.stall, start_of(response)).await;
        return Outcome::Refused {
            body: body.unwrap_or_default(),
        };
    }
    if let Some(kind) = not_a_stream(&response) {
        let body = tokio::time::timeout(first_token, start_of(response)).await;
        return no_stream(&kind, &body.unwrap_or_default());
    }
    let mut reading = Reading {
        line,
        answer,
        reader: EventReader::new(line.event_limit),
        alarm: Box::pin(tokio::time::sleep_until(due)),
        sent,
        last_bytes: sent,
        prefilling: true,
    };
    let outcome = reading.follow(response).await;
    exchange.ended_s = outcome.at_s;
    outcome.outcome
}

/// The content type of an answer that is no event stream.
fn not_a_stream(response: &reqwest::Response) -> Option<String> {
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE)?;
    let kind = kind.to_str().unwrap_or("unreadable");
    let known = kind.starts_with("text/event-stream") || kind.starts_with("text/plain");
    (!known).then(|| quote(kind, 100))
}

fn no_stream(kind: &str, body: &str) -> Outcome {
    if body.contains("\"error\"") {
        return Outcome::Refused {
            body: body.to_owned(),
        };
    }
    Outcome::Malformed {
        cause: format!(
            "answered `{kind}` where an event stream was asked for: `{}`; check that the URL is the seat's own",
            quote(body, 200)
        ),
    }
}

fn stalled(deadline: Duration) -> Outcome {
    Outcome::Stalled {
        deadline_s: deadline.as_secs_f64().ceil() as u64,
    }
}

fn given_up(deadline: Duration) -> Outcome {
    Outcome::Cut {
        cause: format!(
            "given up {} s after sending, the deadline for the whole answer",
            deadline.as_secs_f64()
        ),
    }
}

/// After `[DONE]` the end of the body is waited for this long, so that the connection can be used again.
const TAIL: Duration = Duration::from_millis(500);

struct Reading<'a> {
    line: &'a Line,
    answer: &'a mut Answer,
    reader: EventReader,
    /// Rings at the next deadline, or before it.
    alarm: Pin<Box<Sleep>>,
    sent: Instant,
    last_bytes: Instant,
    /// No token has come yet.
    prefilling: bool,
}

struct Ended {
    outcome: Outcome,
    at_s: f64,
}

enum Piece {
    Bytes(Bytes),
    End(BodyEnd),
    TooLate(Outcome),
}

impl Reading<'_> {
    async fn follow(&mut self, response: reqwest::Response) -> Ended {
        let mut body = Box::pin(response.bytes_stream());
        loop {
            let piece = self.next(&mut body).await;
            match piece {
                Piece::Bytes(bytes) => {
                    let now = Instant::now();
                    self.last_bytes = now;
                    let at_s = (now - self.line.opened).as_secs_f64();
                    let answer = &mut *self.answer;
                    let read = self
                        .reader
                        .feed(&bytes, &mut |payload| answer.event(payload, at_s));
                    if let Err(outcome) = read {
                        return Ended { outcome, at_s };
                    }
                    if self.prefilling && self.answer.first_token_s().is_some() {
                        // The deadline of the prefill may be far; from here on silence counts.
                        self.prefilling = false;
                        let due = self.due();
                        self.alarm.as_mut().reset(due);
                    }
                    if self.answer.is_done() {
                        let _ = tokio::time::timeout(TAIL, drain(&mut body)).await;
                        let outcome = self.answer.outcome(&BodyEnd::Clean, None);
                        return Ended { outcome, at_s };
                    }
                }
                Piece::End(end) => return self.ended(end),
                Piece::TooLate(outcome) => {
                    let at_s = self.line.now_s();
                    return Ended { outcome, at_s };
                }
            }
        }
    }

    /// The next piece of the body. The timer is moved only when it fires: moving it for each piece would cost more than
    /// reading the piece.
    async fn next<S>(&mut self, body: &mut Pin<Box<S>>) -> Piece
    where
        S: Stream<Item = reqwest::Result<Bytes>>,
    {
        std::future::poll_fn(|context| {
            match body.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(bytes))) => return Poll::Ready(Piece::Bytes(bytes)),
                Poll::Ready(Some(Err(error))) => {
                    let fault = Fault::from_reqwest("", &error);
                    let cause = match fault.kind {
                        FaultKind::Broken(cause) => cause,
                        other => format!("{other:?}"),
                    };
                    let cause = format!("the connection broke: {cause}");
                    return Poll::Ready(Piece::End(BodyEnd::Broken(cause)));
                }
                Poll::Ready(None) => return Poll::Ready(Piece::End(BodyEnd::Clean)),
                Poll::Pending => {}
            }
            loop {
                std::task::ready!(self.alarm.as_mut().poll(context));
                if let Some(outcome) = self.too_late() {
                    return Poll::Ready(Piece::TooLate(outcome));
                }
                let due = self.due();
                self.alarm.as_mut().reset(due);
            }
        })
        .await
    }

    /// When silence becomes too long, and for how long it was allowed.
    fn silence_due(&self) -> (Instant, Duration) {
        let deadlines = &self.line.deadlines;
        if self.prefilling {
            (self.sent + deadlines.first_token, deadlines.first_token)
        } else {
            (self.last_bytes + deadlines.stall, deadlines.stall)
        }
    }

    fn due(&self) -> Instant {
        let (silence, _) = self.silence_due();
        silence.min(self.sent + self.line.deadlines.total)
    }

    fn too_late(&self) -> Option<Outcome> {
        let now = Instant::now();
        let total = self.line.deadlines.total;
        let (silence, allowed) = self.silence_due();
        if now >= self.sent + total {
            Some(given_up(total))
        } else {
            (now >= silence).then(|| stalled(allowed))
        }
    }

    fn ended(&mut self, end: BodyEnd) -> Ended {
        let at_s = self.line.now_s();
        if end == BodyEnd::Clean {
            let inside = self.reader.is_inside_event();
            let answer = &mut *self.answer;
            let last = self
                .reader
                .finish(&mut |payload| answer.event(payload, at_s));
            if let Err(outcome) = last {
                let outcome = match outcome {
                    Outcome::Malformed { .. } if inside => Outcome::Cut {
                        cause: "the stream ended in the middle of an event".to_owned(),
                    },
                    other => other,
                };
                return Ended { outcome, at_s };
            }
        }
        let outcome = self.answer.outcome(&end, self.reader.stray());
        Ended { outcome, at_s }
    }
}

async fn drain<S>(body: &mut Pin<Box<S>>)
where
    S: Stream<Item = reqwest::Result<Bytes>>,
{
    while let Some(Ok(_)) = std::future::poll_fn(|context| body.as_mut().poll_next(context)).await {
    }
}
