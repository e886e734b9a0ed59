//! How numbers are written: the one place that knows.
//!
//! An interval decides how many digits its estimate deserves: two digits of its half-width when the first is 1, 2 or 3,
//! one otherwise, and never fewer than three digits of the number itself. What is absent is written [`ABSENT`], never 0.

/// What stands where a number is absent.
pub const ABSENT: &str = "–";

/// Minus sign of differences and margins.
const MINUS: char = '−';

/// Digits of a number that has no interval to say how many it deserves.
const PLAIN_DIGITS: i32 = 4;

/// Digits that a number keeps however wide its interval is.
const LEAST_DIGITS: i32 = 3;

/// Decimals of a ratio: one part in a thousand shows.
const RATIO_PLACES: usize = 3;

/// Decimals beyond which nobody reads.
const MOST_DECIMALS: i32 = 9;

/// Decimals that suit an estimate and its interval.
///
/// Whole numbers (tokens, counts) with a whole interval stay whole.
pub fn decimals(value: f64, interval: Option<[f64; 2]>) -> usize {
    let whole = |x: f64| x.fract() == 0.0;
    let interval = interval.filter(|[low, high]| low.is_finite() && high.is_finite());
    if whole(value) && interval.is_none_or(|[low, high]| whole(low) && whole(high)) {
        return 0;
    }
    let half = interval.map_or(0.0, |[low, high]| (high - low).abs() / 2.0);
    let wanted = if half > 0.0 {
        by_half_width(half).max(by_digits(value, LEAST_DIGITS))
    } else {
        by_digits(value, PLAIN_DIGITS)
    };
    usize::try_from(wanted.clamp(0, MOST_DECIMALS)).unwrap_or(0)
}

fn by_half_width(half: f64) -> i32 {
    let place = half.log10().floor();
    let first = (half / 10f64.powf(place)).floor();
    -(place as i32) + i32::from(first < 4.0)
}

fn by_digits(value: f64, digits: i32) -> i32 {
    if value == 0.0 {
        return 0;
    }
    digits - 1 - value.abs().log10().floor() as i32
}

/// A number with this many decimals and thousands separators.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return ABSENT.into();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    // A value that rounds to nothing has no sign to show.
    if value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push(MINUS);
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// A number without an interval: four significant digits, whole numbers whole.
pub fn plain(value: f64) -> String {
    if value.is_finite() {
        fixed(value, decimals(value, None))
    } else {
        ABSENT.into()
    }
}

/// A count.
pub fn count(value: u64) -> String {
    // Counts of tokens and requests stay far below the 2^53 that an f64 holds exactly.
    fixed(value as f64, 0)
}

/// A count that may be absent.
pub fn count_or_absent(value: Option<u64>) -> String {
    value.map_or_else(|| ABSENT.into(), count)
}

/// A value with its unit (`108.6 tok/s`), with the digits that its interval allows.
pub fn value(value: f64, interval: Option<[f64; 2]>, unit: &str) -> String {
    with_unit(fixed(value, decimals(value, interval)), unit)
}

/// A value with half its range beside it, as people write it (`108.6 (±0.9) tok/s`).
pub fn value_and_range(
    value: f64,
    interval: Option<[f64; 2]>,
    half_range: Option<f64>,
    unit: &str,
) -> String {
    let places = decimals(value, interval);
    match half_range.filter(|h| h.is_finite()) {
        Some(half) => with_unit(
            format!("{} (±{})", fixed(value, places), fixed(half, places)),
            unit,
        ),
        None => with_unit(fixed(value, places), unit),
    }
}

/// Observations (`108.1, 109.2`), all with the digits that their common interval allows.
pub fn series(values: &[f64], interval: Option<[f64; 2]>) -> String {
    let places = values
        .iter()
        .map(|v| decimals(*v, interval))
        .max()
        .unwrap_or(0);
    values
        .iter()
        .map(|v| fixed(*v, places))
        .collect::<Vec<_>>()
        .join(", ")
}

