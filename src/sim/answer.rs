//! Bodies of answers, in vLLM's form.

use serde_json::{Value, json};

use super::fault::Fault;
use super::options::Options;
use super::request::{Route, StreamOptions};

/// What stays the same over one answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) route: Route,
    pub(super) model: String,
    pub(super) created: i64,
    pub(super) options: StreamOptions,
    pub(super) ids: bool,
    pub(super) usage_hidden: bool,
    pub(super) thinks: bool,
}

/// Token counts so far.
#[derive(Debug, Clone, Copy, Default)]
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
}

impl Answer {
    /// An answer of this seat.
    pub(super) fn new(
        route: Route,
        number: u64,
        seat: &Options,
        options: StreamOptions,
        ids: bool,
    ) -> Self {
        let head = if route == Route::Chat {
            "chatcmpl"
        } else {
            "cmpl"
        };
        Self {
            id: format!("{head}-{number:016x}"),
            route,
            model: seat.model.clone(),
            created: jiff::Timestamp::now().as_second(),
            options,
            ids,
            usage_hidden: seat.has(Fault::UsageMissing),
            thinks: seat.has(Fault::ThinkOnly),
        }
    }

    fn frame(&self, object: &str, choices: Value) -> Value {
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model, "choices": choices})
    }

    fn chunk(&self, choices: Value, billed: Option<Billed>) -> String {
        let object = if self.route == Route::Chat {
            "chat.completion.chunk"
        } else {
            "text_completion"
        };
        let mut frame = self.frame(object, choices);
        if let Some(billed) = billed.filter(|_| !self.usage_hidden) {
            frame["usage"] = billed.value();
        }
        format!("data: {frame}\n\n")
    }

    fn running(&self, billed: Billed) -> Option<Billed> {
        self.options.continuous_usage_stats.then_some(billed)
    }

    /// The first chunk of a chat: the role and nothing else.
    pub(super) fn role(&self, billed: Billed) -> Option<String> {
        let choice = json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null}]);
        (self.route == Route::Chat).then(|| self.chunk(choice, self.running(billed)))
    }

    /// A chunk of words.
    pub(super) fn words(&self, text: &str, ids: &[u32], billed: Billed) -> String {
        let mut choice = match self.route {
            Route::Chat if self.thinks => {
                json!({"index": 0, "delta": {"reasoning_content": text}, "logprobs": null, "finish_reason": null})
            }
            Route::Chat => {
                json!({"index": 0, "delta": {"content": text}, "logprobs": null, "finish_reason": null})
            }
            Route::Completion => {
                json!({"index": 0, "text": text, "logprobs": null, "finish_reason": null, "stop_reason": null})
            }
        };
        if self.ids {
            choice["token_ids"] = ids.into();
        }
        self.chunk(json!([choice]), self.running(billed))
    }

    /// The chunk that says why it ended.
    pub(super) fn finish(&self, reason: &str, billed: Billed) -> String {
        let choice = match self.route {
            Route::Chat => {
                json!([{"index": 0, "delta": {"content": ""}, "logprobs": null, "finish_reason": reason, "stop_reason": null}])
            }
            Route::Completion => {
                json!([{"index": 0, "text": "", "logprobs": null, "finish_reason": reason, "stop_reason": null}])
            }
        };
        self.chunk(choice, self.running(billed))
    }

    /// The chunk of usage alone, if it was asked for.
    pub(super) fn usage(&self, billed: Billed) -> Option<String> {
        (self.options.include_usage && !self.usage_hidden)
            .then(|| self.chunk(json!([]), Some(billed)))
    }

    /// A whole answer.
    pub(super) fn whole(&self, text: &str, reason: &str, billed: Billed, more: Value) -> Value {
        let (object, mut choice) = match self.route {
            Route::Chat => (
                "chat.completion",
                json!({"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": null, "finish_reason": reason, "stop_reason": null}),
            ),
            Route::Completion => (
                "text_completion",
                json!({"index": 0, "text": text, "logprobs": null, "finish_reason": reason, "stop_reason": null}),
            ),
        };
        if let (Value::Object(choice), Value::Object(more)) = (&mut choice, more) {
            choice.extend(more);
        }
        let mut frame = self.frame(object, json!([choice]));
        if !self.usage_hidden {
            frame["usage"] = billed.value();
        }
        frame
    }
}
