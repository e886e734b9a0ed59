//! Walking a TOML table by hand, so that every fault is found at once and each knows its place.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::faults::{Fault, Severity};
use super::scalar::{seconds, text, texts, whole};

/// Where faults are put.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    faults: RefCell<Vec<Fault>>,
}

impl Ledger {
    /// Puts an error down.
    pub(super) fn error(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) {
        self.put(Severity::Error, span, message.into(), label.into(), help);
    }

    /// Puts a warning down.
    pub(super) fn warn(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) {
        self.put(Severity::Warning, span, message.into(), label.into(), help);
    }

    fn put(
        &self,
        severity: Severity,
        span: Range<usize>,
        message: String,
        label: String,
        help: Option<String>,
    ) {
        self.faults.borrow_mut().push(Fault {
            span,
            message,
            label,
            help,
            severity,
        });
    }

    /// How many errors stand so far: a part whose errors were told needs no second one for being empty.
    pub(super) fn errors(&self) -> usize {
        let faults = self.faults.borrow();
        let errors = faults.iter().filter(|f| f.severity == Severity::Error);
        errors.count()
    }

    /// Everything, in the order of the file.
    pub(super) fn take(self) -> Vec<Fault> {
        let mut all = self.faults.into_inner();
        all.sort_by_key(|f| (f.span.start, f.span.end));
        all.dedup();
        all
    }
}

/// A table that is being read; what is left unread when it is closed is an unknown key.
pub(super) struct Walk<'a, 'd> {
    ledger: &'a Ledger,
    table: &'a DeTable<'d>,
    /// What the table is, for messages (`[seat]`).
    pub(super) what: String,
    /// The table's own place.
    pub(super) span: Range<usize>,
    known: RefCell<BTreeSet<&'static str>>,
}

/// A value with its place.
pub(super) type Node<'a, 'd> = &'a Spanned<DeValue<'d>>;

impl<'a, 'd> Walk<'a, 'd> {
    pub(super) fn new(
        ledger: &'a Ledger,
        table: &'a DeTable<'d>,
        what: impl Into<String>,
        span: Range<usize>,
    ) -> Self {
        Self {
            ledger,
            table,
            what: what.into(),
            span,
            known: RefCell::default(),
        }
    }

    /// Every key with its value, in the order of the file.
    pub(super) fn entries(&self) -> Vec<(&'a str, Range<usize>, Node<'a, 'd>)> {
        let mut all: Vec<_> = self
            .table
            .iter()
            .map(|(k, v)| (k.get_ref().as_ref(), k.span(), v))
            .collect();
        all.sort_by_key(|(_, span, _)| span.start);
        all
    }

    /// The value of a key, which from now on counts as known.
    pub(super) fn get(&self, key: &'static str) -> Option<Node<'a, 'd>> {
        self.known.borrow_mut().insert(key);
        self.table
            .iter()
            .find(|(k, _)| k.get_ref().as_ref() == key)
            .map(|(_, v)| v)
    }

    /// Place of a key, or of the table.
    pub(super) fn place(&self, key: &str) -> Range<usize> {
        self.table
            .iter()
            .find(|(k, _)| k.get_ref().as_ref() == key)
            .map_or_else(|| self.span.clone(), |(k, v)| k.span().start..v.span().end)
    }

    /// The value of a key that must be there.
    pub(super) fn required(&self, key: &'static str, form: &str) -> Option<Node<'a, 'd>> {
        let found = self.get(key);
        if found.is_none() {
            self.ledger.error(
                head(&self.span),
                format!("{} has no `{key}`", self.what),
                format!("`{key}` is missing"),
                Some(format!("add `{key} = {form}`")),
            );
        }
        found
    }

    pub(super) fn text(&self, key: &'static str) -> Option<String> {
        self.get(key).and_then(|node| text(self.ledger, node, key))
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        let node = self.get(key)?;
        let found = node.get_ref().as_bool();
        if found.is_none() {
            wrong_type(self.ledger, node, key, "`true` or `false`");
        }
        found
    }

