//! Bodies of requests.

use serde::Deserialize;

use super::options::Options;
use super::sequence::Ask;
use super::tokenizer;

/// The body of a chat or completion.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Prompt>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    min_tokens: Option<u64>,
    temperature: Option<f64>,
    seed: Option<u64>,
    stop: Option<Stop>,
    ignore_eos: Option<bool>,
    cache_salt: Option<String>,
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptions>,
    pub(super) return_token_ids: Option<bool>,
    echo: Option<bool>,
    logprobs: Option<Logprobs>,
    top_logprobs: Option<i64>,
    prompt_logprobs: Option<i64>,
    pub(super) return_token_strs: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
struct Message {
    content: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
}

/// Whether logprobs are wanted: chats say so and how many apart, completions in one number.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Logprobs {
    Whether(bool),
    Count(i64),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Many(Vec<String>),
}

/// What of a stream is wanted beside the words.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct StreamOptions {
    /// Usage at the end.
    #[serde(default)]
    pub(super) include_usage: bool,
    /// Usage in every chunk.
    #[serde(default)]
    pub(super) continuous_usage_stats: bool,
}

/// A request that is refused: the status and the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
}

/// Which route a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Chat,
    Completion,
}

/// Tokens of an answer whose length was not asked for.
const USUAL_LENGTH: u64 = 512;
/// Likeliest tokens at most, vLLM's default of `--max-logprobs`.
const MOST_LOGPROBS: i64 = 20;

fn bad(message: impl Into<String>) -> Refusal {
    Refusal {
        status: 400,
        kind: "BadRequestError",
        message: message.into(),
        param: None,
    }
}

