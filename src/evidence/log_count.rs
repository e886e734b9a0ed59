//! How often patterns occur in a log, by rank.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};

use regex::Regex;

use super::log::{LogAccount, LogLine, LogReader, excerpt};
use crate::dialect::Part;
use crate::spec::gate::Ranks;

/// Matching lines that a count keeps word for word.
const EXAMPLES: usize = 3;

/// Characters of an example; a person recognises a line by less.
const EXAMPLE_CHARS: usize = 300;

/// One thing to count.
#[derive(Debug, Clone)]
pub struct Search {
    pattern: Regex,
    except: Vec<Regex>,
    part: Part,
}

/// An expression that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// The expression.
    pub pattern: String,
    /// What is wrong with it.
    pub cause: String,
}

/// What a pass over a log counted for one search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Count {
    /// Records in all.
    pub total: u64,
    /// Records by global rank.
    pub by_rank: BTreeMap<u32, u64>,
    /// Records by the process id of their prefix, where the prefix has one.
    pub by_pid: BTreeMap<u32, u64>,
    /// Records whose rank is not known.
    pub unranked: u64,
    /// Records that a de-duplicating launcher says it left out; with any, a count proves no number.
    pub left_out: u64,
    /// Byte offset of the line that holds the first record.
    pub first_offset: Option<u64>,
    /// The first records, terminal codes stripped and cut.
    pub examples: Vec<String>,
}

/// The counts of one pass, in the order of the searches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// One count a search.
    pub counts: Vec<Count>,
    /// What else the pass saw.
    pub account: LogAccount,
}

impl Search {
    /// Counts records whose message matches `pattern` and none of `except`.
    ///
    /// # Errors
    /// The first expression that cannot be compiled.
    pub fn new<S: AsRef<str>>(
        pattern: &str,
        except: &[S],
        part: Part,
    ) -> Result<Search, PatternError> {
        Ok(Search {
            pattern: compile(pattern)?,
            except: except
                .iter()
                .map(|e| compile(e.as_ref()))
                .collect::<Result<_, _>>()?,
            part,
        })
    }

    /// Whether a record counts.
    pub fn is_match(&self, line: &LogLine<'_>) -> bool {
        let text = line.part(self.part);
        self.pattern.is_match(text) && !self.except.iter().any(|e| e.is_match(text))
    }
}

impl LogReader {
    /// Counts every search in one pass.
    ///
    /// # Errors
    /// What the source says; a byte slice never fails.
    pub fn count<R: BufRead>(
        &self,
        source: R,
        searches: &[Search],
        ranks: &Ranks,
    ) -> io::Result<Counted> {
        let mut counts = vec![Count::default(); searches.len()];
        let mut each = |line: &LogLine<'_>| {
            for (search, count) in searches.iter().zip(&mut counts) {
                if search.is_match(line) {
                    count.add(line, self.rank(line, ranks));
                }
            }
        };
        let patterns: Vec<&str> = searches.iter().map(|s| s.pattern.as_str()).collect();
        let account = self.read_matching(source, &patterns, &mut each)?;
        Ok(Counted { counts, account })
    }
}

impl Count {
    /// The global ranks that printed nothing, from 0; lines without a rank stand for none of them.
    pub fn ranks_missing(&self, ranks: &Ranks) -> Vec<u32> {
        (0..ranks.total())
            .filter(|rank| !self.by_rank.contains_key(rank))
            .collect()
    }

    fn add(&mut self, line: &LogLine<'_>, rank: Option<u32>) {
        self.total += 1;
        match rank {
            Some(rank) => *self.by_rank.entry(rank).or_default() += 1,
            None => self.unranked += 1,
        }
        if let Some(pid) = line.pid {
            *self.by_pid.entry(pid).or_default() += 1;
        }
        self.left_out += line.left_out().unwrap_or(0);
        self.first_offset.get_or_insert(line.offset);
        if self.examples.len() < EXAMPLES {
            self.examples.push(excerpt(line.record, EXAMPLE_CHARS));
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no regular expression: {}",
            self.pattern, self.cause
        )
    }
}

