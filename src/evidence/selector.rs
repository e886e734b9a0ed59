//! Which series a gate means: `name{label="value",other=~"expression"}`, as in Prometheus.

use std::fmt;

use regex::Regex;

use super::exposition::Sample;

/// A series name with conditions on its labels.
#[derive(Debug, Clone)]
pub struct Selector {
    name: String,
    matchers: Vec<Matcher>,
    source: String,
}

#[derive(Debug, Clone)]
struct Matcher {
    label: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Is(String),
    IsNot(String),
    Like(Regex),
    NotLike(Regex),
}

/// Why a selector cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorError {
    /// Byte offset in the selector at which it goes wrong.
    pub at: usize,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub help: String,
}

impl Selector {
    /// Reads a selector. Expressions match the whole value, as in Prometheus.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place and a remedy.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        let mut cursor = Cursor { text, at: 0 };
        cursor.space();
        let name = cursor.word(|c| c.is_ascii_alphanumeric() || "_:.".contains(c));
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            let what = if name.is_empty() {
                "the series name is missing"
            } else {
                "a series name begins with a digit"
            };
            return Err(cursor.error(what, "write the full name as `/metrics` spells it, such as `vllm:generation_tokens_total`"));
        }
        let matchers = cursor.braces()?;
        cursor.space();
        if cursor.at < text.len() {
            let what = format!("`{}` does not belong to a selector", &text[cursor.at..]);
            return Err(cursor.error(&what, "a selector is a name and at most one `{…}`"));
        }
        Ok(Selector {
            name: name.to_owned(),
            matchers,
            source: text.trim().to_owned(),
        })
    }

    /// A selector for every series of one name.
    pub fn name_only(name: &str) -> Selector {
        Selector {
            name: name.to_owned(),
            matchers: Vec::new(),
            source: name.to_owned(),
        }
    }

    /// Series name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same conditions on a series of another name.
    pub fn renamed(&self, name: &str) -> Selector {
        let source = match self.source.find('{') {
            Some(at) => format!("{name}{}", &self.source[at..]),
            None => name.to_owned(),
        };
        Selector {
            name: name.to_owned(),
            matchers: self.matchers.clone(),
            source,
        }
    }

    /// Whether a sample of this name fulfils the conditions; an absent label counts as empty, as in Prometheus.
    pub fn accepts(&self, sample: &Sample<'_>) -> bool {
        self.matchers.iter().all(|matcher| {
            let value = sample.label(&matcher.label).unwrap_or("");
            match &matcher.test {
                Test::Is(wanted) => value == wanted,
                Test::IsNot(other) => value != other,
                Test::Like(expression) => expression.is_match(value),
                Test::NotLike(expression) => !expression.is_match(value),
            }
        })
    }
}

impl PartialEq for Selector {
    fn eq(&self, other: &Selector) -> bool {
        self.source == other.source
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (character {}); {}",
            self.what,
            self.at + 1,
            self.help
        )
    }
}

impl std::error::Error for SelectorError {}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

