//! What a kind of check declares about itself: its keys, its figures, its need of proof.
//!
//! The reader, the schema and the `kinds` table are made from these declarations alone.

use std::collections::BTreeMap;

use super::gate::{Check, Gate};

/// What a kind declares once and for all.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Name in a gate (`throughput`).
    pub name: &'static str,
    /// What it shows, in one sentence.
    pub about: &'static str,
    /// Keys of its own beside the common ones.
    pub keys: &'static [Key],
    /// Figures that it yields.
    pub figures: &'static [FigureKind],
    /// Whether its figures need a path proven.
    pub proof: ProofNeed,
    /// Repeats when the gate names none.
    pub repeats: u32,
}

/// A kind of check, as the gate file knows it.
pub trait Kind: Sync + std::fmt::Debug {
    /// What it declares once and for all.
    fn declaration(&self) -> &'static Declaration;

    /// Names of its cells under these params (`code/1`); one empty name for a kind of one cell.
    fn cells(&self, _params: &Params) -> Vec<String> {
        vec![String::new()]
    }

    /// Faults that only the kind can see (a needle longer than the answer's room, a percentile with too few requests).
    fn faults(&self, _check: &Check, _gate: &Gate) -> Vec<KindFault> {
        Vec::new()
    }

    /// Name in a gate.
    fn name(&self) -> &'static str {
        self.declaration().name
    }

    /// What it shows, in one sentence.
    fn about(&self) -> &'static str {
        self.declaration().about
    }

    /// Keys of its own beside the common ones.
    fn keys(&self) -> &'static [Key] {
        self.declaration().keys
    }

    /// Figures that it yields.
    fn figures(&self) -> &'static [FigureKind] {
        self.declaration().figures
    }

    /// Whether its figures need a path proven.
    fn proof(&self) -> ProofNeed {
        self.declaration().proof
    }

    /// Repeats when the gate names none.
    fn default_repeats(&self) -> u32 {
        self.declaration().repeats
    }
}

/// Whether a figure of this kind may stand without a proven path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofNeed {
    /// The check must name a path.
    Required,
    /// The check is evidence by itself (health, a pack on disk, a count of mounts).
    None,
}

/// A figure that a kind yields.
#[derive(Debug, Clone, Copy)]
pub struct FigureKind {
    /// Name (`decode_tok_s`).
    pub name: &'static str,
    /// Unit (`tok/s`); empty for a pure number; `word` for a class.
    pub unit: &'static str,
    /// Other spellings of the unit that a gate may use, with the factor to the unit (`("ms", 0.001)`).
    pub unit_aliases: &'static [(&'static str, f64)],
    /// Words that it can be, for `is WORD`; empty for numbers.
    pub words: &'static [&'static str],
    /// How several observations become one judgement.
    pub judged: Judged,
    /// What it is, in one sentence.
    pub about: &'static str,
}

/// How several observations of a figure are held to a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judged {
    /// By the exact signed-rank bound of their level: it must clear the limit; five repeats are the least.
    ByBound,
    /// By the bound of a ratio of sums or a clustered mean: it must clear the limit; five repeats or text windows are the least.
    BySums,
    /// A percentile by counting the requests over the limit, exactly; only `<= X`.
    ByCount {
        /// The percentile as a share (0.95 for p95).
        q: f64,
    },
    /// Each observation by itself must hold (a needle, a KV window); stated as `each of n`, never as a probability.
    Each,
}

/// One key of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name.
    pub name: &'static str,
    /// Type with bounds.
    pub takes: Takes,
    /// Value when absent.
    pub default: Default,
    /// What it does, in one sentence.
    pub about: &'static str,
}

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// A whole number, bounds included.
    Count(u64, u64),
    /// A number with a unit name for messages, bounds included.
    Number(f64, f64),
    /// A fraction: `0.05` or `"5 %"`.
    Fraction,
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of these words, no word twice.
    Words(&'static [&'static str]),
    /// A list of whole numbers, bounds included, no number twice.
    Counts(u64, u64),
    /// A time: `"90 s"`, `"45m"`, `"250 ms"`.
    Time,
    /// Rows of a table, each with these keys.
    Rows(&'static [Key]),
}

/// What a key is when the gate leaves it out.
#[derive(Debug, Clone, Copy)]
pub enum Default {
    /// It must be given.
    Required,
    /// It is absent.
    Absent,
    /// A whole number.
    Count(u64),
    /// A number, a fraction, or a time in seconds.
    Number(f64),
    /// A flag.
    Flag(bool),
    /// A text or word.
    Text(&'static str),
    /// Texts or words.
    Texts(&'static [&'static str]),
    /// Whole numbers.
    Counts(&'static [u64]),
}

/// A kind's keys as read.
pub type Params = BTreeMap<&'static str, Value>;

/// A key's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A number, a fraction, or a time in seconds.
    Number(f64),
    /// A flag.
    Flag(bool),
    /// A text or word.
    Text(String),
    /// Texts or words.
    Texts(Vec<String>),
    /// Whole numbers.
    Counts(Vec<u64>),
    /// Rows.
    Rows(Vec<Params>),
}

/// Reading of values whose presence and type the reader has already ensured; a wrong name gives the empty value of the type.
pub trait Read {
    /// A whole number.
    fn count(&self, key: &str) -> Option<u64>;
    /// A number, fraction or time in seconds.
    fn number(&self, key: &str) -> Option<f64>;
    /// A flag; false when absent.
    fn flag(&self, key: &str) -> bool;
    /// A text.
    fn text(&self, key: &str) -> Option<&str>;
    /// Texts; none when absent.
    fn texts(&self, key: &str) -> &[String];
    /// Whole numbers; none when absent.
    fn counts(&self, key: &str) -> &[u64];
    /// Rows; none when absent.
    fn rows(&self, key: &str) -> &[Params];
}

impl Read for Params {
    fn count(&self, key: &str) -> Option<u64> {
        match self.get(key) {
            Some(Value::Count(n)) => Some(*n),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        match self.get(key) {
            Some(Value::Number(x)) => Some(*x),
            Some(Value::Count(n)) => Some(*n as f64),
            _ => None,
        }
    }

    fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some(Value::Flag(true)))
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Value::Text(t)) => Some(t),
            _ => None,
        }
    }

    fn texts(&self, key: &str) -> &[String] {
        match self.get(key) {
            Some(Value::Texts(t)) => t,
            _ => &[],
        }
    }

    fn counts(&self, key: &str) -> &[u64] {
        match self.get(key) {
            Some(Value::Counts(n)) => n,
            _ => &[],
        }
    }

    fn rows(&self, key: &str) -> &[Params] {
        match self.get(key) {
            Some(Value::Rows(r)) => r,
            _ => &[],
        }
    }
}

/// A fault that a kind sees in a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindFault {
    /// Key that is at fault; absent: the whole check.
    pub key: Option<&'static str>,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: String,
}
