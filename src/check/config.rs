//! `config`: a table *expected count / seen count* of mounts, variables, arguments, log lines and texts in files, the way
//! people prove a restore by hand.

use regex::Regex;

use crate::evidence::absence::Sighting;
use crate::evidence::count;
use crate::evidence::environ::Environ;
use crate::evidence::packages::same_name;
use crate::evidence::resident::Resident;
use crate::evidence::window::{Residents, Window};
use crate::judge::finding::Reason;
use crate::judge::log;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::Task;
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct Config;

const FIGURES: &[FigureKind] = &[FigureKind {
    name: "rows_as_expected",
    unit: "rows",
    unit_aliases: &[("", 1.0)],
    words: &[],
    judged: Judged::Each,
    about: "Rows of the table whose seen count is the expected one.",
}];

const ROW: &[Key] = &[
    Key {
        name: "count",
        takes: Takes::Word(&[
            "mount", "variable", "argument", "line", "text", "library", "package", "altered",
        ]),
        default: Default::Required,
        about: "What is counted: mounts, variables of each worker's live environment, arguments of the seat's processes, log lines since boot, occurrences of a text in a file as the seat sees it, mapped libraries of each worker, packages (as `vllm 0.32.0`) that each worker can import, files of a package that are not as its RECORD says (mounted over or edited).",
    },
    Key {
        name: "pattern",
        takes: Takes::Text,
        default: Default::Required,
        about: "Regular expression; for `text` the text itself, for `altered` the package's name, for `variable` `NAME` or `NAME=VALUE`, each side a pattern.",
    },
    Key {
        name: "file",
        takes: Takes::Text,
        default: Default::Absent,
        about: "For `text`: path of the file inside the seat's container.",
    },
    Key {
        name: "expect",
        takes: Takes::Count(0, 1_000_000),
        default: Default::Required,
        about: "How many there must be.",
    },
];

const KEYS: &[Key] = &[Key {
    name: "rows",
    takes: Takes::Rows(ROW),
    default: Default::Required,
    about: "The table.",
}];

const DECLARATION: Declaration = Declaration {
    name: "config",
    about: "Counts mounts, variables, arguments, log lines, libraries and texts in files of the serving processes against what they must be.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::None,
    repeats: 1,
};

impl Kind for Config {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        check
            .params
            .rows("rows")
            .iter()
            .filter_map(row_fault)
            .collect()
    }
}

fn row_fault(row: &Params) -> Option<KindFault> {
    let fault = |message: String, help: &str| {
        Some(KindFault {
            key: Some("rows"),
            message,
            help: help.into(),
        })
    };
    let is_text = row.text("count") == Some("text");
    let literal = is_text || row.text("count") == Some("altered");
    let pattern = row.text("pattern").unwrap_or_default();
    match row.text("file") {
        None if is_text => {
            return fault(
                format!("`{pattern}` is to be counted in a file, and no `file` is named"),
                "add `file = \"/path/in/the/container\"`",
            );
        }
        Some(_) if !is_text => {
            return fault(
                "`file` belongs to `count = \"text\"` only".into(),
                "take it out",
            );
        }
        _ => {}
    }
    if !literal && let Err(cause) = Regex::new(pattern) {
        return fault(
            format!("`{pattern}` is no regular expression: {cause}"),
            "escape what is meant literally with a backslash",
        );
    }
    None
}

impl Planned for Config {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Count(slot.check.params.clone()),
        }]
    }
}

impl Concludes for Config {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let mut conclusion = Conclusion::default();
        let (mut right, mut windows) = (Vec::new(), Vec::new());
        for window in view.windows("measure") {
            let rows = view.check.params.rows("rows");
            let mut holding = 0;
            for (place, row) in rows.iter().enumerate() {
                let expected = row.count("expect").unwrap_or(0);
                let name = format!(
                    "{} `{}`",
                    row.text("count").unwrap_or_default(),
                    row.text("pattern").unwrap_or_default()
                );
                match seen(view, window, row, place) {
                    Sighting::Seen { value } if value == expected => {
                        holding += 1;
                        conclusion
                            .notes
                            .push(format!("{name}: expected {expected}, seen {value}"));
                    }
                    Sighting::Seen { value } => conclusion.reasons.push(Reason::new(
                        "config.count",
                        Verdict::Fail,
                        format!("{name}: expected {expected}, seen {value}"),
                        format!("{name}: 期待 {expected}、実際 {value}"),
                    )),
                    Sighting::Absent(absent) => conclusion.reasons.push(Reason::new(
                        "config.unread",
                        Verdict::Unproven,
                        format!(
                            "{name}: expected {expected}, not to be counted: {}; {}",
                            absent.why, absent.mend
                        ),
                        format!(
                            "{name}: 期待 {expected}、数えられない: {}; {}",
                            absent.why, absent.mend
                        ),
                    )),
                }
            }
            right.push(f64::from(holding));
            windows.push(window.id.clone());
        }
        if !right.is_empty() {
            conclusion.measured.push(Measured {
                figure: "rows_as_expected",
                sample: Sample::Each(right),
                windows,
            });
        }
        conclusion
    }
}

