//! The invariants of the house, as tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms in the order of imports: each may name only those before it.
const ROOMS: &[&str] = &[
    "stats", "workload", "quality", "dialect", "spec", "evidence", "plan", "judge", "check",
    "archive", "report", "drill", "drive", "witness", "seat", "run", "sim", "cli",
];

fn sources(dir: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut open = vec![PathBuf::from(dir)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

fn room(path: &Path) -> String {
    let mut parts = path
        .strip_prefix("src")
        .expect("a source file")
        .components();
    let first = parts
        .next()
        .expect("a name")
        .as_os_str()
        .to_string_lossy()
        .into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// The file without its in-file tests, comments and docs.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file");
    let body = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    body.lines()
        .filter(|l| !l.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A file that its room declares under `#[cfg(test)]`.
fn is_test_file(path: &Path) -> bool {
    let stem = path.file_stem().expect("a name").to_string_lossy();
    let front = path.with_file_name("mod.rs");
    let declared = fs::read_to_string(front).unwrap_or_default();
    stem.ends_with("tests") || declared.contains(&format!("#[cfg(test)]\nmod {stem};"))
}

#[test]
fn rooms_import_only_leftwards() {
    let mut wrong = Vec::new();
    for path in sources("src").iter().filter(|p| !is_test_file(p)) {
        let here = room(path);
        let Some(place) = ROOMS.iter().position(|r| *r == here) else {
            continue;
        };
        for (number, line) in code(path).lines().enumerate() {
            for (index, other) in ROOMS.iter().enumerate() {
                if index > place && line.contains(&format!("crate::{other}::")) {
                    wrong.push(format!(
                        "{}:{}: `{here}` names `{other}`",
                        path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_stands_on_the_map() {
    let rooms: BTreeSet<String> = sources("src")
        .iter()
        .map(|p| room(p))
        .filter(|r| r != "lib" && r != "main")
        .collect();
    let map: BTreeSet<String> = ROOMS.iter().map(ToString::to_string).collect();
    assert_eq!(rooms, map);
    let lib = fs::read_to_string("src/lib.rs").expect("the map");
    for room in ROOMS {
        assert!(
            lib.contains(&format!("| [`{room}`] |")),
            "`{room}` is not in the map of src/lib.rs"
        );
    }
}

#[test]
fn printing_lives_in_cli() {
    for path in sources("src")
        .iter()
        .filter(|p| room(p) != "cli" && !is_test_file(p))
    {
        for word in ["println!", "eprintln!", "print!(", "eprint!(", "dbg!"] {
            assert!(
                !code(path).contains(word),
                "{} has `{word}`",
                path.display()
            );
        }
    }
}

#[test]
fn http_lives_in_drive_and_witness() {
    for path in sources("src")
        .iter()
        .filter(|p| !["drive", "witness"].contains(&room(p).as_str()))
    {
        // A URL is text; a client is not.
        let code = code(path).replace("reqwest::Url", "");
        assert!(
            !code.contains("reqwest"),
            "{} names reqwest",
            path.display()
        );
    }
}

#[test]
fn clocks_run_only_where_the_world_is_touched() {
    let pure = [
        "stats", "workload", "quality", "dialect", "spec", "evidence", "plan", "judge", "check",
        "report",
    ];
    for path in sources("src")
        .iter()
        .filter(|p| pure.contains(&room(p).as_str()) && !is_test_file(p))
    {
        for word in [
            "Instant::now",
            "SystemTime::now",
            "Timestamp::now",
            "std::env::var",
            "std::net",
            "std::fs",
        ] {
            assert!(
                !code(path).contains(word),
                "{} names `{word}`",
                path.display()
            );
        }
    }
}

#[test]
fn no_file_is_a_drawer() {
    let drawers = [
        "utils", "util", "helpers", "helper", "common", "misc", "core", "types", "base", "imp",
    ];
    for path in sources("src") {
        let stem = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(
            !drawers.contains(&stem.as_str()),
            "{} can hold anything",
            path.display()
        );
    }
}

#[test]
fn a_file_is_one_thought() {
    for path in sources("src") {
        let lines = fs::read_to_string(&path)
            .expect("a source file")
            .lines()
            .count();
        assert!(lines <= 600, "{} has {lines} lines", path.display());
    }
}

#[test]
fn every_check_is_in_its_table() {
    let table = fs::read_to_string("src/check/mod.rs").expect("the table");
    for path in sources("src/check") {
        let stem = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = code(&path);
        if text.contains("impl Concludes for") {
            assert!(
                table.contains(&format!("&{stem}::")),
                "`{stem}` is not in KINDS"
            );
        }
    }
}

#[test]
fn every_dialect_is_in_its_table() {
    let ids: BTreeSet<&str> = sekimon::dialect::DIALECTS.iter().map(|d| d.id).collect();
    assert_eq!(ids.len(), sekimon::dialect::DIALECTS.len(), "an id twice");
    for path in sources("src/dialect") {
        let text = code(&path);
        if let Some(id) = text
            .split("id: \"")
            .nth(1)
            .and_then(|t| t.split('"').next())
        {
            assert!(ids.contains(id), "`{id}` is not in DIALECTS");
        }
    }
}

#[test]
fn every_shipped_gate_reads_and_plans() {
    for entry in fs::read_dir("gates").expect("gates") {
        let path = entry.expect("a gate").path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let source = fs::read_to_string(&path).expect("a gate");
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let read = sekimon::spec::read::read(
            &name,
            &path.display().to_string(),
            &source,
            &sekimon::check::kinds(),
        );
        let gate = match read {
            Ok(reading) => reading.gate,
            Err(faults) => panic!("{}", faults.plain()),
        };
        let plan = sekimon::plan::Plan::of(&gate, &sekimon::check::planned);
        assert!(
            plan.windows().count() > 0,
            "{} plans nothing",
            path.display()
        );
    }
}

#[test]
fn no_machine_and_no_registry_is_named() {
    let mut open = vec![
        PathBuf::from("src"),
        PathBuf::from("tests"),
        PathBuf::from("gates"),
        PathBuf::from(".ci"),
    ];
    open.push(PathBuf::from("README.md"));
    let hosts = [
        "crates".to_owned() + ".io",
        "pypi".to_owned() + ".org",
        "npmjs".to_owned() + ".com",
    ];
    let homes = ["/wo".to_owned() + "rk/", "/ro".to_owned() + "ot/"];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .map(|e| e.expect("an entry").path()),
            );
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for word in hosts.iter().chain(&homes) {
            assert!(
                !text.contains(word.as_str()),
                "{} names `{word}`",
                path.display()
            );
        }
    }
}