    pub(super) fn count(&self, key: &'static str, least: u64, most: u64) -> Option<u64> {
        self.get(key)
            .and_then(|node| whole(self.ledger, node, key, least, most))
    }

    pub(super) fn texts(&self, key: &'static str) -> Vec<String> {
        self.get(key)
            .map(|node| texts(self.ledger, node, key))
            .unwrap_or_default()
    }

    pub(super) fn time(&self, key: &'static str) -> Option<Duration> {
        self.get(key)
            .and_then(|node| seconds(self.ledger, node, key))
            .map(Duration::from_secs_f64)
    }

    /// A table under a key.
    pub(super) fn table(&self, key: &'static str, what: impl Into<String>) -> Option<Walk<'a, 'd>> {
        self.get(key)
            .and_then(|node| table(self.ledger, node, key, what))
    }

    /// One table or a list of tables under a key.
    pub(super) fn tables(&self, key: &'static str, what: &str) -> Vec<Walk<'a, 'd>> {
        let Some(node) = self.get(key) else {
            return Vec::new();
        };
        match node.get_ref() {
            DeValue::Array(list) => list
                .iter()
                .filter_map(|n| table(self.ledger, n, key, what))
                .collect(),
            _ => table(self.ledger, node, key, what).into_iter().collect(),
        }
    }

    /// Ends the reading: every key that nobody asked for is unknown. `more` are keys that are known without being read.
    pub(super) fn close(self, more: &[&'static str]) {
        let known = self.known.borrow();
        let all: BTreeSet<&str> = known.iter().copied().chain(more.iter().copied()).collect();
        for (key, span, _) in self.entries() {
            if !all.contains(key) {
                // `api_key` is known only to be refused.
                let good = all.iter().copied().filter(|k| *k != "api_key");
                let good: Vec<&str> = good.collect();
                let help = did_you_mean(key, good.iter().copied())
                    .unwrap_or_else(|| format!("{} knows `{}`", self.what, good.join("`, `")));
                self.ledger.error(
                    span,
                    format!("unknown key `{key}` in {}", self.what),
                    "unknown key",
                    Some(help),
                );
            }
        }
    }
}

/// The first line of a place, so that a caret does not underline a whole table.
pub(super) fn head(span: &Range<usize>) -> Range<usize> {
    span.start..span.end.min(span.start + 1).max(span.start)
}

/// `did you mean …` for the nearest of some names.
pub(super) fn did_you_mean<'n>(
    given: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<String> {
    let given = given.to_lowercase();
    let near = names
        .into_iter()
        .map(|name| {
            (
                strsim::damerau_levenshtein(&given, &name.to_lowercase()),
                name,
            )
        })
        // A third of the word may be wrong; more is another word.
        .filter(|(distance, name)| *distance <= (name.chars().count().max(3) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)?;
    Some(format!("did you mean `{}`?", near.1))
}

/// A name that also stands in an expectation and in the name of a folder.
pub(super) fn name(ledger: &Ledger, span: &Range<usize>, what: &str, name: &str) {
    let good = |c: char| c.is_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(good) {
        ledger.error(
            span.clone(),
            format!("`{name}` is no name of a {what}"),
            "letters, digits, `.`, `_` and `-`",
            Some("an expectation and a folder of the run bear this name".into()),
        );
    }
}

pub(super) fn wrong_type(ledger: &Ledger, node: Node<'_, '_>, key: &str, wanted: &str) {
    let found = node.get_ref().type_str();
    ledger.error(
        node.span(),
        format!("`{key}` takes {wanted}, not {} {found}", article(found)),
        format!("{} {found}", article(found)),
        None,
    );
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

pub(super) fn table<'a, 'd>(
    ledger: &'a Ledger,
    node: Node<'a, 'd>,
    key: &str,
    what: impl Into<String>,
) -> Option<Walk<'a, 'd>> {
    match node.get_ref() {
        DeValue::Table(inner) => Some(Walk::new(ledger, inner, what, node.span())),
        _ => {
            wrong_type(ledger, node, key, "a table, as in `{ … }`");
            None
        }
    }
}