/// The seen count of one row; where workers differ, the one that differs most from what is expected.
fn seen(view: &View<'_>, window: &Window, row: &Params, place: usize) -> Sighting<u64> {
    let pattern = row.text("pattern").unwrap_or_default();
    if row.text("count") == Some("text") {
        return text(window, place);
    }
    let Ok(regex) = Regex::new(&match row.text("count") {
        Some("altered") => regex::escape(pattern),
        _ => pattern.to_owned(),
    }) else {
        return Sighting::absent("the pattern does not compile", "mend the gate");
    };
    if row.text("count") == Some("line") {
        return match log::of_boot(view, window) {
            Some(stretch) if stretch.whole => match stretch.count(pattern, None) {
                Some(count) => Sighting::Seen { value: count.total },
                None => Sighting::absent("the pattern does not compile", "mend the gate"),
            },
            Some(_) => Sighting::absent(
                "the log is not whole",
                "follow it from the boot's first line",
            ),
            None => Sighting::absent("there is no log", "name it: `[seat] log = …`"),
        };
    }
    let Some(residents) = view
        .evidence
        .residents
        .iter()
        .find(|r| r.boot == window.boot)
    else {
        return Sighting::absent(
            "the processes of this seat were not looked into",
            "run sekimon on the seat's host",
        );
    };
    let expected = row.count("expect").unwrap_or(0);
    match row.text("count") {
        Some("mount") => match &residents.mounts {
            Sighting::Seen { value } => Sighting::Seen {
                value: count::count_mounts(value, &regex),
            },
            Sighting::Absent(absent) => Sighting::Absent(absent.clone()),
        },
        Some("argument") => match &residents.set {
            Sighting::Seen { value } => {
                let lines = value
                    .processes
                    .iter()
                    .map(|p| count::count_arguments(&p.pin.cmdline, &regex));
                Sighting::Seen { value: lines.sum() }
            }
            Sighting::Absent(absent) => Sighting::Absent(absent.clone()),
        },
        Some("library") => in_workers(residents, expected, |r| match &r.libraries {
            Sighting::Seen { value } => Sighting::Seen {
                value: value.iter().filter(|l| regex.is_match(&l.path)).count() as u64,
            },
            Sighting::Absent(absent) => Sighting::Absent(absent.clone()),
        }),
        Some("package") => in_workers(residents, expected, |r| match &r.packages {
            Sighting::Seen { value } => Sighting::Seen {
                value: value
                    .iter()
                    .filter(|p| regex.is_match(&format!("{} {}", p.name, p.version)))
                    .count() as u64,
            },
            Sighting::Absent(absent) => Sighting::Absent(absent.clone()),
        }),
        Some("altered") => in_workers(residents, expected, |r| altered(r, pattern)),
        _ => in_workers(residents, expected, |r| match &r.environ {
            Sighting::Seen { value } => variables(value, pattern),
            Sighting::Absent(absent) => Sighting::Absent(absent.clone()),
        }),
    }
}

/// The count of every worker: one that cannot be read makes it absent, else the first that is not as expected speaks.
fn in_workers(
    residents: &Residents,
    expected: u64,
    of: impl Fn(&Resident) -> Sighting<u64>,
) -> Sighting<u64> {
    let pids: Vec<u32> = match &residents.set {
        Sighting::Seen { value } => value.computing().iter().map(|p| p.pin.pid).collect(),
        Sighting::Absent(absent) => return Sighting::Absent(absent.clone()),
    };
    let counts: Vec<Sighting<u64>> = residents
        .each
        .iter()
        .filter(|r| pids.contains(&r.pid))
        .map(of)
        .collect();
    if let Some(absent) = counts.iter().find(|c| c.seen().is_none()) {
        return absent.clone();
    }
    let seen: Vec<u64> = counts.iter().filter_map(|c| c.seen().copied()).collect();
    match seen.iter().find(|n| **n != expected).or(seen.first()) {
        Some(n) => Sighting::Seen { value: *n },
        None => Sighting::absent(
            "no worker process was found",
            "run sekimon on the seat's host",
        ),
    }
}

/// Variables by `NAME` or `NAME=VALUE`, each side a pattern.
fn variables(environ: &Environ, pattern: &str) -> Sighting<u64> {
    let (name, value) = match pattern.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (pattern, None),
    };
    match (Regex::new(name), value.map(Regex::new).transpose()) {
        (Ok(name), Ok(value)) => count::count_variables(environ, &name, value.as_ref()),
        _ => Sighting::absent("the pattern does not compile", "mend the gate"),
    }
}

/// Files of a package that are not as its RECORD says.
fn altered(resident: &Resident, package: &str) -> Sighting<u64> {
    let packages = match &resident.packages {
        Sighting::Seen { value } => value,
        Sighting::Absent(absent) => return Sighting::Absent(absent.clone()),
    };
    let Some(found) = packages.iter().find(|p| same_name(&p.name, package)) else {
        return Sighting::absent(
            format!("no package `{package}` can be imported there"),
            "name it as `pip list` does",
        );
    };
    if let Some(folder) = &found.editable {
        return Sighting::absent(
            format!(
                "`{package}` is installed editable from {folder}: its RECORD says nothing of what runs"
            ),
            "count a text in its files, or install it from a wheel",
        );
    }
    match &found.files {
        Sighting::Seen { value } => Sighting::Seen {
            value: value.altered_in_all,
        },
        Sighting::Absent(absent) => Sighting::Absent(absent.clone()),
    }
}

/// What the run counted in a file.
fn text(window: &Window, place: usize) -> Sighting<u64> {
    let found = window
        .results
        .get("texts")
        .and_then(|t| t.get(place))
        .cloned();
    match found.map(serde_json::from_value::<Sighting<u64>>) {
        Some(Ok(sighting)) => sighting,
        _ => Sighting::absent("the file was not read", "run sekimon on the seat's host"),
    }
}
