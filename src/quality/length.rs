//! Lengths of answers against those of the certified run: a build that says less looks faster, and is not.

/// By how much the mean length may differ, as a share: MLPerf's TEST06/TEST09 allow 10 % for the same reason.
pub const TOLERANCE: f64 = 0.10;

/// How lengths compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// Within the tolerance.
    Alike {
        /// Mean over reference mean.
        ratio: f64,
    },
    /// Shorter than the tolerance allows.
    Shorter {
        /// Mean over reference mean.
        ratio: f64,
    },
    /// Longer than the tolerance allows.
    Longer {
        /// Mean over reference mean.
        ratio: f64,
    },
}

/// Compares the mean length, in tokens, with the reference's; absent when one has no answers or the reference is empty text.
pub fn compare(tokens: &[u64], reference: &[u64], tolerance: f64) -> Option<Length> {
    let (mean, wanted) = (mean(tokens)?, mean(reference)?);
    let ratio = (wanted > 0.0).then(|| mean / wanted)?;
    Some(match ratio - 1.0 {
        // A hair above the tolerance, so that 0.9 as a binary number is still 10 % less.
        gap if gap.abs() <= tolerance + 1e-9 => Length::Alike { ratio },
        gap if gap < 0.0 => Length::Shorter { ratio },
        _ => Length::Longer { ratio },
    })
}

/// Mean length in tokens; absent without answers.
pub fn mean(tokens: &[u64]) -> Option<f64> {
    (!tokens.is_empty())
        .then(|| tokens.iter().map(|n| *n as f64).sum::<f64>() / tokens.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_percent_either_way_is_alike() {
        for mean in [90, 100, 110] {
            assert!(
                matches!(
                    compare(&[mean], &[100], TOLERANCE),
                    Some(Length::Alike { .. })
                ),
                "{mean}"
            );
        }
    }

    #[test]
    fn more_than_that_is_shorter_or_longer() {
        assert_eq!(
            compare(&[80, 98], &[100, 100], TOLERANCE),
            Some(Length::Shorter { ratio: 0.89 })
        );
        assert!(matches!(
            compare(&[112], &[100], TOLERANCE),
            Some(Length::Longer { .. })
        ));
    }

    #[test]
    fn nothing_to_compare_is_absent() {
        assert_eq!(compare(&[], &[1], TOLERANCE), None);
        assert_eq!(compare(&[1], &[], TOLERANCE), None);
        assert_eq!(compare(&[1], &[0], TOLERANCE), None);
    }
}