impl std::error::Error for PatternError {}

fn compile(pattern: &str) -> Result<Regex, PatternError> {
    Regex::new(pattern).map_err(|e| PatternError {
        pattern: pattern.to_owned(),
        // The last line says what is wrong; those before it draw the expression.
        cause: e
            .to_string()
            .lines()
            .last()
            .unwrap_or("")
            .trim_start_matches("error: ")
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect;

    const ONE: Ranks = Ranks {
        tp: 1,
        pp: 1,
        dp: 1,
        nodes: 1,
    };

    fn count(log: &str, pattern: &str, except: &[&str], ranks: Ranks) -> Count {
        let reader = LogReader::new(dialect::named("vllm").unwrap());
        let search = Search::new(pattern, except, Part::Message).unwrap();
        reader
            .count(log.as_bytes(), &[search], &ranks)
            .unwrap()
            .counts
            .remove(0)
    }

    fn record(rank: u32, message: &str) -> String {
        format!("(Worker_TP{rank} pid=4{rank}) INFO 12-01 05:40:01 [lna.py:7] {message}\n")
    }

    #[test]
    fn an_active_line_is_counted_once_a_rank() {
        let log: String = (0..8).map(|r| record(r, "lna2 ACTIVE, 16 rows")).collect();
        let eight = Ranks { tp: 8, ..ONE };
        let seen = count(&log, "^lna2 ACTIVE", &[], eight);
        assert_eq!(seen.total, 8);
        assert_eq!(
            seen.by_rank.into_iter().collect::<Vec<_>>(),
            (0..8).map(|r| (r, 1)).collect::<Vec<_>>()
        );
        assert_eq!(
            (seen.unranked, seen.by_pid.len(), seen.examples.len()),
            (0, 8, 3)
        );
        let one = count(
            &record(0, "lna2 ACTIVE"),
            "ACTIVE",
            &[],
            Ranks { tp: 2, ..ONE },
        );
        assert_eq!(one.ranks_missing(&Ranks { tp: 2, ..ONE }), [1]);
        // A front-end's copy of the words is no rank's.
        let seen = count(
            "(APIServer pid=1) INFO 12-01 05:40:01 [x.py:7] lna2 ACTIVE\n",
            "ACTIVE",
            &[],
            eight,
        );
        assert_eq!((seen.total, seen.unranked), (1, 1));
    }

    #[test]
    fn exceptions_and_prefixes_do_not_count() {
        let log = record(
            0,
            "Unknown vLLM environment variable detected: VLLM_LNA_STRICT",
        ) + &record(0, "STRICT raise");
        let seen = count(&log, "STRICT", &["environment variable detected"], ONE);
        assert_eq!((seen.total, seen.examples.len()), (1, 1));
        assert!(seen.examples[0].ends_with("STRICT raise"));
        // The process name is in every prefix and in no message.
        assert_eq!(count(&log, "Worker", &[], ONE).total, 0);
    }

    #[test]
    fn two_writers_in_one_line_count_for_their_own_ranks() {
        let one = record(0, "lna2 ACTIVE");
        let log = format!("{}{}", one.trim_end(), record(1, "lna2 ACTIVE"));
        let seen = count(&log, "^lna2 ACTIVE$", &[], Ranks { tp: 2, ..ONE });
        assert_eq!(
            seen.by_rank.into_iter().collect::<Vec<_>>(),
            [(0, 1), (1, 1)]
        );
    }

    #[test]
    fn lines_that_a_launcher_left_out_are_told() {
        let log = "(RayWorkerWrapper pid=9, ip=10.0.0.2) INFO 12-01 05:40:01 [x.py:7] lna2 ACTIVE [repeated 7x across cluster]\n";
        assert_eq!(
            count(log, "ACTIVE", &[], Ranks { tp: 8, ..ONE }).left_out,
            7
        );
    }

    #[test]
    fn a_bad_expression_says_where() {
        let error = Search::new("a(b", &[] as &[&str], Part::Message).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`a(b` is no regular expression: unclosed group"
        );
    }
}