const MATCHER: &str = "write labels as `{rank=\"0\",mode=~\"full|piecewise\"}`";

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn take(&mut self, sign: &str) -> bool {
        let has = self.rest().starts_with(sign);
        self.at += if has { sign.len() } else { 0 };
        has
    }

    fn error(&self, what: &str, help: &str) -> SelectorError {
        SelectorError {
            at: self.at,
            what: what.to_owned(),
            help: help.to_owned(),
        }
    }

    fn braces(&mut self) -> Result<Vec<Matcher>, SelectorError> {
        let mut matchers = Vec::new();
        self.space();
        if !self.take("{") {
            return Ok(matchers);
        }
        loop {
            self.space();
            if self.take("}") {
                return Ok(matchers);
            }
            if self.rest().is_empty() {
                return Err(self.error("the braces do not close", "add `}` at the end"));
            }
            matchers.push(self.matcher()?);
            self.space();
            if !self.take(",") && !self.rest().starts_with('}') {
                if self.rest().is_empty() {
                    return Err(self.error("the braces do not close", "add `}` at the end"));
                }
                return Err(self.error("labels are not parted by commas", MATCHER));
            }
        }
    }

    fn matcher(&mut self) -> Result<Matcher, SelectorError> {
        let label = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        if label.is_empty() {
            return Err(self.error("a label name is missing", MATCHER));
        }
        self.space();
        let sign_at = self.at;
        // `==` before `=`: it is what people write by habit.
        let sign = ["=~", "!~", "!=", "==", "="]
            .into_iter()
            .find(|s| self.take(s));
        let Some(sign) = sign else {
            return Err(self.error(&format!("the label `{label}` has no value"), MATCHER));
        };
        self.space();
        let value_at = self.at;
        let value = self.quoted(label)?;
        let expression = || {
            Regex::new(&format!("^(?:{value})$")).map_err(|e| {
                let cause = e.to_string();
                let cause = cause
                    .lines()
                    .last()
                    .unwrap_or("")
                    .trim_start_matches("error: ")
                    .to_owned();
                let what = format!("`{value}` is no regular expression: {cause}");
                SelectorError {
                    at: value_at,
                    what,
                    help: "use `=` for a plain value".to_owned(),
                }
            })
        };
        let test = match sign {
            "=" => Test::Is(value),
            "!=" => Test::IsNot(value),
            "=~" => Test::Like(expression()?),
            "!~" => Test::NotLike(expression()?),
            _ => {
                let help = "write `=`, `!=`, `=~` or `!~`".to_owned();
                return Err(SelectorError {
                    at: sign_at,
                    what: format!("`{sign}` is no comparison of labels"),
                    help,
                });
            }
        };
        Ok(Matcher {
            label: label.to_owned(),
            test,
        })
    }

    fn quoted(&mut self, label: &str) -> Result<String, SelectorError> {
        if !self.take("\"") {
            let value = self.rest().split([',', '}']).next().unwrap_or("").trim();
            let what = format!("the value of `{label}` has no quotes");
            return Err(self.error(&what, &format!("write `{label}=\"{value}\"`")));
        }
        let start = self.at;
        let mut value = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + at + 1;
                    return Ok(value);
                }
                // Only what the format itself escapes; an expression's own backslashes stay.
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some(c @ ('"' | '\\')) => value.push(c),
                    Some(c) => value.extend(['\\', c]),
                    None => break,
                },
                c => value.push(c),
            }
        }
        Err(self.error(
            &format!("the value of `{label}` does not end"),
            "add the closing quote",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::exposition::Exposition;

    fn selected(selector: &str) -> Vec<f64> {
        let text = "r{reason=\"stop\",e=\"0\"} 1\nr{reason=\"length\",e=\"0\"} 2\nr{reason=\"a\\\"b\"} 4\nr 8\n";
        let selector = Selector::parse(selector).unwrap();
        let e = Exposition::parse(text);
        e.named(selector.name())
            .filter(|s| selector.accepts(s))
            .map(|s| s.value())
            .collect()
    }

    #[test]
    fn labels_are_compared_as_prometheus_does() {
        assert_eq!(selected("r"), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(selected("r{}"), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(selected(r#" r { reason = "stop" , } "#), [1.0]);
        assert_eq!(selected(r#"r{reason!="stop",e="0"}"#), [2.0]);
        assert_eq!(selected(r#"r{reason=~"st.p|len"}"#), [1.0]);
        assert_eq!(selected(r#"r{reason!~"stop|length"}"#), [4.0, 8.0]);
        assert_eq!(selected(r#"r{reason="a\"b"}"#), [4.0]);
        assert_eq!(selected(r#"r{reason=""}"#), [8.0]);
        assert_eq!(selected(r#"r{reason=~"\\w+"}"#), [1.0, 2.0]);
        assert_eq!(selected(r#"r{reason=~"\w+"}"#), [1.0, 2.0]);
    }

    #[test]
    fn each_fault_has_a_place_and_a_remedy() {
        for (text, message) in [
            (
                "",
                "the series name is missing (character 1); write the full name",
            ),
            ("{a=\"1\"}", "the series name is missing (character 1)"),
            ("9a", "a series name begins with a digit"),
            (
                "a{b=\"1\"",
                "the braces do not close (character 8); add `}` at the end",
            ),
            ("a{", "the braces do not close"),
            (
                "a{b}",
                "the label `b` has no value (character 4); write labels as",
            ),
            ("a{b,c}", "the label `b` has no value"),
            (
                "a{rank=0}",
                "the value of `rank` has no quotes (character 8); write `rank=\"0\"`",
            ),
            (
                "a{b==\"1\"}",
                "`==` is no comparison of labels (character 4); write `=`",
            ),
            ("a{b=\"1}", "the value of `b` does not end"),
            ("a{b=\"1\" c=\"2\"}", "labels are not parted by commas"),
            (
                "a{b=~\"(\"}",
                "`(` is no regular expression: unclosed group",
            ),
            ("a > 0", "`> 0` does not belong to a selector (character 3)"),
            ("a{b=\"1\\", "the value of `b` does not end"),
            ("é", "the series name is missing"),
        ] {
            let error = Selector::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn a_renamed_selector_keeps_its_conditions() {
        let s = Selector::parse("a{b=\"1\"}").unwrap().renamed("a_total");
        assert_eq!(
            (s.to_string().as_str(), s.name()),
            ("a_total{b=\"1\"}", "a_total")
        );
    }
}
