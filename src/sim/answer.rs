//! Bodies of answers, in vLLM's form.

use serde_json::{Value, json};

use super::fault::Fault;
use super::logprobs::{self, Told};
use super::options::Options;
use super::request::{Route, StreamOptions};
use super::sequence::Finish;

/// What stays the same over one answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    id: String,
    route: Route,
    model: String,
    created: i64,
    shape: StreamOptions,
    fingerprint: String,
    usage_hidden: bool,
    thinks: bool,
    logprobs: bool,
    /// The prompt's ids, where ids were asked for.
    prompt: Option<Vec<u32>>,
    /// Characters of text that were told: where the next token stands.
    told: usize,
    chunks: usize,
}

/// Token counts so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Billed {
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) completion: u64,
}

impl Billed {
    fn value(self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.completion,
            "completion_tokens": self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        })
    }

    /// With the details that vLLM never fills in.
    fn detailed(self) -> Value {
        let mut value = self.value();
        value["completion_tokens_details"] = Value::Null;
        value
    }
}

/// A part of an answer: its text, its tokens, and why it is the last one.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) tokens: Vec<Told>,
    pub(super) finish: Option<Finish>,
}

impl Part {
    fn ids(&self) -> Vec<u32> {
        self.tokens.iter().map(|t| t.id).collect()
    }
}

/// What a request wants told beside the words.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) shape: StreamOptions,
    /// The ids of the prompt, where ids are wanted.
    pub(super) prompt: Option<Vec<u32>>,
    /// Whether logprobs are wanted.
    pub(super) logprobs: bool,
}

impl Answer {
    /// An answer of this seat; `number` tells it from others.
    pub(super) fn new(route: Route, number: u64, seat: &Options, wanted: Wanted) -> Self {
        let head = match route {
            Route::Chat => "chatcmpl",
            Route::Completion => "cmpl",
        };
        Self {
            id: format!("{head}-{number:016x}"),
            route,
            model: seat.model.clone(),
            created: jiff::Timestamp::now().as_second(),
            shape: wanted.shape,
            fingerprint: seat.fingerprint(),
            usage_hidden: seat.has(Fault::UsageMissing),
            thinks: seat.has(Fault::ThinkOnly),
            logprobs: wanted.logprobs,
            prompt: wanted.prompt,
            told: 0,
            chunks: 0,
        }
    }

    fn frame(&self, object: &str, choices: Value) -> Value {
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model, "choices": choices})
    }

    fn chunk_frame(&self, choices: Value, billed: Option<Value>) -> Value {
        let object = match self.route {
            Route::Chat => "chat.completion.chunk",
            Route::Completion => "text_completion",
        };
        let mut frame = self.frame(object, choices);
        if let Some(billed) = billed.filter(|_| !self.usage_hidden) {
            frame["usage"] = billed;
        }
        frame
    }

    fn running(&self, billed: Billed) -> Option<Value> {
        let value = match self.route {
            Route::Chat => billed.detailed(),
            Route::Completion => billed.value(),
        };
        self.shape.continuous_usage_stats.then_some(value)
    }

    /// The logprobs of some tokens, which move on the place of the next one.
    fn logprobs_of(&mut self, tokens: &[Told]) -> Value {
        if !self.logprobs {
            return Value::Null;
        }
        match self.route {
            Route::Chat => logprobs::chat(tokens),
            Route::Completion => logprobs::legacy(tokens, &mut self.told),
        }
    }

    /// The first event of a chat: the role and nothing else. Completions have none.
    pub(super) fn role(&self, billed: Billed) -> String {
        if self.route == Route::Completion {
            return String::new();
        }
        let choice = json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null}]);
        let mut frame = self.chunk_frame(
            choice,
            self.running(Billed {
                completion: 0,
                ..billed
            }),
        );
        frame["prompt_token_ids"] = json!(self.prompt);
        frame["prompt_text"] = Value::Null;
        event(&frame)
    }

    /// An event of words.
    pub(super) fn words(&mut self, part: &Part, billed: Billed) -> String {
        let finish = part.finish.as_ref();
        let mut choice = json!({
            "index": 0,
            "logprobs": self.logprobs_of(&part.tokens),
            "finish_reason": finish.map(|f| f.reason),
            "token_ids": self.prompt.is_some().then(|| part.ids()),
        });
        match self.route {
            Route::Chat => {
                let name = if self.thinks {
                    "reasoning_content"
                } else {
                    "content"
                };
                choice["delta"] = json!({ name: part.text });
                if let Some(finish) = finish {
                    choice["stop_reason"] = json!(finish.stop);
                }
            }
            Route::Completion => {
                choice["text"] = json!(part.text);
                choice["stop_reason"] = json!(finish.and_then(|f| f.stop.as_ref()));
                let first = self.chunks == 0;
                choice["prompt_token_ids"] = json!(self.prompt.as_ref().filter(|_| first));
            }
        }
        self.chunks += 1;
        let mut frame = self.chunk_frame(json!([choice]), self.running(billed));
        // The stream's very last frame says which configuration it came from.
        if finish.is_some() && !self.shape.include_usage {
            frame["system_fingerprint"] = json!(self.fingerprint);
        }
        event(&frame)
    }

    /// The event of usage alone, if it was asked for.
    pub(super) fn usage(&self, billed: Billed) -> String {
        if !self.shape.include_usage || self.usage_hidden {
            return String::new();
        }
        let mut frame = self.chunk_frame(json!([]), Some(billed.value()));
        frame["system_fingerprint"] = json!(self.fingerprint);
        event(&frame)
    }

    /// A whole answer; `scores` are the prompt's logprobs.
    pub(super) fn whole(mut self, part: &Part, billed: Billed, scores: Value) -> Value {
        let mut choice = json!({
            "index": 0,
            "logprobs": self.logprobs_of(&part.tokens),
            "finish_reason": part.finish.as_ref().map(|f| f.reason),
            "stop_reason": part.finish.as_ref().and_then(|f| f.stop.as_ref()),
            "token_ids": self.prompt.is_some().then(|| part.ids()),
            "routed_experts": null,
        });
        let object = match self.route {
            Route::Chat => "chat.completion",
            Route::Completion => "text_completion",
        };
        match self.route {
            Route::Chat => choice["message"] = self.message(&part.text),
            Route::Completion => {
                choice["text"] = json!(part.text);
                choice["prompt_logprobs"] = scores.clone();
                choice["prompt_token_ids"] = json!(self.prompt);
            }
        }
        let mut frame = self.frame(object, json!([choice]));
        for name in [
            "service_tier",
            "kv_transfer_params",
            "ec_transfer_params",
            "metrics",
        ] {
            frame[name] = Value::Null;
        }
        if self.route == Route::Chat {
            frame["prompt_logprobs"] = scores;
            frame["prompt_token_ids"] = json!(self.prompt);
            frame["prompt_text"] = Value::Null;
        }
        frame["system_fingerprint"] = json!(self.fingerprint);
        if !self.usage_hidden {
            frame["usage"] = billed.detailed();
        }
        frame
    }

    fn message(&self, text: &str) -> Value {
        let mut message = json!({"role": "assistant", "refusal": null, "annotations": null, "audio": null, "function_call": null});
        message["content"] = if self.thinks {
            Value::Null
        } else {
            json!(text)
        };
        message["reasoning"] = if self.thinks {
            json!(text)
        } else {
            Value::Null
        };
        message
    }
}

fn event(frame: &Value) -> String {
    format!("data: {frame}\n\n")
}
