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
    pub(super) echo: Option<bool>,
    pub(super) logprobs: Option<serde_json::Value>,
    pub(super) prompt_logprobs: Option<i64>,
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
}

/// Which route a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Chat,
    Completion,
}

fn bad(message: impl Into<String>) -> Refusal {
    Refusal {
        status: 400,
        kind: "BadRequestError",
        message: message.into(),
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
                message: format!("The model `{model}` does not exist."),
            });
        }
        let prompt = self.ids(route)?;
        let room = options.max_model_len.saturating_sub(prompt.len() as u64);
        let max_tokens = self
            .max_tokens
            .or(self.max_completion_tokens)
            .unwrap_or(room.min(512));
        if prompt.len() as u64 + max_tokens > options.max_model_len {
            return Err(bad(format!(
                "This model's maximum context length is {} tokens. However, you requested {max_tokens} output tokens and your prompt contains {} input tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
                options.max_model_len,
                prompt.len()
            )));
        }
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
        })
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
