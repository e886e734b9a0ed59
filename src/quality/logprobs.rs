//! What logprobs say of themselves before any number is made of them, and the numbers.
//!
//! Each guard answers a bug that was seen with HTTP 200: zeros with speculation on (llama.cpp#27972), −9999 in place of
//! −∞ (vLLM), values of another position (vLLM#53488: worse than uniform), of another order (vLLM#42019), shifted by one.

use std::fmt;

/// Vocabulary assumed where none is told: the largest in use, so that the guard errs on the lenient side.
const LARGEST_VOCABULARY: u64 = 262_144;
/// A logprob above 0 by this much is float32 noise.
const ABOVE_ZERO: f64 = 1e-6;
/// vLLM writes −9999 for −∞; nothing real comes near.
const SENTINEL: f64 = -9_998.0;
/// Values nearer to 0 than this are zeros.
const ZERO: f64 = 1e-9;
/// Values below which equality of all is chance.
const FEWEST_EQUAL: usize = 4;
/// A token that improbable is a surprise in text; a share of them is a fault.
const SURPRISE: f64 = -20.0;
/// Share of surprises that no text reaches.
const SURPRISE_SHARE: f64 = 0.02;
/// Values below which means and shares mean nothing: a short window may hold one odd word.
const FEWEST_MEAN: usize = 50;

/// Nats a token by which shuffled text must be worse: a scorer of these tokens in this order loses 2 to 6.
pub const SHUFFLED_RISE: f64 = 1.0;
/// Nats by which a value may change with the order of requests: what repeated runs of one build with bf16 kernels show.
pub const ORDER_TOLERANCE: f64 = 0.05;
/// Nats by which a value may change with the length of the prompt: other kernels take over at seams; bf16 shows up to 0.36.
pub const SEAM_TOLERANCE: f64 = 0.5;
/// Nats by which the mean value may change with the length of the prompt.
pub const SEAM_MEAN_TOLERANCE: f64 = 0.02;

/// Why logprobs are no logprobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// There are none beyond the first.
    None,
    /// Not as many as tokens.
    Count {
        /// Logprobs.
        got: usize,
        /// Tokens.
        wanted: usize,
    },
    /// The first token has one, which it cannot have: the list is shifted.
    First {
        /// Its value.
        value: f64,
    },
    /// One is absent.
    Missing {
        /// Its place.
        at: usize,
    },
    /// One is no number.
    NotFinite {
        /// Its place.
        at: usize,
    },
    /// One is a probability above 1.
    Positive {
        /// Its place.
        at: usize,
        /// Its value.
        value: f64,
    },
    /// One is the stand-in for −∞.
    Sentinel {
        /// Its place.
        at: usize,
    },
    /// All are zero.
    AllZero,
    /// All are equal.
    AllEqual {
        /// The value.
        value: f64,
    },
    /// The text is less likely than letters drawn at random.
    WorseThanUniform {
        /// Mean in nats a token.
        nats: f64,
        /// ln of the vocabulary.
        uniform: f64,
    },
    /// Too many tokens are next to impossible.
    Surprises {
        /// Their share.
        share: f64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no logprobs came"),
            Self::Count { got, wanted } => write!(f, "{got} logprobs for {wanted} tokens"),
            Self::First { value } => {
                write!(
                    f,
                    "the first token has a logprob ({value}), which nothing before it can give: the list is shifted by one"
                )
            }
            Self::Missing { at } => write!(f, "token {at} has no logprob"),
            Self::NotFinite { at } => write!(f, "the logprob of token {at} is not a finite number"),
            Self::Positive { at, value } => write!(
                f,
                "the logprob of token {at} is {value}: a probability above 1"
            ),
            Self::Sentinel { at } => write!(
                f,
                "the logprob of token {at} is the server's stand-in for minus infinity (-9999)"
            ),
            Self::AllZero => {
                f.write_str("every logprob is 0: the server did not compute them (speculation on?)")
            }
            Self::AllEqual { value } => {
                write!(f, "every logprob is {value}: they are not of this text")
            }
            Self::WorseThanUniform { nats, uniform } => write!(
                f,
                "{nats:.2} nats a token are worse than guessing at random ({uniform:.2}): the values are of other tokens"
            ),
            Self::Surprises { share } => write!(
                f,
                "{:.1} % of the tokens have a probability below e^-20 (text has less than {:.0} %): part of the values are of other tokens",
                share * 100.0,
                SURPRISE_SHARE * 100.0
            ),
        }
    }
}

impl std::error::Error for Fault {}

