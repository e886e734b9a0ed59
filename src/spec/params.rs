//! A kind's own keys, read by what they take.

use toml::de::DeValue;

use super::kind::{Default, Key, Params, Takes, Value};
use super::scalar;
use super::walk::{self, Ledger, Node, Walk};

/// The kind's own keys, defaults filled in.
pub(super) fn params(table: &Walk<'_, '_>, ledger: &Ledger, keys: &'static [Key]) -> Params {
    let mut params = Params::new();
    for key in keys {
        let value = match table.get(key.name) {
            Some(node) => value(ledger, node, key),
            None => default(table, ledger, key),
        };
        if let Some(value) = value {
            params.insert(key.name, value);
        }
    }
    params
}

fn default(table: &Walk<'_, '_>, ledger: &Ledger, key: &Key) -> Option<Value> {
    match key.default {
        Default::Required => {
            ledger.error(
                walk::head(&table.span),
                format!("{} has no `{}`", table.what, key.name),
                format!("`{}` is missing", key.name),
                Some(key.about.to_owned()),
            );
            None
        }
        Default::Absent => None,
        Default::Count(n) => Some(Value::Count(n)),
        Default::Number(x) => Some(Value::Number(x)),
        Default::Flag(on) => Some(Value::Flag(on)),
        Default::Text(text) => Some(Value::Text(text.into())),
        Default::Texts(texts) => Some(Value::Texts(
            texts.iter().map(ToString::to_string).collect(),
        )),
        Default::Counts(counts) => Some(Value::Counts(counts.to_vec())),
    }
}

fn value(ledger: &Ledger, node: Node<'_, '_>, key: &Key) -> Option<Value> {
    match key.takes {
        Takes::Count(least, most) => {
            scalar::whole(ledger, node, key.name, least, most).map(Value::Count)
        }
        Takes::Number(least, most) => {
            let x = scalar::number(ledger, node, key.name)?;
            if (least..=most).contains(&x) {
                return Some(Value::Number(x));
            }
            ledger.error(
                node.span(),
                format!("`{}` takes a number from {least} to {most}", key.name),
                "out of range",
                None,
            );
            None
        }
        Takes::Fraction => scalar::fraction(ledger, node, key.name).map(Value::Number),
        Takes::Time => scalar::seconds(ledger, node, key.name).map(Value::Number),
        Takes::Flag => match node.get_ref().as_bool() {
            Some(on) => Some(Value::Flag(on)),
            None => {
                walk::wrong_type(ledger, node, key.name, "`true` or `false`");
                None
            }
        },
        Takes::Text => scalar::text(ledger, node, key.name).map(Value::Text),
        Takes::Word(words) => word(ledger, node, key.name, words).map(Value::Text),
        Takes::Texts => list(ledger, node, key.name).map(|nodes| {
            Value::Texts(unique(ledger, nodes, |n| scalar::text(ledger, n, key.name)))
        }),
        Takes::Words(words) => list(ledger, node, key.name)
            .map(|nodes| Value::Texts(unique(ledger, nodes, |n| word(ledger, n, key.name, words)))),
        Takes::Counts(least, most) => list(ledger, node, key.name).map(|nodes| {
            Value::Counts(unique(ledger, nodes, |n| {
                scalar::whole(ledger, n, key.name, least, most)
            }))
        }),
        Takes::Rows(columns) => list(ledger, node, key.name)
            .map(|nodes| Value::Rows(rows(ledger, nodes, key.name, columns))),
    }
}

fn rows(
    ledger: &Ledger,
    nodes: Vec<Node<'_, '_>>,
    name: &str,
    columns: &'static [Key],
) -> Vec<Params> {
    nodes
        .into_iter()
        .filter_map(|node| {
            let table = walk::table(ledger, node, name, format!("a row of `{name}`"))?;
            let row = params(&table, ledger, columns);
            let known: Vec<&'static str> = columns.iter().map(|k| k.name).collect();
            table.close(&known);
            Some(row)
        })
        .collect()
}

fn list<'a, 'd>(ledger: &Ledger, node: Node<'a, 'd>, key: &str) -> Option<Vec<Node<'a, 'd>>> {
    match node.get_ref() {
        DeValue::Array(list) if list.is_empty() => {
            ledger.error(node.span(), format!("`{key}` is empty"), "empty", None);
            None
        }
        DeValue::Array(list) => Some(list.iter().collect()),
        _ => {
            walk::wrong_type(ledger, node, key, "a list, as in `[1, 4]`");
            None
        }
    }
}

fn unique<T: PartialEq>(
    ledger: &Ledger,
    nodes: Vec<Node<'_, '_>>,
    read: impl Fn(Node<'_, '_>) -> Option<T>,
) -> Vec<T> {
    let mut all = Vec::new();
    for node in nodes {
        let Some(item) = read(node) else { continue };
        if all.contains(&item) {
            ledger.error(node.span(), "this stands in the list twice", "again", None);
        } else {
            all.push(item);
        }
    }
    all
}

fn word(ledger: &Ledger, node: Node<'_, '_>, key: &str, words: &[&'static str]) -> Option<String> {
    let text = scalar::text(ledger, node, key)?;
    if words.contains(&text.as_str()) {
        return Some(text);
    }
    let help = walk::did_you_mean(&text, words.iter().copied())
        .unwrap_or_else(|| format!("one of `{}`", words.join("`, `")));
    ledger.error(
        node.span(),
        format!("`{key}` does not know `{text}`"),
        "unknown",
        Some(help),
    );
    None
}
