//! One line of Prometheus text, taken apart without copying.

use super::exposition::Kind;

/// What a line is.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'t> {
    /// Nothing of use: empty, a comment, HELP or UNIT.
    Blank,
    /// `# TYPE name kind`.
    Type { name: &'t str, kind: Kind },
    /// A sample; `labels` is what stands between the braces.
    Sample {
        name: &'t str,
        labels: &'t str,
        value: f64,
    },
}

/// One label, and what follows it.
pub(super) struct NextLabel<'t> {
    pub(super) name: &'t str,
    /// Still escaped.
    pub(super) value: &'t str,
    pub(super) rest: &'t str,
}

/// OpenMetrics' end mark.
pub(super) fn is_end(line: &str) -> bool {
    line.trim_end() == "# EOF"
}

/// Reads one line without its newline.
pub(super) fn read(line: &str) -> Result<Line<'_>, &'static str> {
    let line = line.trim_start_matches([' ', '\t']);
    if line.is_empty() {
        return Ok(Line::Blank);
    }
    if let Some(comment) = line.strip_prefix('#') {
        return Ok(declaration(comment).unwrap_or(Line::Blank));
    }
    sample(line)
}

fn declaration(comment: &str) -> Option<Line<'_>> {
    let rest = comment.trim_start().strip_prefix("TYPE")?;
    let mut words = rest.strip_prefix([' ', '\t'])?.split_ascii_whitespace();
    let name = words.next()?;
    let kind = match words.next()? {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "histogram" | "gaugehistogram" => Kind::Histogram,
        "summary" => Kind::Summary,
        "info" => Kind::Info,
        "stateset" => Kind::StateSet,
        _ => Kind::Unknown,
    };
    Some(Line::Type {
        name: name.trim_matches('"'),
        kind,
    })
}

fn sample(line: &str) -> Result<Line<'_>, &'static str> {
    let bytes = line.as_bytes();
    let name_end = bytes
        .iter()
        .position(|&b| !is_name_byte(b))
        .unwrap_or(bytes.len());
    let mut name = &line[..name_end];
    let mut rest = line[name_end..].trim_start_matches([' ', '\t']);
    let mut labels = "";
    if let Some(inside) = rest.strip_prefix('{') {
        let end = closing_brace(inside).ok_or("the label braces do not close")?;
        labels = &inside[..end];
        rest = &inside[end + 1..];
        if name.is_empty() {
            // Prometheus 3 puts a name with unusual characters in quotes inside the braces.
            let quoted = labels
                .trim_start()
                .strip_prefix('"')
                .ok_or("the name is missing")?;
            let end = quoted_end(quoted).ok_or("the quoted name does not end")?;
            name = &quoted[..end];
            labels = quoted[end + 1..].trim_start();
            labels = labels.strip_prefix(',').unwrap_or(labels);
        }
    }
    if name.is_empty() || bytes[0].is_ascii_digit() {
        return Err("no series name at the front");
    }
    let word = rest
        .split_ascii_whitespace()
        .next()
        .ok_or("the value is missing")?;
    let value = value(word).ok_or("the value is not a number")?;
    // What follows is a timestamp or an exemplar (`# {…} 0.5`); neither is evidence here, but nonsense is a fault.
    let after = rest.trim_start()[word.len()..].trim();
    let stamp = after.split('#').next().unwrap_or("").trim();
    if !stamp.is_empty() && stamp.parse::<f64>().is_err() {
        return Err("there is text behind the value");
    }
    Ok(Line::Sample {
        name,
        labels,
        value,
    })
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b':'
}

fn value(word: &str) -> Option<f64> {
    // Rust reads `+Inf`, `-Inf` and `NaN` as the format writes them.
    word.parse().ok()
}

/// Offset of the brace that ends the labels, quotes respected.
fn closing_brace(inside: &str) -> Option<usize> {
    let bytes = inside.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'}', &bytes[at..]) {
        at += found;
        if bytes[at] == b'}' {
            return Some(at);
        }
        at += 1;
        at += quoted_end(&inside[at..])? + 1;
    }
    None
}

/// Offset of the quote that ends a quoted text whose opening quote is already gone.
fn quoted_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        // A backslash takes the next character with it. That may be several bytes long, and none of them is `"` or `\`.
        at += 2;
    }
}

/// The next label of what stands between the braces; `None` at the end.
pub(super) fn label(rest: &str) -> Result<Option<NextLabel<'_>>, &'static str> {
    let rest = rest.trim_start_matches([' ', '\t', ',']);
    if rest.is_empty() {
        return Ok(None);
    }
    let equals = memchr::memchr(b'=', rest.as_bytes()).ok_or("a label has no `=`")?;
    let name = rest[..equals].trim().trim_matches('"');
    if name.is_empty() {
        return Err("a label has no name");
    }
    let value = rest[equals + 1..]
        .trim_start()
        .strip_prefix('"')
        .ok_or("a label value has no quotes")?;
    let end = quoted_end(value).ok_or("a label value does not end")?;
    let rest = &value[end + 1..];
    if !rest.is_empty() && !rest.starts_with([',', ' ', '\t']) {
        return Err("labels are not parted by commas");
    }
    Ok(Some(NextLabel {
        name,
        value: &value[..end],
        rest,
    }))
}

/// Writes a label value with `\\`, `\"` and `\n` resolved; an unknown escape stays as it is.
pub(super) fn unescape(value: &str, out: &mut String) {
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some(e @ ('\\' | '"'))) => out.push(e),
            _ => {
                out.push(c);
                continue;
            }
        }
        chars.next();
    }
}
