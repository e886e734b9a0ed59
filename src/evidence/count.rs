//! Counting: how often something occurs in what was captured. This is how people prove a restore by hand.

use regex::Regex;

use super::absence::{Absent, Sighting};
use super::environ::{Environ, EnvironSource};
use super::mounts::Mount;
use super::redaction::{EnvValue, REDACTED};

/// Mounts whose target, or whose shown folder, matches.
pub fn count_mounts(mounts: &[Mount], pattern: &Regex) -> u64 {
    count(mounts, |m| {
        pattern.is_match(&m.target) || pattern.is_match(&m.root)
    })
}

/// Variables whose name matches `name` and, if given, whose value matches `value`.
///
/// Absent when the environment is only the one at start, was cut, or hides a value that `value` would have to be matched with:
/// a count from it would be a guess.
pub fn count_variables(environ: &Environ, name: &Regex, value: Option<&Regex>) -> Sighting<u64> {
    if let EnvironSource::Start { why } = &environ.source {
        return Sighting::absent(
            format!("only the environment at start is known: {why}"),
            "give the right to read the server's memory, or count in the declared environment",
        );
    }
    if environ.cut {
        return Sighting::absent(
            "the environment is longer than the reader's limit",
            "start the server with fewer variables",
        );
    }
    let mut count = 0;
    for variable in environ.variables.iter().filter(|v| name.is_match(&v.name)) {
        match (value, &variable.value) {
            (None, _) => count += 1,
            (Some(value), EnvValue::Plain { text }) => count += u64::from(value.is_match(text)),
            (Some(_), EnvValue::Redacted { .. }) => {
                return Sighting::absent(
                    format!(
                        "the value of `{}` looks like a secret and was not kept",
                        variable.name
                    ),
                    "count the name alone",
                );
            }
        }
    }
    Sighting::Seen { value: count }
}

/// Arguments that match; each is looked at by itself, so anchors hold for one argument.
pub fn count_arguments(arguments: &[String], pattern: &Regex) -> u64 {
    count(arguments, |argument| {
        argument != REDACTED && pattern.is_match(argument)
    })
}

/// Lines that match, whatever their line ends; a last line without its end counts too.
pub fn count_lines(text: &[u8], pattern: &regex::bytes::Regex) -> u64 {
    let lines = text.split(|b| *b == b'\n');
    lines
        .filter(|line| pattern.is_match(line.strip_suffix(b"\r").unwrap_or(line)))
        .fold(0, |n, _| n + 1)
}

/// The sum of counts over several processes; the first absence makes it absent, because a part of the sum would be a lie.
pub fn sum(counts: impl IntoIterator<Item = Sighting<u64>>) -> Sighting<u64> {
    let total: Result<u64, Absent> = counts.into_iter().map(Sighting::into_result).sum();
    total.into()
}

fn count<T>(items: &[T], matches: impl Fn(&T) -> bool) -> u64 {
    items.iter().filter(|item| matches(item)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::mounts::Access;
    use crate::evidence::redaction::EnvVar;

    fn regex(text: &str) -> Regex {
        Regex::new(text).unwrap()
    }

    fn live(entries: &[&str]) -> Environ {
        Environ {
            source: EnvironSource::Memory {
                object: "libc.so.6".into(),
            },
            variables: entries.iter().map(|e| EnvVar::parse(e).unwrap()).collect(),
            cut: false,
        }
    }

    #[test]
    fn plugin_mounts_are_counted_by_target_and_by_folder() {
        let mounts = ["/opt/plugin", "/data"].map(|target| Mount {
            target: target.into(),
            root: "/srv/exl3".into(),
            source: None,
            file_system: "ext4".into(),
            access: Access::ReadWrite,
        });
        assert_eq!(count_mounts(&mounts, &regex("plugin$")), 1);
        assert_eq!(count_mounts(&mounts, &regex("exl3")), 2);
        assert_eq!(count_mounts(&mounts, &regex("patched")), 0);
    }

    #[test]
    fn candidate_variables_are_counted_by_name_and_value() {
        let environ = live(&["MOE_KERNEL=lna2", "MOE_STRICT=1", "PATH=/bin"]);
        assert_eq!(
            count_variables(&environ, &regex("^MOE_"), None),
            Sighting::Seen { value: 2 }
        );
        assert_eq!(
            count_variables(&environ, &regex("^MOE_"), Some(&regex("^lna"))),
            Sighting::Seen { value: 1 }
        );
        assert_eq!(
            count_variables(&environ, &regex("^F3_"), None),
            Sighting::Seen { value: 0 }
        );
    }

    #[test]
    fn an_environment_at_start_counts_nothing_not_even_zero() {
        let mut environ = live(&[]);
        environ.source = EnvironSource::Start {
            why: "no right".into(),
        };
        assert!(
            count_variables(&environ, &regex("^MOE_"), None)
                .seen()
                .is_none()
        );
    }

    #[test]
    fn a_hidden_value_cannot_be_matched() {
        let environ = live(&["HF_TOKEN=abc"]);
        assert_eq!(
            count_variables(&environ, &regex("TOKEN"), None).seen(),
            Some(&1)
        );
        assert!(
            count_variables(&environ, &regex("TOKEN"), Some(&regex("abc")))
                .seen()
                .is_none()
        );
    }

    #[test]
    fn arguments_are_matched_one_by_one() {
        let arguments = ["--max-num-seqs", "4", "--port", "4"].map(str::to_owned);
        assert_eq!(count_arguments(&arguments, &regex("^4$")), 2);
        assert_eq!(count_arguments(&arguments, &regex("^--max")), 1);
    }

    #[test]
    fn lines_are_counted_with_any_line_end() {
        let pattern = regex::bytes::Regex::new("ACTIVE$").unwrap();
        assert_eq!(
            count_lines(b"a ACTIVE\r\nb ACTIVE\nACTIVE not\nc ACTIVE", &pattern),
            3
        );
        assert_eq!(count_lines(b"", &pattern), 0);
    }

    #[test]
    fn one_absence_makes_a_sum_absent() {
        let seen = |value| Sighting::Seen { value };
        assert_eq!(sum([seen(1), seen(2)]), seen(3));
        assert!(sum([seen(1), Sighting::absent("x", "y")]).seen().is_none());
    }
}
