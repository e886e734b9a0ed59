//! Text in, gate out: the order of reading, and what holds between the parts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::de::DeTable;

use super::builds;
use super::checks;
use super::faults::{Fault, Faults, Severity, line_of};
use super::gate::{Gate, Occupancy, RecordedRun};
use super::kind::Kind;
use super::paths;
use super::scalar;
use super::seat;
use super::walk::{Ledger, Walk};

/// A gate that read well.
#[derive(Debug)]
pub struct Reading {
    /// The gate.
    pub gate: Gate,
    /// What a person should look at all the same.
    pub warnings: Faults,
}

/// Where named things stand, for faults that are found later.
pub(super) type Places = BTreeMap<String, Range<usize>>;

/// Reads a gate file.
///
/// # Errors
/// Every fault of the file, each at its place.
pub fn read(
    name: &str,
    file: &str,
    source: &str,
    kinds: &[&'static dyn Kind],
) -> Result<Reading, Faults> {
    let ledger = Ledger::default();
    let (document, errors) = DeTable::parse_recoverable(source);
    let root = Walk::new(&ledger, document.get_ref(), "the gate", 0..0);
    let gate = gate(name, source, &root, &ledger, kinds);
    root.close(&[]);
    let mut all = ledger.take();
    syntax(&mut all, &errors, source);
    let faults = |severity| Faults {
        file: file.into(),
        source: source.into(),
        list: all
            .iter()
            .filter(|f: &&Fault| severity == f.severity)
            .cloned()
            .collect(),
    };
    let errors = faults(Severity::Error);
    if errors.is_empty() {
        Ok(Reading {
            gate,
            warnings: faults(Severity::Warning),
        })
    } else {
        Err(Faults {
            list: all,
            ..errors
        })
    }
}

/// Adds what is no TOML. Where the text broke, the reader saw something that nobody wrote: what it said of that goes.
fn syntax(all: &mut Vec<Fault>, errors: &[toml::de::Error], source: &str) {
    const TWICE: &str = "duplicate key";
    let place = |error: &toml::de::Error| error.span().unwrap_or(0..0);
    let broken: BTreeSet<usize> = errors
        .iter()
        .filter(|e| e.message() != TWICE)
        .map(|e| line_of(source, place(e).start))
        .collect();
    if !broken.is_empty() {
        all.retain(|f| f.span != (0..0) && !broken.contains(&line_of(source, f.span.start)));
    }
    for error in errors {
        let span = place(error);
        let twice = error.message() == TWICE;
        let key = source.get(span.clone()).unwrap_or_default();
        all.push(Fault {
            message: if twice {
                format!("the key `{key}` is given twice")
            } else {
                error.message().to_owned()
            },
            label: if twice { "the second" } else { "here" }.to_owned(),
            help: twice.then(|| "keep one of them".to_owned()),
            severity: Severity::Error,
            span,
        });
    }
    all.sort_by_key(|f| (f.span.start, f.span.end));
}

fn gate<'a>(
    name: &str,
    source: &str,
    root: &Walk<'a, '_>,
    ledger: &'a Ledger,
    kinds: &[&'static dyn Kind],
) -> Gate {
    let title = root
        .required("title", "\"what this gate is for\"")
        .and_then(|n| scalar::text(ledger, n, "title"));
    let seat = seat::read(root, ledger);
    let dialect = seat.dialect;
    let mut build_places = builds::BuildPlaces::default();
    let builds = builds::read(root, ledger, source, &mut build_places);
    let mut path_places = Places::new();
    let paths = paths::read(root, ledger, source, dialect, &mut path_places);
    let runs = runs(root, ledger);
    let mut gate = Gate {
        name: name.into(),
        title: title.unwrap_or_default(),
        seat,
        builds,
        paths,
        checks: Vec::new(),
        runs,
        source: source.into(),
    };
    builds::hold(&gate, ledger, &build_places);
    let checks = checks::read(root, ledger, source, kinds, &mut gate);
    gate.checks = checks;
    used(&gate, root, ledger, &path_places);
    restored(&gate, root, ledger);
    gate
}

/// Paths that are named must be defined, and those that are defined should be named.
fn used(gate: &Gate, root: &Walk<'_, '_>, ledger: &Ledger, places: &Places) {
    // A check that did not read, or a path's name misspelt, may mean any of them.
    let written = root.get("check").and_then(|n| n.get_ref().as_array());
    let whole = written.is_some_and(|list| list.iter().count() == gate.checks.len());
    let mut asked = gate.checks.iter().filter_map(|c| c.path.as_deref());
    if !whole || asked.any(|name| gate.path(name).is_none()) {
        return;
    }
    let named: BTreeSet<&str> = gate
        .checks
        .iter()
        .filter_map(|c| c.path.as_deref())
        .chain(gate.builds.iter().filter_map(|b| b.path.as_deref()))
        .collect();
    for path in gate
        .paths
        .iter()
        .filter(|p| !named.contains(p.name.as_str()))
    {
        if let Some(span) = places.get(&path.name) {
            ledger.warn(
                span.clone(),
                format!(
                    "the path `{}` is defined and no check or build names it",
                    path.name
                ),
                "never used",
                None,
            );
        }
    }
}

fn restored(gate: &Gate, root: &Walk<'_, '_>, ledger: &Ledger) {
    let Some(restore) = &gate.seat.restore else {
        return;
    };
    let span = root
        .table("seat", "[seat]")
        .map_or(0..0, |seat| seat.place("restore"));
    if gate.build(restore).is_none() {
        let names: Vec<&str> = gate.builds.iter().map(|b| b.name.as_str()).collect();
        let help = super::walk::did_you_mean(restore, names.iter().copied());
        ledger.error(
            span.clone(),
            format!("`restore` names the build `{restore}`, which is not defined"),
            "not defined",
            help,
        );
    }
    if gate.build(restore).is_some() && gate.seat.occupancy == Occupancy::SideBySide {
        ledger.warn(
            span,
            "`restore` beside `together`: every build is up at once, so nothing has to be put back",
            "not needed",
            None,
        );
    }
}

fn runs(root: &Walk<'_, '_>, ledger: &Ledger) -> BTreeMap<String, RecordedRun> {
    let mut runs = BTreeMap::new();
    let Some(table) = root.table("runs", "[runs]") else {
        return runs;
    };
    for (name, span, node) in table.entries() {
        super::walk::name(ledger, &span, "run", name);
        let Some(run) = super::walk::table(ledger, node, name, format!("[runs.{name}]")) else {
            continue;
        };
        let path = run
            .required("report", "\"reports/…/report.json\"")
            .and_then(|n| scalar::text(ledger, n, "report"));
        let build = run.text("build");
        let sha256 = run.text("sha256");
        run.close(&[]);
        if let Some(path) = path {
            runs.insert(
                name.to_owned(),
                RecordedRun {
                    path,
                    build,
                    sha256,
                },
            );
        }
    }
    runs
}
