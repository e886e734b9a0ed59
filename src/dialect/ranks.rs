//! How many processes serve one model.

/// How many ranks serve, by dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// Tensor parallel.
    pub tp: u32,
    /// Pipeline parallel.
    pub pp: u32,
    /// Data parallel.
    pub dp: u32,
    /// Nodes.
    pub nodes: u32,
}

impl Ranks {
    /// Ranks in all.
    pub fn total(&self) -> u32 {
        self.tp * self.pp * self.dp
    }
}
