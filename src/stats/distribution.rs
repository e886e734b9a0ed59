//! Quantiles and tails of the distributions that the methods rest on, by `statrs`.

use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

/// Quantile of the standard normal distribution; `p` strictly between 0 and 1.
pub(super) fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Chance that a standard normal value is at most `z`.
pub(super) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Quantile of Student's t with `freedom` degrees (1 or more); `p` strictly between 0 and 1.
pub(super) fn t_quantile(p: f64, freedom: usize) -> f64 {
    // Above this the normal quantile is within 1e-5, and the inverse beta function loses digits.
    if freedom > 200_000 {
        return normal_quantile(p);
    }
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(p))
}

/// Quantile of chi-squared with `freedom` degrees (1 or more).
pub(super) fn chi_squared_quantile(p: f64, freedom: usize) -> f64 {
    ChiSquared::new(freedom.max(1) as f64).map_or(f64::NAN, |c| c.inverse_cdf(p))
}

/// Chance of at most `k` successes in `n` trials of chance `p` (0 to 1).
pub(super) fn binomial_at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    Binomial::new(p, n).map_or(1.0, |b| b.cdf(k))
}

/// Chance of at least `k` successes in `n` trials of chance `p` (0 to 1).
pub(super) fn binomial_at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    Binomial::new(p, n).map_or(1.0, |b| b.sf(k - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, table: f64, within: f64) {
        assert!((got - table).abs() <= within, "got {got}, table {table}");
    }

    #[test]
    fn t_quantiles_agree_with_the_printed_table() {
        // Fisher and Yates, one-sided 5 %, 2.5 % and 1 %.
        for (freedom, five, two_and_half, one) in [
            (1, 6.314, 12.706, 31.821),
            (2, 2.920, 4.303, 6.965),
            (4, 2.132, 2.776, 3.747),
            (9, 1.833, 2.262, 2.821),
            (30, 1.697, 2.042, 2.457),
            (120, 1.658, 1.980, 2.358),
        ] {
            near(t_quantile(0.95, freedom), five, 6e-4);
            near(t_quantile(0.975, freedom), two_and_half, 6e-4);
            near(t_quantile(0.99, freedom), one, 6e-4);
        }
        near(t_quantile(0.95, 100_000), 1.6449, 1e-4);
        near(t_quantile(0.95, 1_000_000), 1.6449, 1e-4);
    }

    #[test]
    fn normal_and_chi_squared_agree_with_the_printed_tables() {
        near(normal_quantile(0.95), 1.644_854, 1e-6);
        near(normal_quantile(0.8), 0.841_621, 1e-6);
        near(normal_cdf(1.959_964), 0.975, 1e-6);
        near(chi_squared_quantile(0.05, 4), 0.710_723, 1e-5);
        near(chi_squared_quantile(0.05, 19), 10.117, 1e-3);
    }

    #[test]
    fn binomial_tails_agree_with_sums_by_hand() {
        near(binomial_at_most(0, 59, 0.05), 0.95_f64.powi(59), 1e-12);
        near(binomial_at_most(2, 5, 0.5), 0.5, 1e-12);
        near(binomial_at_least(5, 5, 0.5), 1.0 / 32.0, 1e-12);
        near(binomial_at_least(0, 5, 0.5), 1.0, 0.0);
        near(binomial_at_most(7, 5, 0.5), 1.0, 0.0);
    }
}
