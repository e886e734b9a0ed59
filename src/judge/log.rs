//! The log of a boot, as far as a window may look.

use super::sample::View;
use crate::dialect::Dialect;
use crate::dialect::Part;
use crate::evidence::kv::{self, KvWindow};
use crate::evidence::log::LogReader;
use crate::evidence::log_count::{Count, Search};
use crate::evidence::window::{LogWitness, Window};
use crate::spec::gate::{Ranks, When};

/// A stretch of a boot's log with the reader of its dialect.
#[derive(Debug)]
pub struct Stretch<'a> {
    bytes: &'a [u8],
    dialect: &'static Dialect,
    ranks: Ranks,
    /// Whether the stretch begins with the boot's first byte and no byte of it is lost: only then does absence mean something.
    pub whole: bool,
    /// What it is, for people.
    pub name: String,
}

/// The boot's log from its first byte to the window's end; absent without a log.
pub fn of_boot<'a>(view: &View<'a>, window: &Window) -> Option<Stretch<'a>> {
    stretch(view, window, When::SinceBoot)
}

/// The stretch of the boot's log that a claim looks at; absent without a log.
pub fn stretch<'a>(view: &View<'a>, window: &Window, when: When) -> Option<Stretch<'a>> {
    let bytes = view.evidence.logs.get(&window.boot)?.as_slice();
    let boot = view.evidence.boot(&window.boot)?;
    let LogWitness::Followed { from_beginning, .. } = &boot.log else {
        return None;
    };
    let slice = window.log?;
    let end = usize::try_from(slice.to)
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let start = match when {
        When::SinceBoot => 0,
        When::Window => usize::try_from(slice.from).unwrap_or(usize::MAX).min(end),
    };
    let name = match when {
        When::SinceBoot => format!("log of boot {}, bytes 0–{end}", window.boot),
        When::Window => format!(
            "log of boot {}, bytes {start}–{end} (window {})",
            window.boot, window.id
        ),
    };
    let dialect = view.dialect?;
    let begun = *from_beginning && (!boot.command.is_empty() || has_beginning(dialect, bytes));
    let whole = match when {
        When::Window => slice.whole,
        When::SinceBoot => slice.unbroken && begun,
    };
    Some(Stretch {
        bytes: bytes.get(start..end)?,
        dialect,
        ranks: view.gate.seat.ranks,
        whole,
        name,
    })
}

/// Whether a log that we did not see begin holds its beginning: its dialect's first lines.
fn has_beginning(dialect: &'static Dialect, bytes: &[u8]) -> bool {
    dialect.log.first_lines.is_empty() || LogReader::new(dialect).banner(bytes).is_some()
}

impl Stretch<'_> {
    /// How often a pattern is printed, by rank; absent when the pattern does not compile (the reader of the gate refuses such).
    pub fn count(&self, pattern: &str, except: Option<&str>) -> Option<Count> {
        self.count_in(Part::Message, pattern, except)
    }

    /// The same in another part of each line.
    pub fn count_in(&self, part: Part, pattern: &str, except: Option<&str>) -> Option<Count> {
        let except: Vec<&str> = except.into_iter().collect();
        let search = Search::new(pattern, &except, part).ok()?;
        let counted = LogReader::new(self.dialect)
            .count(self.bytes, &[search], &self.ranks)
            .ok()?;
        counted.counts.into_iter().next()
    }

    /// The KV window that it tells.
    pub fn kv_window(&self) -> Option<KvWindow> {
        kv::kv_window(&LogReader::new(self.dialect), self.bytes)
    }
}
