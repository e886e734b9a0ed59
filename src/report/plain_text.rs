//! Text from outside made plain: nothing that moves a cursor, hides a letter or turns the direction of reading.
//!
//! A log line is written by the server under test. Every text that enters the outline passes [`clean`], so no printer can
//! forget it; a printer then escapes only what means something in its own format.

/// A piece of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span<'a> {
    /// Prose.
    Prose(&'a str),
    /// A literal, written between backticks.
    Literal(&'a str),
}

/// Longest text that a report shows in one place, in characters: a log line may be megabytes long, and nobody reads on.
const LONGEST: usize = 2_000;

/// The text on one line, without control codes, escape sequences, and characters that hide or reorder others.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(LONGEST));
    let mut rest = text.chars().peekable();
    let mut seen = 0;
    while let Some(c) = rest.next() {
        if seen == LONGEST {
            out.push('…');
            break;
        }
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{2028}' | '\u{2029}' => {
                if !out.ends_with(' ') {
                    out.push(' ');
                    seen += 1;
                }
            }
            c if c.is_control() || is_deceptive(c) => {}
            c => {
                out.push(c);
                seen += 1;
            }
        }
    }
    out.trim().to_owned()
}

/// Whether a character shows nothing itself and changes how others are seen.
pub fn is_deceptive(c: char) -> bool {
    matches!(c,
        // Direction marks, embeddings, overrides and isolates.
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Zero width.
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{00ad}' | '\u{180e}'
        // Deprecated format characters, interlinear annotation, tags.
        | '\u{206a}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what follows an escape: a control sequence, a string up to its end, or one character.
fn skip_escape(rest: &mut Rest<'_>) {
    match rest.next() {
        Some('[') => skip_control_sequence(rest),
        // Operating system command, device control, privacy message, application command, start of string.
        Some(']' | 'P' | '^' | '_' | 'X') => {
            while let Some(c) = rest.next() {
                match c {
                    '\u{7}' | '\u{9c}' => return,
                    '\u{1b}' => {
                        rest.next_if_eq(&'\\');
                        return;
                    }
                    // A string that never ends must not swallow the rest of the text: no real one spans lines.
                    '\n' => return,
                    _ => {}
                }
            }
        }
        // A designator takes one more character.
        Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
            rest.next();
        }
        _ => {}
    }
}

/// Skips parameters and the final character of a control sequence.
fn skip_control_sequence(rest: &mut Rest<'_>) {
    while rest.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    rest.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

/// A sentence cut at its backticks; all prose when they do not pair up.
pub fn spans(text: &str) -> Vec<Span<'_>> {
    let parts: Vec<&str> = text.split('`').collect();
    let paired = parts.len() % 2 == 1;
    let literals_are_full = parts.iter().skip(1).step_by(2).all(|p| !p.trim().is_empty());
    if !paired || !literals_are_full {
        return vec![Span::Prose(text)];
    }
    parts
        .iter()
        .enumerate()
        .filter(|(_, part)| !part.is_empty())
        .map(|(index, part)| if index % 2 == 0 { Span::Prose(part) } else { Span::Literal(part) })
        .collect()
}

/// A command as a shell would read it back.
pub fn shell(words: &[String]) -> String {
    words.iter().map(|w| shell_word(w)).collect::<Vec<_>>().join(" ")
}

/// One word as a shell would read it back.
pub fn shell_word(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let word = clean(word);
    if !word.is_empty() && word.chars().all(safe) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_leave_no_trace() {
        assert_eq!(clean("\u{1b}[31mred\u{1b}[0m"), "red");
        assert_eq!(clean("\u{1b}]0;title\u{7}after"), "after");
        assert_eq!(clean("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\"), "link");
        assert_eq!(clean("\u{1b}(Bplain \u{9b}1mx"), "plain x");
        assert_eq!(clean("a\u{1b}"), "a");
        assert_eq!(clean("a\u{1b}]never ended\nb"), "ab");
    }

    #[test]
    fn the_direction_of_reading_cannot_be_turned() {
        assert_eq!(clean("PASS\u{202e}LIAF\u{202c}"), "PASSLIAF");
        assert_eq!(clean("a\u{200b}b\u{feff}c"), "abc");
    }

    #[test]
    fn newlines_become_spaces_and_other_controls_go() {
        assert_eq!(clean("one\r\n\ntwo\u{0}\u{8}"), "one two");
    }

    #[test]
    fn japanese_and_symbols_stay() {
        assert_eq!(clean("経路 `lna2` ±0.9 µs"), "経路 `lna2` ±0.9 µs");
    }

    #[test]
    fn a_giant_line_is_cut_and_says_so() {
        let cut = clean(&"x".repeat(10_000));
        assert_eq!(cut.chars().count(), LONGEST + 1);
        assert!(cut.ends_with('…'));
    }

    #[test]
    fn backticks_that_do_not_pair_are_prose() {
        assert_eq!(spans("a `b` c"), vec![Span::Prose("a "), Span::Literal("b"), Span::Prose(" c")]);
        assert_eq!(spans("a `b"), vec![Span::Prose("a `b")]);
        assert_eq!(spans("a `` b"), vec![Span::Prose("a `` b")]);
    }

    #[test]
    fn a_command_reads_back_in_a_shell() {
        let words = ["bash", "-c", "echo it's", ""].map(String::from);
        assert_eq!(shell(&words), r"bash -c 'echo it'\''s' ''");
    }
}