impl Body {
    /// Reads a body.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(bytes)
            .map_err(|cause| bad(format!("the body does not read: {cause}")))
    }

    /// The ids of the prompt.
    pub(super) fn ids(&self, route: Route) -> Result<Vec<u32>, Refusal> {
        match (route, &self.messages, &self.prompt) {
            (Route::Chat, Some(messages), _) => {
                let contents: Vec<String> = messages.iter().map(Message::text).collect();
                Ok(tokenizer::render(contents.iter().map(String::as_str)))
            }
            (Route::Chat, None, _) => Err(bad("`messages` is missing")),
            (Route::Completion, _, Some(Prompt::Text(text))) => Ok(tokenizer::encode(text)),
            (Route::Completion, _, Some(Prompt::Ids(ids))) => {
                match ids.iter().find(|id| **id as usize >= tokenizer::VOCABULARY) {
                    Some(id) => Err(bad(format!("token id {id} is out of vocabulary"))),
                    None => Ok(ids.clone()),
                }
            }
            (Route::Completion, _, None) => Err(bad("`prompt` is missing")),
        }
    }

    /// What the engine is asked.
    pub(super) fn ask(&self, route: Route, options: &Options) -> Result<Ask, Refusal> {
        if let Some(model) = self.model.as_ref().filter(|m| **m != options.model) {
            return Err(Refusal {
                status: 404,
                kind: "NotFoundError",
                message: format!(
                    "The model `{model}` does not exist. Valid aliases: {}.",
                    options.model
                ),
                param: Some("model"),
            });
        }
        let prompt = self.ids(route)?;
        let max_tokens = self.length(prompt.len() as u64, options)?;
        self.check(max_tokens)?;
        Ok(Ask {
            prompt,
            max_tokens: max_tokens.max(1),
            min_tokens: self.min_tokens.unwrap_or(0),
            temperature: self.temperature.unwrap_or(1.0),
            seed: self.seed.unwrap_or(0),
            ignore_end: self.ignore_eos.unwrap_or(false),
            stop: match &self.stop {
                None => Vec::new(),
                Some(Stop::One(text)) => vec![text.clone()],
                Some(Stop::Many(texts)) => texts.clone(),
            },
            salt: self.cache_salt.clone(),
            uncached: self.scored().is_some(),
            top: self.top(),
        })
    }

    /// Tokens of the answer at most: what was asked for, or what fits.
    fn length(&self, prompt: u64, options: &Options) -> Result<u64, Refusal> {
        let room = options.max_model_len.saturating_sub(prompt);
        let asked = self.max_tokens.or(self.max_completion_tokens);
        let max_tokens = asked.unwrap_or(room.min(USUAL_LENGTH));
        if prompt.saturating_add(max_tokens.max(1)) > options.max_model_len {
            let message = format!(
                "This model's maximum context length is {} tokens. However, you requested {max_tokens} output tokens and your prompt contains {prompt} input tokens, for a total of {} tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
                options.max_model_len,
                prompt.saturating_add(max_tokens)
            );
            return Err(Refusal {
                param: Some("input_tokens"),
                ..bad(message)
            });
        }
        Ok(max_tokens)
    }

    /// Refuses what vLLM refuses.
    fn check(&self, max_tokens: u64) -> Result<(), Refusal> {
        let streams = self.stream.unwrap_or(false);
        let echoes = self.echo.unwrap_or(false);
        let counts = [self.prompt_logprobs, self.count(), self.top_logprobs];
        let wrong = [
            (
                self.stream_options.is_some() && !streams,
                "stream_options",
                "Stream options can only be defined when `stream=True`.",
            ),
            (
                self.prompt_logprobs.is_some() && streams,
                "prompt_logprobs",
                "`prompt_logprobs` are not available when `stream=True`.",
            ),
            (
                counts
                    .iter()
                    .flatten()
                    .any(|n| !(0..=MOST_LOGPROBS).contains(n)),
                "logprobs",
                "Requested sample logprobs are negative or greater than max allowed: 20",
            ),
            (
                max_tokens == 0 && !echoes,
                "max_tokens",
                "max_tokens must be at least 1, got 0.",
            ),
            (
                self.min_tokens.unwrap_or(0) > max_tokens,
                "min_tokens",
                "min_tokens must be less than or equal to max_tokens.",
            ),
            (
                self.temperature.is_some_and(|t| t.is_nan() || t < 0.0),
                "temperature",
                "temperature must be non-negative.",
            ),
        ];
        match wrong.iter().find(|w| w.0) {
            Some((_, param, message)) => Err(Refusal {
                param: Some(param),
                ..bad(*message)
            }),
            None => Ok(()),
        }
    }

    fn count(&self) -> Option<i64> {
        match self.logprobs? {
            Logprobs::Whether(_) => None,
            Logprobs::Count(n) => Some(n),
        }
    }

    /// Whether logprobs of the answer are wanted.
    pub(super) fn wants_logprobs(&self) -> bool {
        matches!(
            self.logprobs,
            Some(Logprobs::Whether(true) | Logprobs::Count(_))
        )
    }

    /// Whether the prompt is to be told again before the answer.
    pub(super) fn echoes(&self) -> bool {
        self.echo.unwrap_or(false)
    }

    /// Whether only the prompt is to be told.
    pub(super) fn only_echo(&self) -> bool {
        self.echoes() && self.max_tokens == Some(0)
    }

    /// Likeliest tokens wanted at each place of the answer.
    fn top(&self) -> usize {
        let count = self
            .count()
            .or(self.top_logprobs)
            .filter(|_| self.wants_logprobs());
        usize::try_from(count.unwrap_or(0)).unwrap_or(0)
    }

    /// Likeliest tokens wanted at each place of the prompt, if its logprobs are wanted at all.
    pub(super) fn scored(&self) -> Option<usize> {
        let echoed = self.count().filter(|_| self.echoes());
        self.prompt_logprobs
            .or(echoed)
            .and_then(|n| usize::try_from(n).ok())
    }
}

impl Message {
    /// The text of a message; parts are put in a row.
    fn text(&self) -> String {
        match &self.content {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(serde_json::Value::Array(parts)) => parts
                .iter()
                .filter_map(|p| p.get("text").and_then(|t| t.as_str()))
                .collect(),
            _ => String::new(),
        }
    }
}
