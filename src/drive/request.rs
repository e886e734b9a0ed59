//! What is asked: a prompt, how long to go on, and whether the prefix cache may answer.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::dialect::{Cold, Dialect};

/// One message of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// Its text.
    pub content: String,
}

/// What the model is to go on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// Text as it is, on `/v1/completions`.
    Text(Arc<str>),
    /// Token ids, on `/v1/completions`.
    Ids(Arc<[u32]>),
    /// Messages, on `/v1/chat/completions`.
    Chat(Vec<Message>),
}

/// Whether the answer may end at the model's end token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndToken {
    /// It ends there.
    #[default]
    Obey,
    /// It goes on to `max_tokens`, where the dialect can say so.
    Ignore,
}

/// Whether the prefix cache may answer for the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cache {
    /// As the server likes.
    #[default]
    Allowed,
    /// Kept cold by the dialect's means, with this salt (see [`fresh_salt`]).
    Cold(String),
}

/// Whether token ids are asked for in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReturnIds {
    /// No.
    #[default]
    Leave,
    /// Yes, where the dialect can return them.
    Ask,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The name of its prompt in evidence (`code/3`).
    pub name: String,
    /// The prompt.
    pub prompt: Prompt,
    /// Most tokens to generate.
    pub max_tokens: u32,
    /// Sampling temperature; 0 is greedy.
    pub temperature: f64,
    /// Sampling seed.
    pub seed: Option<u64>,
    /// Texts at which to stop.
    pub stop: Vec<String>,
    /// Whether the end token ends it.
    pub end_token: EndToken,
    /// Whether the prefix cache may answer.
    pub cache: Cache,
    /// Whether token ids are asked for.
    pub return_ids: ReturnIds,
    /// Fields sent as they are, over ours of the same name.
    pub extra: Map<String, Value>,
}

/// Why a request cannot be put to a dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFault {
    /// The dialect takes no token ids as a prompt.
    NoPromptIds(&'static str),
    /// The dialect keeps a prompt cold by a prefix, and a prompt of token ids or without a message has no place for it.
    NoPlaceForPrefix(&'static str),
}

impl fmt::Display for RequestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPromptIds(dialect) => write!(
                f,
                "dialect `{dialect}` takes no token ids as a prompt; name another dialect, or give the prompt as text"
            ),
            Self::NoPlaceForPrefix(dialect) => write!(
                f,
                "dialect `{dialect}` keeps the prefix cache away only by random text before the prompt, and this prompt has no place for it; give the prompt as text"
            ),
        }
    }
}

impl std::error::Error for RequestFault {}

/// Something asked for that the dialect has no word for, and that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// The end token cannot be ignored: answers may be shorter than `max_tokens`.
    EndToken,
    /// Token ids cannot be returned.
    ReturnIds,
    /// Usage comes once at the end: the tokens of the first chunk are not told.
    ContinuousUsage,
}

impl Request {
    /// A greedy request with this prompt: nothing ignored, nothing cold, nothing extra.
    pub fn new(name: &str, prompt: Prompt, max_tokens: u32) -> Self {
        Self {
            name: name.to_owned(),
            prompt,
            max_tokens,
            temperature: 0.0,
            seed: None,
            stop: Vec::new(),
            end_token: EndToken::Obey,
            cache: Cache::Allowed,
            return_ids: ReturnIds::Leave,
            extra: Map::new(),
        }
    }

