//! The signs of a report in ASCII, for terminals and logs that know nothing else.

/// Signs that have a spelling.
const SPELLINGS: &[(char, &str)] = &[
    ('×', "x"),
    ('±', "+-"),
    ('−', "-"),
    ('–', "-"),
    ('—', "-"),
    ('·', "|"),
    ('…', "..."),
    ('µ', "u"),
    ('μ', "u"),
    ('≥', ">="),
    ('≤', "<="),
    ('→', "->"),
    ('✓', "+"),
    ('✗', "x"),
    ('“', "\""),
    ('”', "\""),
    ('‘', "'"),
    ('’', "'"),
    ('\u{a0}', " "),
];

/// The text in ASCII; a character without a spelling is written `\u{…}`, so that nothing is lost.
pub(super) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match SPELLINGS.iter().find(|(sign, _)| *sign == c) {
            Some((_, spelling)) => out.push_str(spelling),
            None if c.is_ascii() => out.push(c),
            None => out.extend(c.escape_unicode()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_spelled_and_nothing_is_lost() {
        assert_eq!(ascii("1.261× (±0.9) ≥ – 席"), "1.261x (+-0.9) >= - \\u{5e2d}");
    }
}
