//! Answers that collapsed into repetition. A loop is fast and every drafter guesses it: a collapsed build was seen at 2.3
//! times the healthy speed, with HTTP 200 and equal texts in all repeats. Its figures are void, not good.

use std::collections::HashSet;
use std::fmt;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Why an answer is no text.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// A stretch of it shrinks too well.
    Compresses {
        /// Bytes before over bytes after, of the worst stretch.
        ratio: f64,
    },
    /// Most of its runs of four units come again.
    FewDistinct {
        /// Distinct runs of four over all of them.
        share: f64,
    },
    /// One unit again and again.
    Run {
        /// The unit, cut at 20 characters.
        unit: String,
        /// How often in a row.
        times: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compresses { ratio } => write!(
                f,
                "the text repeats itself (a stretch shrinks {ratio:.1}-fold)"
            ),
            Self::FewDistinct { share } => {
                write!(
                    f,
                    "the text repeats itself (only {:.0} % of the runs of four words in one part are distinct)",
                    share * 100.0
                )
            }
            Self::Run { unit, times } => {
                write!(f, "the text repeats `{unit}` {times} times in a row")
            }
        }
    }
}

/// A stretch for the zlib ratio, in bytes: short enough that a loop at the end is not diluted by a healthy beginning.
const STRETCH: usize = 2048;
/// The zlib ratio of a stretch that no text reaches.
///
/// Measured over 6,000 source files of Rust, Python and C, whose tests and tables are the most repetitive text that people
/// write: median 3.0, 99th percentile 9.8, largest 11.0; prose has 2.1. Loops with a period up to 150 bytes have 15 to 30;
/// longer periods show in their runs of four. (4 over a whole answer, as others take it, would void one source in seven.)
pub const COMPRESSION_LIMIT: f64 = 12.0;
/// Distinct runs of four units over all, below which most of a text is said three times. Over the same files: median 0.94,
/// first percentile 0.55; prose has 0.94 and more.
pub const DISTINCT_LIMIT: f64 = 0.35;
/// One word, or one letter of a script without blanks, in a row: longer than any emphasis.
pub const RUN_LIMIT: usize = 16;
/// One letter within a word: strings of tests, hexadecimal masks and placeholders have up to 48.
const LETTER_RUN_LIMIT: usize = 64;
/// One mark in a row: rulers and tables have a hundred.
const MARK_RUN_LIMIT: usize = 256;
/// Units below which shares mean nothing.
const FEWEST_UNITS: usize = 48;

/// Whether an answer collapsed into repetition, and how.
pub fn degenerate(text: &str) -> Option<Reason> {
    let units = units(text);
    if let Some(run) = longest_run(&units).filter(|r| r.times > RUN_LIMIT) {
        return Some(Reason::Run {
            unit: run.unit.chars().take(20).collect(),
            times: run.times,
        });
    }
    if let Some(run) = character_run(text) {
        return Some(run);
    }
    // Loops begin late and last: the second half is also looked at alone.
    for part in [&units[..], &units[units.len() / 2..]] {
        if let Some(share) = distinct_share(part).filter(|s| *s < DISTINCT_LIMIT) {
            return Some(Reason::FewDistinct { share });
        }
    }
    let ratio = compression(text)?;
    (ratio > COMPRESSION_LIMIT).then_some(Reason::Compresses { ratio })
}

/// Words; where a script has no blanks, each character is one.
fn units(text: &str) -> Vec<&str> {
    let mut units = Vec::new();
    for word in text.split_whitespace() {
        let mut start = 0;
        for (at, c) in word.char_indices() {
            if is_cjk(c) {
                units.extend((start < at).then(|| &word[start..at]));
                start = at + c.len_utf8();
                units.push(&word[at..start]);
            }
        }
        units.extend((start < word.len()).then(|| &word[start..]));
    }
    units
}

/// Kana, ideographs, and full-width forms; Hangul is written with blanks.
fn is_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x3000..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0xff00..=0xffef | 0x20000..=0x3ffff)
}

#[derive(Debug, Clone, Copy)]
struct Run<'a> {
    unit: &'a str,
    times: usize,
}

fn longest_run<'a>(units: &[&'a str]) -> Option<Run<'a>> {
    units
        .chunk_by(|a, b| a == b)
        // Marks alone are rulers and tables (`|`, `…`), and tables of numbers repeat them (`0x00,`).
        .filter(|run| {
            run[0].chars().any(char::is_alphabetic)
                && !run[0].contains(|c: char| c.is_ascii_digit())
        })
        .map(|run| Run {
            unit: run[0],
            times: run.len(),
        })
        .max_by_key(|run| run.times)
}