/// An interval (`[107.9, 109.4]`) with the digits of its estimate.
pub fn interval(value: f64, bounds: [f64; 2]) -> String {
    let places = decimals(value, Some(bounds));
    format!(
        "[{}, {}]",
        fixed(bounds[0], places),
        fixed(bounds[1], places)
    )
}

/// A ratio (`1.261×`).
pub fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{}×", fixed(value, RATIO_PLACES))
    } else {
        ABSENT.into()
    }
}

/// The interval of a ratio (`[1.248, 1.274]`).
pub fn ratio_interval(bounds: [f64; 2]) -> String {
    format!(
        "[{}, {}]",
        fixed(bounds[0], RATIO_PLACES),
        fixed(bounds[1], RATIO_PLACES)
    )
}

/// A margin with its unit and sign (`+0.198×`, `−4.2 tok/s`): read for its size, so two digits say enough.
pub fn margin(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return ABSENT.into();
    }
    let digits = usize::try_from(by_digits(value, 2).clamp(0, MOST_DECIMALS)).unwrap_or(0);
    with_unit(
        signed(value, if unit == "×" { RATIO_PLACES } else { digits }),
        unit,
    )
}

/// A difference with its sign (`+0.0017`), with the digits that its interval allows.
pub fn difference(value: f64, interval: Option<[f64; 2]>, unit: &str) -> String {
    with_unit(signed(value, difference_decimals(value, interval)), unit)
}

/// The interval of a difference (`[−0.0009, +0.0043]`).
pub fn difference_interval(value: f64, bounds: [f64; 2]) -> String {
    let places = difference_decimals(value, Some(bounds));
    format!(
        "[{}, {}]",
        signed(bounds[0], places),
        signed(bounds[1], places)
    )
}

/// Unlike a level, a difference may be small beside its interval and then deserves no digits of its own.
fn difference_decimals(value: f64, interval: Option<[f64; 2]>) -> usize {
    let half = interval.map_or(0.0, |[low, high]| (high - low).abs() / 2.0);
    let places = if half.is_finite() && half > 0.0 {
        by_half_width(half)
    } else {
        by_digits(value, LEAST_DIGITS)
    };
    usize::try_from(places.clamp(0, MOST_DECIMALS)).unwrap_or(0)
}

fn signed(value: f64, places: usize) -> String {
    let text = fixed(value, places);
    if value > 0.0 && value.is_finite() {
        format!("+{text}")
    } else {
        text
    }
}

fn with_unit(number: String, unit: &str) -> String {
    match unit {
        "" => number,
        "×" | "%" => format!("{number}{unit}"),
        _ => format!("{number} {unit}"),
    }
}

/// A duration in seconds as people say it (`340 ms`, `21.4 s`, `4 min 05 s`, `2 h 05 min`).
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return ABSENT.into();
    }
    if seconds < 1.0 {
        return format!("{:.0} ms", seconds * 1e3);
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    if whole < 3600 {
        return format!("{} min {:02} s", whole / 60, whole % 60);
    }
    let minutes = (whole + 30) / 60;
    format!("{} h {:02} min", minutes / 60, minutes % 60)
}

/// An instant as people read it: RFC 3339 without the fraction of a second, which report.json keeps.
pub fn instant(text: &str) -> String {
    let Some((seconds, rest)) = text.split_once('.') else {
        return text.into();
    };
    let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{seconds}{zone}")
}

