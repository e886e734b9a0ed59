//! Which raw lines can hold a message that a pattern matches.

use regex::RegexSet;

/// The lines that can hold a match of any of these patterns; `None`: any line can.
pub(super) fn hints(patterns: &[&str]) -> Option<RegexSet> {
    let hints: Option<Vec<String>> = patterns.iter().map(|p| hint(p)).collect();
    RegexSet::new(hints?).ok()
}

/// An expression that matches at least every raw line whose message `pattern` matches; `None` if none is known.
///
/// The message is a part of its line, so only what asserts the message's ends has to go: `^` in front and `$` at the
/// end, without which an expression matches more, never less. Such assertions anywhere else are left alone: no hint.
fn hint(pattern: &str) -> Option<String> {
    let front = pattern.strip_prefix('^').unwrap_or(pattern);
    let core = match front.strip_suffix('$') {
        Some(core) if !core.ends_with('\\') => core,
        _ => front,
    };
    // A word boundary at a message's end is none where the next writer's record begins; `\\` hides what an escape is.
    let asserts = ["^", "$", r"\A", r"\z", r"\B", r"\b", r"\\", "(?"];
    // What looks like an assertion or a flag and is none.
    let harmless = ["(?:", "(?P<", "(?i)", r"\$", r"\^", "[^"];
    let plain = harmless
        .iter()
        .fold(core.to_owned(), |text, h| text.replace(h, ""));
    let asserts = asserts.iter().any(|a| plain.contains(a));
    (!core.is_empty() && !asserts).then(|| core.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_never_loses_a_line() {
        assert_eq!(hint("^a b$").as_deref(), Some("a b"));
        assert_eq!(hint(r"cost \$").as_deref(), Some(r"cost \$"));
        assert_eq!(hint("(^a|b)"), None);
        assert_eq!(hint(r"(?m)a$b"), None);
        assert_eq!(hint("(?:a|b)c").as_deref(), Some("(?:a|b)c"));
        assert_eq!(hint("^$"), None);
        assert_eq!(hint(r"a\b"), None);
        assert_eq!(hint(r"[^:]+: x").as_deref(), Some("[^:]+: x"));
    }

    #[test]
    fn every_preset_line_passes_its_own_hint_behind_any_prefix() {
        let presets = crate::dialect::DIALECTS.iter().flat_map(|d| d.presets);
        let (mut quick, mut slow) = (0, 0);
        for (pattern, examples) in presets.flat_map(|p| {
            let announced = p.announced.iter().map(|l| (l.pattern, l.matches));
            announced.chain(p.refuted.iter().map(|r| (*r, p.refuted_matches)))
        }) {
            let Some(set) = hints(&[pattern]) else {
                slow += 1;
                continue;
            };
            quick += 1;
            let expression = regex::Regex::new(pattern).unwrap();
            for example in examples.iter().filter(|e| expression.is_match(e)) {
                let line = format!(
                    "(Worker_TP0 pid=1) INFO 12-01 05:40:01 [a.py:7] {example}(Worker_TP1 pid=2) INFO"
                );
                assert!(set.is_match(&line), "{pattern}: {line}");
            }
        }
        // The slow ones are right as well; they only have every line parsed.
        assert!(quick > 10 * slow, "{quick} with a hint, {slow} without");
    }
}
