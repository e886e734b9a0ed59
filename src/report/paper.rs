//! The paper of a terminal: how wide, in which colours and characters, and how much of the report goes on it.

/// Columns of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width(pub(super) u16);

/// Columns of a report that goes to a file or a pipe.
pub(super) const PIPED: u16 = 120;

/// Narrower than this, tables fall apart into letters.
const LEAST: u16 = 60;

/// Wider than this, the eye loses the row.
const MOST: u16 = 160;

impl Width {
    /// Of the terminal at standard output, or of a pipe.
    pub fn of(is_terminal: bool) -> Self {
        match is_terminal {
            true => Self::columns(comfy_table::Table::new().width().unwrap_or(PIPED)),
            false => Self(PIPED),
        }
    }

    /// So many columns, within what can be read.
    pub fn columns(columns: u16) -> Self {
        Self(columns.clamp(LEAST, MOST))
    }
}

/// Whether colours are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// No escape sequence at all.
    Off,
    /// The sixteen colours that a terminal's own theme defines.
    On,
}

impl From<bool> for Colour {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// Which characters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// All of Unicode.
    Unicode,
    /// ASCII only; what has no spelling in it is written `\u{…}`.
    Ascii,
}

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What everybody needs; the rest is in the files.
    Essential,
    /// Every section.
    Full,
}

/// The paper that a report is written on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Columns.
    pub width: Width,
    /// Colours.
    pub colour: Colour,
    /// Characters.
    pub charset: Charset,
    /// Sections.
    pub depth: Depth,
}
