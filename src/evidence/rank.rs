//! Which rank a log line or a process speaks for.

use regex::Regex;

use crate::spec::gate::Ranks;

/// The coordinates that a name told (`Worker_DP1_TP3`, `DP0 TP1`); what it did not tell is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankTag {
    /// Tensor-parallel coordinate.
    pub tp: Option<u32>,
    /// Pipeline-parallel coordinate.
    pub pp: Option<u32>,
    /// Data-parallel coordinate.
    pub dp: Option<u32>,
    /// Expert-parallel coordinate; it follows from the others and is not used to count.
    pub ep: Option<u32>,
    /// Global rank, where the name tells it directly.
    pub rank: Option<u32>,
}

impl RankTag {
    /// Reads a name by one expression with groups `tp`, `pp`, `dp`, `ep` or `rank`; `None` if it tells none of them.
    ///
    /// A name without any coordinate (`Worker` before the groups exist) is no rank at all.
    pub fn read(expression: &Regex, name: &str) -> Option<RankTag> {
        let found = expression.captures(name)?;
        let part = |group| found.name(group).and_then(|m| m.as_str().parse().ok());
        let tag = RankTag {
            tp: part("tp"),
            pp: part("pp"),
            dp: part("dp"),
            ep: part("ep"),
            rank: part("rank"),
        };
        (tag != RankTag::default()).then_some(tag)
    }

    /// Global rank from 0, data parallel outermost and tensor parallel innermost, as vLLM and SGLang count.
    ///
    /// A dimension that the tag leaves out counts as 0 where only one rank of it exists; otherwise, and for a
    /// coordinate out of range, the rank is unknown.
    pub fn index(&self, ranks: &Ranks) -> Option<u32> {
        if let Some(rank) = self.rank {
            return (rank < ranks.total()).then_some(rank);
        }
        let within = |coordinate: Option<u32>, size: u32| match coordinate {
            Some(at) => (at < size).then_some(at),
            None => (size == 1).then_some(0),
        };
        let tp = within(self.tp, ranks.tp)?;
        let pp = within(self.pp, ranks.pp)?;
        let dp = within(self.dp, ranks.dp)?;
        Some((dp * ranks.pp + pp) * ranks.tp + tp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGS: &str =
        r"^Worker(?:_DP(?P<dp>\d+))?(?:_PP(?P<pp>\d+))?(?:_TP(?P<tp>\d+))?(?:_EP(?P<ep>\d+))?$";

    fn index(name: &str, tp: u32, pp: u32, dp: u32) -> Option<u32> {
        let ranks = Ranks {
            tp,
            pp,
            dp,
            nodes: 1,
        };
        RankTag::read(&Regex::new(TAGS).unwrap(), name)?.index(&ranks)
    }

    #[test]
    fn coordinates_become_global_ranks() {
        assert_eq!(index("Worker_TP7", 8, 1, 1), Some(7));
        assert_eq!(index("Worker_PP1_TP2", 4, 2, 1), Some(6));
        assert_eq!(index("Worker_DP1_TP1_EP3", 2, 1, 2), Some(3));
        assert_eq!(index("Worker_DP1_PP1_TP1", 2, 2, 2), Some(7));
    }

    #[test]
    fn what_is_not_told_is_not_guessed() {
        assert_eq!(index("Worker", 1, 1, 1), None);
        assert_eq!(index("Worker_DP1", 8, 1, 2), None);
        assert_eq!(index("Worker_TP8", 8, 1, 1), None);
        assert_eq!(index("APIServer", 1, 1, 1), None);
    }
}
