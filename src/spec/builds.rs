//! `[builds.NAME]`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use super::faults::line_of;
use super::gate::{Build, Gate, LogSource, Occupancy};
use super::read::Places;
use super::scalar;
use super::seat;
use super::walk::{self, Ledger, Walk};

/// How long a build may take to become ready unless the gate says more: a small model loads in seconds, a 305B pack in
/// half an hour; ten minutes catch the hung one.
const READY: Duration = Duration::from_secs(600);

/// A build as written, before `like` is resolved.
#[derive(Default, Clone)]
struct Raw {
    name: String,
    like: Option<String>,
    start: Option<Vec<String>>,
    stop: Option<Vec<String>>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    ready: Option<Duration>,
    url: Option<String>,
    log: Option<LogSource>,
    path: Option<String>,
    span: Range<usize>,
    like_span: Range<usize>,
}

/// Where the builds stand, and which of them are like nothing.
#[derive(Debug, Default)]
pub(super) struct BuildPlaces {
    names: Places,
    broken: BTreeSet<String>,
}

/// Reads the builds; without `[builds]` there is one that is attached to.
pub(super) fn read<'a>(
    root: &Walk<'a, '_>,
    ledger: &'a Ledger,
    source: &str,
    places: &mut BuildPlaces,
) -> Vec<Build> {
    let Some(table) = root.table("builds", "[builds]") else {
        let seat = root.table("seat", "[seat]");
        let url = seat.map_or(0..0, |seat| seat.place("url"));
        places.names.insert("seat".into(), url);
        return vec![Build {
            name: "seat".into(),
            start: Vec::new(),
            stop: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            ready: READY,
            url: None,
            log: None,
            path: None,
            line: 1,
        }];
    };
    if table.entries().is_empty() {
        ledger.error(
            root.place("builds"),
            "`[builds]` defines no build",
            "empty",
            Some(
                "add `[builds.candidate]`, or leave `[builds]` out to attach to what serves".into(),
            ),
        );
    }
    let mut raw: Vec<Raw> = Vec::new();
    for (name, span, node) in table.entries() {
        if let Some(build) = walk::table(ledger, node, name, format!("[builds.{name}]")) {
            places.names.insert(name.to_owned(), span.clone());
            walk::name(ledger, &span, "build", name);
            raw.push(one(name, span, build, ledger));
        }
    }
    let mut builds = Vec::new();
    for build in &raw {
        let before = ledger.errors();
        builds.push(finish(
            resolve(build, &raw, ledger, &mut BTreeSet::new()),
            source,
        ));
        if ledger.errors() > before {
            places.broken.insert(build.name.clone());
        }
    }
    builds
}

fn one(name: &str, span: Range<usize>, build: Walk<'_, '_>, ledger: &Ledger) -> Raw {
    let list = |key| build.get(key).map(|n| scalar::texts(ledger, n, key));
    let mut env = BTreeMap::new();
    if let Some(table) = build.table("env", format!("[builds.{name}.env]")) {
        for (key, _, node) in table.entries() {
            if let Some(value) = scalar::text(ledger, node, key) {
                env.insert(key.to_owned(), value);
            }
        }
    }
    let raw = Raw {
        name: name.into(),
        like: build.text("like"),
        start: list("start"),
        stop: list("stop"),
        env,
        cwd: build.text("cwd"),
        ready: build.time("ready"),
        url: build.get("url").and_then(|n| scalar::url(ledger, n, "url")),
        log: build.get("log").and_then(|n| seat::log(ledger, n)),
        path: build.text("path"),
        like_span: build.place("like"),
        span,
    };
    build.close(&[]);
    raw
}

/// A build with everything that it takes from the one it is like.
fn resolve(build: &Raw, all: &[Raw], ledger: &Ledger, seen: &mut BTreeSet<String>) -> Raw {
    let Some(like) = &build.like else {
        return build.clone();
    };
    if !seen.insert(build.name.clone()) {
        ledger.error(
            build.like_span.clone(),
            format!("`{}` is like itself, over `{like}`", build.name),
            "a circle",
            None,
        );
        return build.clone();
    }
    let Some(base) = all.iter().find(|b| b.name == *like) else {
        let help = walk::did_you_mean(like, all.iter().map(|b| b.name.as_str()));
        ledger.error(
            build.like_span.clone(),
            format!("`like` names the build `{like}`, which is not defined"),
            "not defined",
            help,
        );
        return build.clone();
    };
    let base = resolve(base, all, ledger, seen);
    let mut env = base.env;
    env.extend(build.env.clone());
    Raw {
        start: build.start.clone().or(base.start),
        stop: build.stop.clone().or(base.stop),
        env,
        cwd: build.cwd.clone().or(base.cwd),
        ready: build.ready.or(base.ready),
        url: build.url.clone().or(base.url),
        log: build.log.clone().or(base.log),
        path: build.path.clone().or(base.path),
        ..build.clone()
    }
}

fn finish(raw: Raw, source: &str) -> Build {
    Build {
        line: line_of(source, raw.span.start),
        name: raw.name,
        start: raw.start.unwrap_or_default(),
        stop: raw.stop.unwrap_or_default(),
        env: raw.env,
        cwd: raw.cwd,
        ready: raw.ready.unwrap_or(READY),
        url: raw.url,
        log: raw.log,
        path: raw.path,
    }
}

/// What must hold between the builds and the rest of the gate.
pub(super) fn hold(gate: &Gate, ledger: &Ledger, places: &BuildPlaces) {
    for build in &gate.builds {
        let span = places.names.get(&build.name).cloned().unwrap_or(0..0);
        let url = build.url.as_deref().unwrap_or(&gate.seat.url);
        if build.start.is_empty() && url.ends_with(":0") {
            ledger.error(
                span.clone(),
                format!(
                    "`{}` is attached to, and port 0 is no place to attach to",
                    build.name
                ),
                "no `start`",
                Some("name the seat's port, or give the build a `start` command".into()),
            );
        }
        if places.broken.contains(&build.name) {
            // Nothing is known of what it would have taken from the other.
        } else if build.start.is_empty() && build.url.is_none() && gate.builds.len() > 1 {
            ledger.error(span.clone(), format!("`{}` has neither `start` nor `url`: nothing tells it from the other builds at the seat", build.name), "what serves here?", Some("give it a `start` command, or a `url` of its own".into()));
        }
        if let Some(path) = &build.path
            && gate.path(path).is_none()
        {
            let help = walk::did_you_mean(path, gate.paths.iter().map(|p| p.name.as_str()));
            ledger.error(
                span.clone(),
                format!(
                    "the build `{}` names the path `{path}`, which is not defined",
                    build.name
                ),
                "names it",
                help.or_else(|| Some(format!("add `[paths.{path}]`"))),
            );
        }
        let shared = gate
            .builds
            .iter()
            .any(|b| b.name != build.name && b.url.as_deref().unwrap_or(&gate.seat.url) == url);
        if gate.seat.occupancy == Occupancy::SideBySide && shared && !url.ends_with(":0") {
            ledger.error(
                span,
                format!(
                    "`together` wants each build at its own place, and `{}` shares {url}",
                    build.name
                ),
                "shared",
                Some("give each build a `url`, or use port 0".into()),
            );
        }
    }
}
