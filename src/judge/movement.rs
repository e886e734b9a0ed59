//! How far a dialect's own series moved inside a window.

use crate::dialect::Names;
use crate::evidence::exposition::Exposition;
use crate::evidence::window::{Scrape, Window};

/// Whether both ends of the window were scraped.
pub fn scraped(window: &Window) -> bool {
    ends(window).is_some()
}

/// Both scrapes of a window.
pub fn ends(window: &Window) -> Option<Ends<'_>> {
    match (&window.counters.before, &window.counters.after) {
        (
            Scrape::Taken {
                exposition: before, ..
            },
            Scrape::Taken {
                exposition: after, ..
            },
        ) => Some(Ends { before, after }),
        _ => None,
    }
}

/// Both scrapes of a window.
#[derive(Debug, Clone, Copy)]
pub struct Ends<'a> {
    /// At the opening.
    pub before: &'a Exposition,
    /// At the close.
    pub after: &'a Exposition,
}

/// The first of these series that is present at the close, summed over its labels: how far it moved.
///
/// Absent when no such series is there, or the window was not scraped. A series that was not there at the opening
/// counts from zero. A reset gives a negative number; the preconditions speak of it.
pub fn of(window: &Window, names: Names) -> Option<f64> {
    let ends = ends(window)?;
    names.iter().find_map(|name| {
        let after = total(ends.after, name)?;
        Some(after - total(ends.before, name).unwrap_or(0.0))
    })
}

/// Sum over the labels of a series; absent without one.
pub fn total(exposition: &Exposition, name: &str) -> Option<f64> {
    exposition
        .named(name)
        .map(|s| s.value())
        .reduce(|a, b| a + b)
}
