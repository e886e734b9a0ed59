//! Environment values and arguments with secrets taken out at the reader, so that no evidence file can hold one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What stands in the place of a secret argument.
pub const REDACTED: &str = "[redacted]";

/// Words of a name that make its value a secret, compared part by part (`HF_TOKEN`, `--api-key`).
const SECRET_PARTS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "COOKIE",
    "BEARER",
    "DSN",
];

/// Words that are counts when their value is a number (`MAX_TOKENS=4096`), else secrets.
const SECRET_UNLESS_NUMBER: &[&str] = &["KEYS", "TOKENS", "SECRETS"];

/// Texts anywhere in a name that make its value a secret (`OPENAIAPIKEY`).
const SECRET_TEXTS: &[&str] = &[
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "SECRET",
    "PASSWORD",
    "CREDENTIAL",
];

/// Beginnings of values that are secrets under any name.
const SECRET_VALUES: &[&str] = &[
    "hf_",
    "sk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "AKIA",
    "Bearer ",
    "nvapi-",
];

/// One variable of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    /// Name.
    pub name: String,
    /// Value, or what may be told of it.
    pub value: EnvValue,
}

/// A value as evidence may hold it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EnvValue {
    /// The value itself; bytes that are not UTF-8 are replaced.
    Plain {
        /// The value.
        text: String,
    },
    /// The value looks like a secret and was not kept.
    Redacted {
        /// How long it was, roughly.
        length: Length,
    },
}

/// The rough length of a redacted value: enough to see that it is set, too little to help anyone guess it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// No bytes.
    Empty,
    /// 1 to 15 bytes.
    Short,
    /// 16 bytes or more.
    Long,
}

impl EnvVar {
    /// A variable with its value redacted if name or value looks like a secret.
    pub fn new(name: &str, value: &str) -> Self {
        let value = if is_secret(name, value) {
            EnvValue::Redacted {
                length: Length::of(value),
            }
        } else {
            EnvValue::Plain {
                text: value.to_owned(),
            }
        };
        Self {
            name: name.to_owned(),
            value,
        }
    }

    /// A variable from `NAME=value`; nothing if there is no `=` or no name.
    pub fn parse(entry: &str) -> Option<Self> {
        let (name, value) = entry.split_once('=')?;
        (!name.is_empty()).then(|| Self::new(name, value))
    }
}

impl EnvValue {
    /// The value, where it was kept.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Plain { text } => Some(text),
            Self::Redacted { .. } => None,
        }
    }
}

impl fmt::Display for EnvValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { text } => f.write_str(text),
            Self::Redacted { .. } => f.write_str(REDACTED),
        }
    }
}

impl Length {
    fn of(value: &str) -> Self {
        match value.len() {
            0 => Self::Empty,
            1..16 => Self::Short,
            _ => Self::Long,
        }
    }
}

/// Whether a value may not be kept, by its name or its own look.
pub fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let is_number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    name.split('_').any(|part| {
        SECRET_PARTS.contains(&part) || (SECRET_UNLESS_NUMBER.contains(&part) && !is_number)
    }) || SECRET_TEXTS.iter().any(|text| name.contains(text))
        || looks_secret(value)
}

fn looks_secret(value: &str) -> bool {
    SECRET_VALUES.iter().any(|start| value.starts_with(start)) || has_userinfo(value)
}

/// Whether a URL in the value carries a password (`https://user:password@host`).
fn has_userinfo(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    })
}

/// A command line with the values of secret options replaced by [`REDACTED`]; shell texts are looked through word by word.
pub fn redact_arguments(arguments: &[String]) -> Vec<String> {
    let mut hide_next = false;
    arguments
        .iter()
        .map(|argument| redact_argument(argument, &mut hide_next))
        .collect()
}

fn redact_argument(argument: &str, hide_next: &mut bool) -> String {
    if argument.contains(char::is_whitespace) && !*hide_next {
        return argument
            .split(' ')
            .map(|word| redact_word(word, hide_next))
            .collect::<Vec<_>>()
            .join(" ");
    }
    redact_word(argument, hide_next)
}

fn redact_word(word: &str, hide_next: &mut bool) -> String {
    if std::mem::take(hide_next) && !word.starts_with("--") {
        return REDACTED.to_owned();
    }
    if let Some((name, value)) = word.split_once('=') {
        if is_secret(name, value) {
            return format!("{name}={REDACTED}");
        }
    } else if word.starts_with("--") && is_secret(word, "0") {
        *hide_next = true;
    } else if looks_secret(word) {
        return REDACTED.to_owned();
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_kept() {
        for entry in [
            "HF_TOKEN=abcdefghijklmnopq",
            "OPENAI_API_KEY=1234567890123456",
            "WHATEVER=hf_abcdefghijklmnop",
            "PIP_INDEX_URL=https://me:abcdefghijklmnop@pypi.example/simple",
        ] {
            let var = EnvVar::parse(entry).unwrap();
            assert_eq!(
                var.value,
                EnvValue::Redacted {
                    length: Length::Long
                },
                "{entry}"
            );
            let secret = entry.split_once('=').unwrap().1;
            assert!(!serde_json::to_string(&var).unwrap().contains(secret));
        }
    }

    #[test]
    fn ordinary_settings_are_kept() {
        for entry in [
            "VLLM_EXL3_MOE_STRICT=1",
            "MAX_NUM_BATCHED_TOKENS=8192",
            "TOKENIZERS_PARALLELISM=false",
            "HF_ENDPOINT=https://host:443/a@b",
            "EMPTY=",
        ] {
            let var = EnvVar::parse(entry).unwrap();
            assert_eq!(
                var.value.text(),
                Some(entry.split_once('=').unwrap().1),
                "{entry}"
            );
        }
    }

    #[test]
    fn secret_options_of_a_command_are_redacted() {
        let line = [
            "vllm",
            "serve",
            "m",
            "--api-key",
            "abc",
            "--hf-token=def",
            "--max-tokens",
            "4096",
            "--port",
            "80",
        ]
        .map(str::to_owned);
        assert_eq!(
            redact_arguments(&line).join(" "),
            "vllm serve m --api-key [redacted] --hf-token=[redacted] --max-tokens 4096 --port 80"
        );
    }

    #[test]
    fn a_shell_text_is_looked_through() {
        let line = [
            "bash",
            "-c",
            "HF_TOKEN=abc SEQS=4 vllm serve m --api-key def",
        ]
        .map(str::to_owned);
        assert_eq!(
            redact_arguments(&line)[2],
            "HF_TOKEN=[redacted] SEQS=4 vllm serve m --api-key [redacted]"
        );
    }
}
