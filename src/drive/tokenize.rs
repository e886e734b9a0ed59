//! Token ids of a text or a chat, from the seat's own tokenizer.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::client::Client;
use super::fault::{Fault, quote};
use super::request::Message;
use crate::dialect::{Dialect, Tokenize};

/// Longest wait for a tokenizer: a 166k-token text takes a second or two on a busy host.
const DEADLINE: Duration = Duration::from_secs(60);

/// Whether the tokenizer adds its special tokens (a beginning-of-text token).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialTokens {
    /// As for a request with this text.
    Add,
    /// The text alone, for splicing.
    Leave,
}

/// Why there are no ids.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenizeFault {
    /// The dialect knows no tokenizer route.
    NoRoute(&'static str),
    /// The route takes text, but no chat messages.
    NoMessages(&'static str),
    /// The conversation failed.
    Http(Fault),
    /// The answer has no list of ids where the dialect says.
    NoIds {
        /// URL.
        url: String,
        /// JSON pointer of the list.
        pointer: &'static str,
        /// Start of the answer.
        excerpt: String,
    },
    /// The answer is an empty list for a text that is not empty.
    Empty {
        /// URL.
        url: String,
        /// Field that the text was sent in.
        field: &'static str,
    },
    /// `count` in the answer differs from the length of its list.
    CountDiffers {
        /// URL.
        url: String,
        /// `count`.
        count: u64,
        /// Length of the list.
        ids: usize,
    },
}

impl fmt::Display for TokenizeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute(dialect) => write!(
                f,
                "dialect `{dialect}` has no tokenizer route; exact prompt lengths need one"
            ),
            Self::NoMessages(dialect) => write!(
                f,
                "the tokenizer of dialect `{dialect}` renders no chat messages; count a plain text instead"
            ),
            Self::Http(fault) => write!(f, "tokenizer: {fault}"),
            Self::NoIds {
                url,
                pointer,
                excerpt,
            } => write!(
                f,
                "`{url}`: no list of ids at `{pointer}` in `{excerpt}`; is the dialect right?"
            ),
            Self::Empty { url, field } => write!(
                f,
                "`{url}`: no ids for a text that is not empty: the server did not know the field `{field}`; is the dialect right?"
            ),
            Self::CountDiffers { url, count, ids } => write!(
                f,
                "`{url}`: the answer counts {count} tokens but lists {ids}; the route is broken"
            ),
        }
    }
}

impl std::error::Error for TokenizeFault {}

/// Ids of a text.
pub async fn tokenize_text(
    client: &Client,
    dialect: &Dialect,
    model: &str,
    text: &str,
    special: SpecialTokens,
) -> Result<Vec<u32>, TokenizeFault> {
    let route = route(dialect)?;
    let mut fields = Map::new();
    fields.insert(route.text_field.to_owned(), text.into());
    if let Some(field) = route.special_tokens_field {
        fields.insert(field.to_owned(), (special == SpecialTokens::Add).into());
    }
    let ids = ask(client, route, model, fields).await?;
    if ids.is_empty() && !text.is_empty() {
        return Err(TokenizeFault::Empty {
            url: client.url(route.path),
            field: route.text_field,
        });
    }
    Ok(ids)
}

/// Ids of a chat as the seat's template renders it, with the opening of the answer.
pub async fn tokenize_messages(
    client: &Client,
    dialect: &Dialect,
    model: &str,
    messages: &[Message],
) -> Result<Vec<u32>, TokenizeFault> {
    let route = route(dialect)?;
    if !route.messages {
        return Err(TokenizeFault::NoMessages(dialect.id));
    }
    let list = messages
        .iter()
        .map(|m| serde_json::json!({"role": m.role, "content": m.content}))
        .collect::<Vec<Value>>();
    let mut fields = Map::new();
    fields.insert("messages".to_owned(), list.into());
    fields.insert("add_generation_prompt".to_owned(), true.into());
    let ids = ask(client, route, model, fields).await?;
    if ids.is_empty() {
        return Err(TokenizeFault::Empty {
            url: client.url(route.path),
            field: "messages",
        });
    }
    Ok(ids)
}

fn route(dialect: &Dialect) -> Result<&Tokenize, TokenizeFault> {
    let route = dialect.requests.tokenize.as_ref();
    route.ok_or(TokenizeFault::NoRoute(dialect.id))
}

async fn ask(
    client: &Client,
    route: &Tokenize,
    model: &str,
    mut fields: Map<String, Value>,
) -> Result<Vec<u32>, TokenizeFault> {
    fields.insert("model".to_owned(), model.into());
    let body = Value::Object(fields).to_string().into();
    let answer = client
        .post_json(route.path, body, DEADLINE)
        .await
        .map_err(TokenizeFault::Http)?;
    read(&client.url(route.path), route, &answer)
}

fn read(url: &str, route: &Tokenize, answer: &Value) -> Result<Vec<u32>, TokenizeFault> {
    let no_ids = || TokenizeFault::NoIds {
        url: url.to_owned(),
        pointer: route.ids,
        excerpt: quote(&answer.to_string(), 200),
    };
    let list = answer.pointer(route.ids).and_then(Value::as_array);
    let mut ids = Vec::new();
    for value in list.ok_or_else(no_ids)? {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        ids.push(id.ok_or_else(no_ids)?);
    }
    match answer.get("count").and_then(Value::as_u64) {
        Some(count) if count != ids.len() as u64 => Err(TokenizeFault::CountDiffers {
            url: url.to_owned(),
            count,
            ids: ids.len(),
        }),
        _ => Ok(ids),
    }
}
