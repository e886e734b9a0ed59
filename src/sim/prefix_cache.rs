//! The prefix cache: blocks of prompts that were read before, by the hash of all that stands before them and the salt.

use super::ngram::Numbers;

/// Tokens of one block.
const BLOCK: usize = 16;
/// Blocks that are kept: two full prompts of the longest kind; then all are forgotten.
const KEPT: usize = 65_536;

/// Which blocks are there.
#[derive(Debug, Default)]
pub(super) struct PrefixCache {
    blocks: Numbers<()>,
}

impl PrefixCache {
    /// How many of the prompt's first tokens are there; the prompt is there from now on.
    ///
    /// At least one token is always computed.
    pub(super) fn take(&mut self, ids: &[u32], salt: Option<&str>) -> usize {
        let mut hash = salt.map_or(0, |s| {
            s.bytes().fold(17, |h: u64, b| {
                h.wrapping_mul(31).wrapping_add(u64::from(b))
            })
        });
        let (mut there, mut unbroken) = (0, true);
        if self.blocks.len() > KEPT {
            self.blocks.clear();
        }
        for block in ids.chunks_exact(BLOCK) {
            for id in block {
                hash = (hash ^ u64::from(*id))
                    .wrapping_mul(0x0100_0000_01B3)
                    .rotate_left(7);
            }
            unbroken &= self.blocks.insert(hash, ()).is_some();
            there += if unbroken { BLOCK } else { 0 };
        }
        there.min(ids.len().saturating_sub(1) / BLOCK * BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_prompt_is_there_the_second_time_and_a_salt_parts_them() {
        let ids: Vec<u32> = (0..100).collect();
        let mut cache = PrefixCache::default();
        assert_eq!(cache.take(&ids, None), 0);
        assert_eq!(cache.take(&ids, None), 96);
        assert_eq!(cache.take(&ids, Some("salt")), 0);
        assert_eq!(cache.take(&ids[..64], None), 48);
    }
}