/// One character in a row within a word, where words do not show it.
fn character_run(text: &str) -> Option<Reason> {
    let (mut last, mut times) = (None, 0_usize);
    for c in text.chars() {
        if last == Some(c) {
            times += 1;
        } else {
            (last, times) = (Some(c), 1);
        }
        let limit = match c {
            c if c.is_whitespace() => continue,
            // A digit in a row can be a number (`0.0000…`, `1000000000`).
            c if is_cjk(c) && c.is_alphabetic() => RUN_LIMIT,
            c if c.is_alphabetic() => LETTER_RUN_LIMIT,
            '!' | '?' | '！' | '？' => LETTER_RUN_LIMIT,
            _ => MARK_RUN_LIMIT,
        };
        if times > limit {
            return Some(Reason::Run {
                unit: c.to_string(),
                times,
            });
        }
    }
    None
}

/// Distinct runs of four units over all; absent for a text that is too short to say.
pub fn distinct_four_grams(text: &str) -> Option<f64> {
    distinct_share(&units(text))
}

fn distinct_share(units: &[&str]) -> Option<f64> {
    if units.len() < FEWEST_UNITS {
        return None;
    }
    let all = units.len() - 3;
    let distinct: HashSet<&[&str]> = units.windows(4).collect();
    Some(distinct.len() as f64 / all as f64)
}

/// The largest zlib ratio of the stretches of a text; absent for a text that is shorter than half of one.
pub fn compression(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let half = STRETCH / 2;
    if bytes.len() < half {
        return None;
    }
    // Half-overlapping, so that a loop is not cut in two; the last one reaches the end.
    let starts = (0..bytes.len().saturating_sub(half))
        .step_by(half)
        .chain([bytes.len().saturating_sub(STRETCH)]);
    starts
        .map(|start| &bytes[start..bytes.len().min(start + STRETCH)])
        .filter_map(|stretch| Some(stretch.len() as f64 / deflated(stretch)? as f64))
        .max_by(f64::total_cmp)
}

fn deflated(bytes: &[u8]) -> Option<usize> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(|out| out.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> String {
        let path = format!("{}/fixtures/workloads/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("a fixture")
    }

    #[test]
    fn healthy_prose_and_code_are_text() {
        for name in [
            "ppl/en.txt",
            "ppl/ja.txt",
            "ppl/code.txt",
            "en/tasks.md",
            "ja/tasks.md",
            "code/tasks.md",
        ] {
            assert_eq!(degenerate(&fixture(name)), None, "{name}");
        }
        assert!(distinct_four_grams(&fixture("ppl/en.txt")).expect("long") > 0.9);
    }

    #[test]
    fn every_source_of_this_house_is_text() {
        let mut open = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut read = 0;
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let text = std::fs::read_to_string(&path).expect("a source");
                    assert_eq!(degenerate(&text), None, "{}", path.display());
                    read += 1;
                }
            }
        }
        assert!(read > 10);
    }

    #[test]
    fn a_loop_of_a_sentence_is_not() {
        let loops = [
            "The cat sat on the mat, and the dog lay by the door. ",
            "今日は天気がいいので、散歩に出かけました。",
            "    return value;\n}\n\n",
        ];
        for sentence in loops {
            assert!(degenerate(&sentence.repeat(60)).is_some(), "{sentence}");
        }
    }

    #[test]
    fn a_loop_after_a_healthy_beginning_is_seen() {
        let healthy: String = fixture("ppl/en.txt").chars().take(6_000).collect();
        assert_eq!(degenerate(&healthy), None);
        // Short enough that even the second half is mostly healthy: only the stretch shows it.
        let looped = format!("{healthy}{}", "and so it goes on, as it must. ".repeat(70));
        let reason = degenerate(&looped);
        assert!(
            matches!(reason, Some(Reason::Compresses { ratio }) if ratio > 15.0),
            "{reason:?}"
        );
    }

    #[test]
    fn a_loop_of_a_whole_paragraph_is_seen() {
        let paragraph: String = fixture("ppl/en.txt").chars().take(1_500).collect();
        let reason = degenerate(&paragraph.repeat(5));
        assert!(
            matches!(reason, Some(Reason::FewDistinct { share }) if share < 0.3),
            "{reason:?}"
        );
    }

    #[test]
    fn one_word_or_letter_in_a_row_is_not() {
        for text in [
            &"ok ".repeat(17),
            &"あ".repeat(17),
            &format!("x{}", "a".repeat(65)),
            &"!".repeat(65),
        ] {
            assert!(
                matches!(degenerate(text), Some(Reason::Run { .. })),
                "{text}"
            );
        }
        assert_eq!(degenerate(&"ok ".repeat(16)), None);
    }

    #[test]
    fn rulers_tables_and_numbers_are_text() {
        let text = format!(
            "| a | b |\n|{}|{}|\n{}\n1{}\n",
            "-".repeat(40),
            "-".repeat(40),
            "=".repeat(80),
            "0".repeat(40)
        );
        assert_eq!(degenerate(&text), None);
        assert_eq!(degenerate(""), None);
    }

    #[test]
    fn a_reason_reads_as_a_clause() {
        let reason = degenerate(&"ok ".repeat(20)).expect("a loop").to_string();
        assert_eq!(reason, "the text repeats `ok` 20 times in a row");
    }
}