    /// The path that it is posted to.
    pub fn path(&self) -> &'static str {
        match self.prompt {
            Prompt::Chat(_) => "/v1/chat/completions",
            Prompt::Text(_) | Prompt::Ids(_) => "/v1/completions",
        }
    }

    /// What this dialect cannot be asked, and [`Request::stream_body`] therefore leaves out.
    pub fn shortfalls(&self, dialect: &Dialect) -> Vec<Shortfall> {
        let words = &dialect.requests;
        let mut missing = Vec::new();
        if self.end_token == EndToken::Ignore && words.ignore_eos.is_none() {
            missing.push(Shortfall::EndToken);
        }
        if self.return_ids == ReturnIds::Ask && words.return_token_ids.is_none() {
            missing.push(Shortfall::ReturnIds);
        }
        if !words.continuous_usage {
            missing.push(Shortfall::ContinuousUsage);
        }
        missing
    }

    /// The JSON body that asks for a stream with usage.
    pub fn stream_body(&self, model: &str, dialect: &Dialect) -> Result<Bytes, RequestFault> {
        let words = &dialect.requests;
        let mut fields = Map::new();
        fields.insert("model".to_owned(), model.into());
        fields.insert("max_tokens".to_owned(), self.max_tokens.into());
        fields.insert("temperature".to_owned(), self.temperature.into());
        fields.insert("stream".to_owned(), true.into());
        let mut options = Map::new();
        options.insert("include_usage".to_owned(), true.into());
        if words.continuous_usage {
            options.insert("continuous_usage_stats".to_owned(), true.into());
        }
        fields.insert("stream_options".to_owned(), Value::Object(options));
        if let Some(seed) = self.seed {
            fields.insert("seed".to_owned(), seed.into());
        }
        if !self.stop.is_empty() {
            fields.insert("stop".to_owned(), self.stop.clone().into());
        }
        if let (EndToken::Ignore, Some(field)) = (self.end_token, words.ignore_eos) {
            fields.insert(field.to_owned(), true.into());
        }
        if let (ReturnIds::Ask, Some(field)) = (self.return_ids, words.return_token_ids) {
            fields.insert(field.to_owned(), true.into());
        }
        if let Cache::Cold(salt) = &self.cache {
            cold_fields(words.cold, salt, &mut fields);
        }
        fields.extend(self.extra.clone());
        let prefix = match (&self.cache, words.cold) {
            (Cache::Cold(salt), Cold::Prefix) => salt.as_str(),
            _ => "",
        };
        self.with_prompt(fields, prefix, dialect)
    }

    fn with_prompt(
        &self,
        fields: Map<String, Value>,
        prefix: &str,
        dialect: &Dialect,
    ) -> Result<Bytes, RequestFault> {
        match &self.prompt {
            Prompt::Ids(_) if !dialect.requests.prompt_ids => {
                Err(RequestFault::NoPromptIds(dialect.id))
            }
            Prompt::Ids(ids) if prefix.is_empty() => Ok(body_with_ids(&fields, "prompt", ids)),
            Prompt::Ids(_) => Err(RequestFault::NoPlaceForPrefix(dialect.id)),
            Prompt::Text(text) if prefix.is_empty() => Ok(body_with(&fields, "prompt", &**text)),
            Prompt::Text(text) => Ok(body_with(&fields, "prompt", &format!("{prefix} {text}"))),
            Prompt::Chat(messages) if prefix.is_empty() => {
                Ok(body_with(&fields, "messages", messages))
            }
            Prompt::Chat(messages) => {
                let mut messages = messages.clone();
                let first = messages
                    .first_mut()
                    .ok_or(RequestFault::NoPlaceForPrefix(dialect.id))?;
                first.content = format!("{prefix} {}", first.content);
                Ok(body_with(&fields, "messages", &messages))
            }
        }
    }
}

/// The fields by which a dialect is told to keep the prefix cache away.
pub(super) fn cold_fields(cold: Cold, salt: &str, fields: &mut Map<String, Value>) {
    match cold {
        Cold::Salt(field) => fields.insert(field.to_owned(), salt.into()),
        Cold::SwitchOff(field) => fields.insert(field.to_owned(), false.into()),
        Cold::Prefix => None,
    };
}

/// An object with these fields and one more.
fn body_with<T: Serialize + ?Sized>(fields: &Map<String, Value>, key: &str, value: &T) -> Bytes {
    let mut body = open_object(fields, key);
    // Writing strings and maps of strings into memory has no way to fail.
    if serde_json::to_writer(&mut body, value).is_err() {
        body.extend_from_slice(b"null");
    }
    body.push(b'}');
    body.into()
}

/// An object with these fields and a list of ids, written digit by digit: no JSON tree of 166k numbers.
pub(super) fn body_with_ids(fields: &Map<String, Value>, key: &str, ids: &[u32]) -> Bytes {
    let mut body = open_object(fields, key);
    body.reserve(ids.len() * 7 + 3);
    body.push(b'[');
    for (i, id) in ids.iter().enumerate() {
        if i > 0 {
            body.push(b',');
        }
        push_decimal(&mut body, *id);
    }
    body.extend_from_slice(b"]}");
    body.into()
}

