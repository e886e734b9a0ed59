//! Known proofs of path: lines that announce or refute one, counters that must move or stand still.

use super::Ranks;

/// How many times a line is printed when all is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Once by every rank.
    EveryRank,
    /// Once by each node.
    EveryNode,
    /// Once in the whole deployment.
    Once,
}

/// A known proof of path.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Name in a gate (`attention:flash_attn`).
    pub name: &'static str,
    /// What it proves, in one sentence.
    pub about: &'static str,
    /// Lines that announce the path: regular expression on the message, and its scope from the given version on.
    pub announced: &'static [PresetLine],
    /// Lines that refute it.
    pub refuted: &'static [&'static str],
    /// Messages that must be refuted.
    pub refuted_matches: &'static [&'static str],
    /// Messages that must not be refuted.
    pub refuted_never: &'static [&'static str],
    /// Series that must move in the window (selector as in a gate).
    pub moved: &'static [&'static str],
    /// Series that must be still in the window. An absent series is still only where its absence proves so
    /// (`AbsentDrafts::MeansOff`); elsewhere it proves nothing.
    pub still: &'static [&'static str],
}

/// An announcing line and how often it is printed, by version.
#[derive(Debug, Clone, Copy)]
pub struct PresetLine {
    /// Regular expression on the message.
    pub pattern: &'static str,
    /// First version with this scope, `(major, minor)`.
    pub since: (u32, u32),
    /// Scope from that version on.
    pub scope: Scope,
    /// A later version from which the same line has another scope.
    pub later: Option<LaterScope>,
    /// Where the pattern is looked for.
    pub part: Part,
    /// Messages that it must match.
    pub matches: &'static [&'static str],
    /// Messages that it must not match.
    pub never: &'static [&'static str],
}

/// A scope that holds from a version on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaterScope {
    /// `(major, minor)`.
    pub since: (u32, u32),
    /// Scope from then on.
    pub scope: Scope,
}

/// What of a log record a pattern is looked for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// The message alone.
    #[default]
    Message,
    /// The whole record with its prefix, where the source file's name is the evidence.
    Record,
}

impl PresetLine {
    /// A line with its scope in every version.
    pub const fn new(scope: Scope, pattern: &'static str) -> PresetLine {
        PresetLine {
            pattern,
            since: (0, 0),
            scope,
            later: None,
            part: Part::Message,
            matches: &[],
            never: &[],
        }
    }

    /// The same line with its scope from this version on.
    pub const fn since(mut self, major: u32, minor: u32) -> PresetLine {
        self.since = (major, minor);
        self
    }

    /// The same line with another scope from this version on.
    pub const fn later(mut self, major: u32, minor: u32, scope: Scope) -> PresetLine {
        self.later = Some(LaterScope {
            since: (major, minor),
            scope,
        });
        self
    }

    /// The scope in this version; without one the scope that asks least, because a stricter one could refuse a healthy seat.
    pub fn scope_in(&self, version: Option<(u32, u32)>) -> Scope {
        match (self.later, version) {
            (Some(later), Some(version)) if version >= later.since => later.scope,
            (Some(later), None) if later.scope.asks() < self.scope.asks() => later.scope,
            _ => self.scope,
        }
    }

    /// The same line, looked for in the whole record.
    pub const fn in_record(mut self) -> PresetLine {
        self.part = Part::Record;
        self
    }

    /// The same line with examples that it must match.
    pub const fn matches(mut self, examples: &'static [&'static str]) -> PresetLine {
        self.matches = examples;
        self
    }

    /// The same line with near misses that it must not match.
    pub const fn never(mut self, examples: &'static [&'static str]) -> PresetLine {
        self.never = examples;
        self
    }
}

impl Preset {
    /// A preset of log lines only.
    pub const fn announced(
        name: &'static str,
        about: &'static str,
        announced: &'static [PresetLine],
    ) -> Preset {
        Preset {
            name,
            about,
            announced,
            refuted: &[],
            refuted_matches: &[],
            refuted_never: &[],
            moved: &[],
            still: &[],
        }
    }

    /// The same preset with lines that refute it, examples that must be refuted and healthy ones that must not.
    pub const fn refuted(
        mut self,
        patterns: &'static [&'static str],
        matches: &'static [&'static str],
        never: &'static [&'static str],
    ) -> Preset {
        self.refuted = patterns;
        self.refuted_matches = matches;
        self.refuted_never = never;
        self
    }

    /// The same preset with series that must move.
    pub const fn moved(mut self, series: &'static [&'static str]) -> Preset {
        self.moved = series;
        self
    }

    /// The same preset with series that must stand still.
    pub const fn still(mut self, series: &'static [&'static str]) -> Preset {
        self.still = series;
        self
    }

    /// The announcing lines that a version can print, each with the scope that holds there.
    pub fn lines_for(&self, version: Option<(u32, u32)>) -> Vec<PresetLine> {
        let printed = |line: &&PresetLine| version.is_none_or(|v| line.since <= v);
        let settled = |line: &PresetLine| PresetLine {
            scope: line.scope_in(version),
            later: None,
            ..*line
        };
        self.announced.iter().filter(printed).map(settled).collect()
    }
}

impl Scope {
    /// How many lines of this scope a healthy deployment prints at least.
    pub fn times(self, ranks: &Ranks) -> u32 {
        match self {
            Scope::EveryRank => ranks.total(),
            Scope::EveryNode => ranks.nodes,
            Scope::Once => 1,
        }
    }

    fn asks(self) -> u8 {
        match self {
            Scope::Once => 0,
            Scope::EveryNode => 1,
            Scope::EveryRank => 2,
        }
    }
}

/// A line that forbids acceptance.
#[derive(Debug, Clone, Copy)]
pub struct ForbiddenLine {
    /// Regular expression on the message.
    pub pattern: &'static str,
    /// Why, for the report.
    pub why: &'static str,
    /// Messages that it must match.
    pub matches: &'static [&'static str],
    /// Messages that it must not match.
    pub never: &'static [&'static str],
}
