//! The one source of chance in this room: SplitMix64, the same on every machine.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, fast, and equal everywhere because it is integers only.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A stream that depends on the seed alone.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own for one purpose: the same seed and another purpose give unrelated numbers.
    pub fn named(seed: u64, purpose: &str) -> Self {
        // FNV-1a spreads the purpose's letters; one step of the generator then mixes both.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in purpose.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut stream = Self(seed ^ hash);
        let start = stream.draw();
        Self(start)
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0. The bias is below `bound`/2^64.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.draw()) * (bound as u128);
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Brings the items into an order drawn from this stream (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_first_numbers_come_out() {
        let mut stream = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| stream.draw()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn purposes_do_not_share_a_stream() {
        assert_ne!(
            SplitMix64::named(7, "a").draw(),
            SplitMix64::named(7, "b").draw()
        );
        assert_eq!(
            SplitMix64::named(7, "a").draw(),
            SplitMix64::named(7, "a").draw()
        );
    }

    #[test]
    fn a_shuffle_keeps_every_item_and_numbers_stay_below_their_bound() {
        let mut stream = SplitMix64::new(3);
        let mut items: Vec<u32> = (0..50).collect();
        stream.shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
        assert!((0..1000).all(|_| stream.below(7) < 7));
        assert_eq!(stream.below(0), 0);
    }
}