/// Ranks as ranges, with how many they are (`0–7 (8)`).
pub fn ranks(ranks: &[u32]) -> String {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for rank in &sorted {
        match runs.last_mut() {
            Some([_, last]) if last.checked_add(1) == Some(*rank) => *last = *rank,
            _ => runs.push([*rank, *rank]),
        }
    }
    let text: Vec<String> = runs
        .iter()
        .map(|[first, last]| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}–{last}")
            }
        })
        .collect();
    match sorted.len() {
        0 => ABSENT.into(),
        n => format!("{}\u{a0}({n})", text.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_decides_the_digits() {
        assert_eq!(
            value(108.62, Some([107.87, 109.41]), "tok/s"),
            "108.6 tok/s"
        );
        assert_eq!(interval(108.62, [107.87, 109.41]), "[107.9, 109.4]");
        assert_eq!(value(193.83, Some([190.1, 197.5]), ""), "193.8");
        assert_eq!(value(4.764_71, Some([4.7601, 4.7693]), ""), "4.765");
        assert_eq!(value(78.62, Some([73.6, 83.6]), ""), "78.6");
        assert_eq!(
            value_and_range(108.6, Some([107.9, 109.4]), Some(0.9), "tok/s"),
            "108.6 (±0.9) tok/s"
        );
    }

    #[test]
    fn observations_share_their_digits() {
        assert_eq!(
            series(&[108.0, 109.23, 108.4], Some([107.9, 109.3])),
            "108.0, 109.2, 108.4"
        );
        assert_eq!(series(&[3.0, 4.0], None), "3, 4");
    }

    #[test]
    fn whole_numbers_stay_whole_and_are_grouped() {
        assert_eq!(value(396_656.0, None, "tokens"), "396,656 tokens");
        assert_eq!(
            value(395_069.0, Some([395_069.0, 395_069.0]), ""),
            "395,069"
        );
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn a_number_without_an_interval_shows_four_digits() {
        assert_eq!(plain(0.001_640_3), "0.001640");
        assert_eq!(plain(119.63), "119.6");
        assert_eq!(plain(0.0), "0");
    }

    #[test]
    fn what_is_not_finite_is_absent_and_never_zero() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(plain(bad), ABSENT);
            assert_eq!(ratio(bad), ABSENT);
            assert_eq!(margin(bad, "s"), ABSENT);
            assert_eq!(duration(bad), ABSENT);
            assert_eq!(value(bad, None, ""), ABSENT);
        }
        assert_eq!(count_or_absent(None), ABSENT);
        assert_eq!(ranks(&[]), ABSENT);
    }

    #[test]
    fn differences_carry_their_sign() {
        assert_eq!(difference(0.0017, Some([-0.0009, 0.0043]), ""), "+0.0017");
        assert_eq!(
            difference_interval(0.0017, [-0.0009, 0.0043]),
            "[−0.0009, +0.0043]"
        );
        assert_eq!(margin(-4.21, "tok/s"), "−4.2 tok/s");
        assert_eq!(margin(-0.065, "×"), "−0.065×");
        assert_eq!(margin(0.0, ""), "0");
        assert_eq!(fixed(-0.0001, 2), "0.00");
    }

    #[test]
    fn durations_read_like_speech() {
        assert_eq!(duration(0.34), "340 ms");
        assert_eq!(duration(21.42), "21.4 s");
        assert_eq!(duration(59.97), "1 min 00 s");
        assert_eq!(duration(245.0), "4 min 05 s");
        assert_eq!(duration(7_499.9), "2 h 05 min");
    }

    #[test]
    fn an_instant_loses_its_fraction_and_nothing_else() {
        assert_eq!(
            instant("2026-12-01T11:55:13.598655948Z"),
            "2026-12-01T11:55:13Z"
        );
        assert_eq!(
            instant("2026-12-01T11:55:13.5+09:00"),
            "2026-12-01T11:55:13+09:00"
        );
        assert_eq!(instant("2026-12-01T11:55:13Z"), "2026-12-01T11:55:13Z");
        assert_eq!(instant(""), "");
    }

    #[test]
    fn ranks_are_ranges() {
        assert_eq!(ranks(&[0, 1, 2, 3, 4, 5, 6, 7]), "0–7\u{a0}(8)");
        assert_eq!(
            ranks(&[5, 0, 1, 3, u32::MAX]),
            "0–1, 3, 5, 4294967295\u{a0}(5)"
        );
    }
}