/// The object up to and with the colon after `key`; a field of that name yields to it.
fn open_object(fields: &Map<String, Value>, key: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(512);
    body.push(b'{');
    for (name, value) in fields.iter().filter(|(name, _)| *name != key) {
        body.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
        body.push(b':');
        body.extend_from_slice(value.to_string().as_bytes());
        body.push(b',');
    }
    body.extend_from_slice(format!("\"{key}\":").as_bytes());
    body
}

fn push_decimal(body: &mut Vec<u8>, mut id: u32) {
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (id % 10) as u8;
        id /= 10;
        if id == 0 {
            break;
        }
    }
    body.extend_from_slice(&digits[at..]);
}

/// Sixteen hex characters that no other request has: two draws of the standard library's randomly keyed hasher.
pub fn fresh_salt() -> String {
    let draw = || {
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        if let Ok(now) = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            hasher.write_u128(now.as_nanos());
        }
        hasher.finish()
    };
    format!("{:016x}", draw() ^ draw().rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::named;

    fn body(request: &Request, dialect: &str) -> Value {
        let dialect = named(dialect).expect("a dialect");
        let bytes = request.stream_body("m", dialect).expect("can be asked");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    #[test]
    fn each_dialect_gets_its_own_words() {
        let mut request = Request::new("code/1", Prompt::Ids(Arc::from([0, 7, 4294967295])), 128);
        request.end_token = EndToken::Ignore;
        request.return_ids = ReturnIds::Ask;
        request.cache = Cache::Cold("00ff".to_owned());
        let vllm = body(&request, "vllm");
        assert_eq!(vllm["prompt"], serde_json::json!([0, 7, 4294967295u32]));
        assert_eq!(vllm["cache_salt"], "00ff");
        assert_eq!(vllm["ignore_eos"], true);
        assert_eq!(vllm["return_token_ids"], true);
        assert_eq!(vllm["stream_options"]["continuous_usage_stats"], true);
        assert_eq!(vllm["temperature"], 0.0);
        let llama = body(&request, "llamacpp");
        assert_eq!(llama["cache_prompt"], false);
        assert_eq!(llama.get("cache_salt"), None);
        assert_eq!(
            llama["stream_options"],
            serde_json::json!({"include_usage": true})
        );
        assert_eq!(
            request.shortfalls(named("llamacpp").expect("known")),
            [Shortfall::ReturnIds, Shortfall::ContinuousUsage]
        );
    }

    #[test]
    fn a_dialect_without_a_word_for_cold_gets_the_salt_before_the_prompt() {
        let mut request = Request::new("p", Prompt::Text("Hello \"you\"".into()), 1);
        request.cache = Cache::Cold("00ff".to_owned());
        assert_eq!(body(&request, "openai")["prompt"], "00ff Hello \"you\"");
        request.prompt = Prompt::Chat(vec![Message {
            role: "user".to_owned(),
            content: "Hi".to_owned(),
        }]);
        assert_eq!(request.path(), "/v1/chat/completions");
        assert_eq!(
            body(&request, "openai")["messages"][0]["content"],
            "00ff Hi"
        );
        request.prompt = Prompt::Ids(Arc::from([1]));
        let dialect = named("openai").expect("known");
        assert_eq!(
            request.stream_body("m", dialect),
            Err(RequestFault::NoPromptIds("openai"))
        );
    }

    #[test]
    fn extra_fields_go_over_ours() {
        let mut request = Request::new("p", Prompt::Text("x".into()), 1);
        request.extra.insert("max_tokens".to_owned(), 9.into());
        request.extra.insert("prompt".to_owned(), "never".into());
        let body = body(&request, "vllm");
        assert_eq!(body["max_tokens"], 9);
        assert_eq!(body["prompt"], "x");
    }

    #[test]
    fn salts_are_sixteen_hex_characters_and_differ() {
        let salts: std::collections::BTreeSet<String> = (0..100).map(|_| fresh_salt()).collect();
        assert_eq!(salts.len(), 100);
        assert!(
            salts
                .iter()
                .all(|s| s.len() == 16 && s.bytes().all(|b| b.is_ascii_hexdigit()))
        );
    }
}