/// Holds the logprobs of one window of text against everything that they must be; the first is absent by nature.
///
/// # Errors
/// The first fault, the most telling one first.
pub fn guard(logprobs: &[Option<f64>], vocabulary: Option<u64>) -> Result<(), Fault> {
    let values = values(logprobs)?;
    if values.iter().all(|v| v.abs() < ZERO) {
        return Err(Fault::AllZero);
    }
    if values.len() >= FEWEST_EQUAL && values.iter().all(|v| v.to_bits() == values[0].to_bits()) {
        return Err(Fault::AllEqual { value: values[0] });
    }
    if values.len() < FEWEST_MEAN {
        return Ok(());
    }
    let nats = -values.iter().sum::<f64>() / values.len() as f64;
    let uniform = (vocabulary.unwrap_or(LARGEST_VOCABULARY).max(2) as f64).ln();
    if nats > uniform {
        return Err(Fault::WorseThanUniform { nats, uniform });
    }
    let share = values.iter().filter(|v| **v < SURPRISE).count() as f64 / values.len() as f64;
    if share > SURPRISE_SHARE {
        return Err(Fault::Surprises { share });
    }
    Ok(())
}

/// [`guard`], and as many logprobs as tokens.
///
/// # Errors
/// As [`guard`].
pub fn guard_for(
    tokens: usize,
    logprobs: &[Option<f64>],
    vocabulary: Option<u64>,
) -> Result<(), Fault> {
    if logprobs.len() != tokens {
        return Err(Fault::Count {
            got: logprobs.len(),
            wanted: tokens,
        });
    }
    guard(logprobs, vocabulary)
}

/// The values after the first, each of them a log probability.
fn values(logprobs: &[Option<f64>]) -> Result<Vec<f64>, Fault> {
    let Some((first, rest)) = logprobs.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Err(Fault::None);
    };
    let mut values = Vec::with_capacity(rest.len());
    for (place, value) in rest.iter().enumerate() {
        let at = place + 1;
        let value = value.ok_or(Fault::Missing { at })?;
        if !value.is_finite() {
            return Err(Fault::NotFinite { at });
        }
        if value > ABOVE_ZERO {
            return Err(Fault::Positive { at, value });
        }
        if value <= SENTINEL {
            return Err(Fault::Sentinel { at });
        }
        values.push(value);
    }
    match first {
        Some(value) => Err(Fault::First { value: *value }),
        None => Ok(values),
    }
}

/// How two lists of logprobs of the same tokens differ, over the places that both have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Largest absolute difference in nats.
    pub max: f64,
    /// Place of the largest.
    pub at: usize,
    /// Mean absolute difference in nats.
    pub mean: f64,
    /// Mean of second minus first: the shift.
    pub shift: f64,
    /// Places compared.
    pub places: usize,
}

impl Difference {
    /// Whether both stay within these nats.
    pub fn within(&self, max: f64, mean: f64) -> bool {
        self.max <= max && self.mean <= mean
    }
}

/// How two lists differ; absent when they share no place. A value that is no number differs infinitely.
pub fn difference(left: &[Option<f64>], right: &[Option<f64>]) -> Option<Difference> {
    let mut found = Difference {
        max: -1.0,
        at: 0,
        mean: 0.0,
        shift: 0.0,
        places: 0,
    };
    for (at, pair) in left.iter().zip(right).enumerate() {
        let (Some(left), Some(right)) = pair else {
            continue;
        };
        let shift = right - left;
        let gap = if shift.is_nan() {
            f64::INFINITY
        } else {
            shift.abs()
        };
        if gap > found.max {
            (found.max, found.at) = (gap, at);
        }
        found.mean += gap;
        found.shift += shift;
        found.places += 1;
    }
    (found.places > 0).then(|| {
        found.mean /= found.places as f64;
        found.shift /= found.places as f64;
        found
    })
}

/// Largest absolute difference in nats over the places that both have; absent when they share none.
pub fn largest_difference(left: &[Option<f64>], right: &[Option<f64>]) -> Option<f64> {
    difference(left, right).map(|d| d.max)
}

/// The sum of −ln p and how many tokens it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nll {
    /// Σ −ln p in nats.
    pub nats: f64,
    /// Tokens that were scored.
    pub tokens: usize,
}

impl Nll {
    /// Nats a token.
    pub fn per_token(&self) -> f64 {
        self.nats / self.tokens as f64
    }

    /// Perplexity: e to the nats a token.
    pub fn ppl(&self) -> f64 {
        self.per_token().exp()
    }

    /// Bits a UTF-8 byte of the scored text, comparable across tokenizers; absent for no bytes.
    pub fn bits_per_byte(&self, bytes: u64) -> Option<f64> {
        (bytes > 0).then(|| self.nats / std::f64::consts::LN_2 / bytes as f64)
    }
}

/// Σ −ln p over the tokens that have a logprob; absent when none has. An absent one is left out, never counted as 0.
pub fn nll(logprobs: &[Option<f64>]) -> Option<Nll> {
    let tokens = logprobs.iter().flatten().count();
    (tokens > 0).then(|| Nll {
        nats: -logprobs.iter().flatten().sum::<f64>(),
        tokens,
    })
}

/// Nats a token by which the shuffled text is worse than the text; absent when one has no logprobs.
pub fn shuffled_rise(text: &[Option<f64>], shuffled: &[Option<f64>]) -> Option<f64> {
    Some(nll(shuffled)?.per_token() - nll(text)?.per_token())
}

#[cfg(test)]
#[path = "logprobs_tests.rs"]
mod tests;
