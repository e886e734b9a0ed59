//! `[seat]`.

use super::faults::SECRET;
use super::gate::{LogSource, Occupancy, Ranks, Seat};
use super::scalar;
use super::walk::{self, Ledger, Node, Walk};
use crate::dialect::{DIALECTS, named};
use toml::de::{DeTable, DeValue};

/// Reads the seat; without one, an empty seat stands in so that the rest of the file is read too.
pub(super) fn read<'a>(root: &Walk<'a, '_>, ledger: &'a Ledger) -> Seat {
    let nothing = DeTable::new();
    let seat = root.table("seat", "[seat]");
    if root.get("seat").is_none() {
        ledger.error(
            0..0,
            "the gate has no `[seat]`",
            "`[seat]` is missing",
            Some("add `[seat]` with `url = \"http://127.0.0.1:8000\"`".into()),
        );
    }
    if let Some(seat) = seat {
        return one(seat, ledger);
    }
    // What an empty table lacks has been told by the fault above.
    let unheard = Ledger::default();
    one(Walk::new(&unheard, &nothing, "[seat]", 0..0), &unheard)
}

fn one(seat: Walk<'_, '_>, ledger: &Ledger) -> Seat {
    let url = seat
        .required("url", "\"http://127.0.0.1:8000\"")
        .and_then(|n| scalar::url(ledger, n, "url"));
    let dialect = seat.get("dialect").and_then(|node| {
        let id = scalar::text(ledger, node, "dialect")?;
        let found = named(&id);
        if found.is_none() {
            let ids = DIALECTS.iter().map(|d| d.id);
            let help = walk::did_you_mean(&id, ids.clone())
                .unwrap_or_else(|| format!("one of `{}`", ids.collect::<Vec<_>>().join("`, `")));
            ledger.error(
                node.span(),
                format!("unknown dialect `{id}`"),
                "unknown dialect",
                Some(help),
            );
        }
        found
    });
    let read = Seat {
        url: url.unwrap_or_default(),
        model: seat.text("model"),
        dialect,
        ranks: seat.get("ranks").map_or(ONE, |node| ranks(ledger, node)),
        log: seat.get("log").and_then(|node| log(ledger, node)),
        metrics: metrics(&seat, ledger),
        api_key_env: key(&seat, ledger),
        restore: seat.text("restore"),
        occupancy: if seat.flag("together") == Some(true) {
            Occupancy::SideBySide
        } else {
            Occupancy::OneAtATime
        },
        gpus: gpus(&seat, ledger),
        clock_floor_mhz: seat
            .get("clock_floor")
            .and_then(|node| megahertz(ledger, node)),
    };
    seat.close(&[]);
    read
}

const ONE: Ranks = Ranks {
    tp: 1,
    pp: 1,
    dp: 1,
    nodes: 1,
};

fn metrics(seat: &Walk<'_, '_>, ledger: &Ledger) -> Vec<String> {
    match seat.get("metrics") {
        Some(node) => match node.get_ref() {
            DeValue::Array(list) => list
                .iter()
                .filter_map(|n| scalar::url(ledger, n, "metrics"))
                .collect(),
            _ => scalar::texts(ledger, node, "metrics"),
        },
        None => Vec::new(),
    }
}

/// The name of the variable that holds the key; the key itself is refused.
fn key(seat: &Walk<'_, '_>, ledger: &Ledger) -> Option<String> {
    let help =
        || Some("name the environment variable that holds it: `api_key_env = \"NAME\"`".to_owned());
    if let Some(node) = seat.get("api_key") {
        ledger.error(
            node.span(),
            "an API key has no place in a gate file",
            SECRET,
            help(),
        );
    }
    let node = seat.get("api_key_env")?;
    let name = scalar::text(ledger, node, "api_key_env")?;
    let named = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !named {
        // What stands here may be the key, so the message does not repeat it.
        ledger.error(
            node.span(),
            "`api_key_env` takes the name of an environment variable, and this is none",
            SECRET,
            help(),
        );
    }
    named.then_some(name)
}

/// More ranks than any one model is served on; beyond it a typing error is likelier.
const MOST_RANKS: u64 = 65_536;

fn ranks(ledger: &Ledger, node: Node<'_, '_>) -> Ranks {
    if let DeValue::Table(_) = node.get_ref() {
        let Some(table) = walk::table(ledger, node, "ranks", "`ranks`") else {
            return ONE;
        };
        let size = |key| {
            table
                .count(key, 1, 4096)
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(1)
        };
        let ranks = Ranks {
            tp: size("tp"),
            pp: size("pp"),
            dp: size("dp"),
            nodes: size("nodes"),
        };
        table.close(&[]);
        let total = [ranks.tp, ranks.pp, ranks.dp].map(u64::from);
        let total: u64 = total.iter().product();
        if total > MOST_RANKS {
            ledger.error(
                node.span(),
                format!("`ranks` are {total} in all"),
                "out of range",
                Some(format!("a seat has {MOST_RANKS} ranks at most")),
            );
            return ONE;
        }
        if u64::from(ranks.nodes) > total {
            ledger.error(
                node.span(),
                format!("{} nodes cannot share {total} ranks", ranks.nodes),
                "more nodes than ranks",
                Some("`tp`, `pp` and `dp` multiply to the ranks; `nodes` are the machines that hold them".into()),
            );
        }
        return ranks;
    }
    let tp = scalar::whole(ledger, node, "ranks", 1, 4096).and_then(|n| u32::try_from(n).ok());
    Ranks {
        tp: tp.unwrap_or(1),
        ..ONE
    }
}

fn gpus(seat: &Walk<'_, '_>, ledger: &Ledger) -> Vec<u32> {
    let Some(node) = seat.get("gpus") else {
        return Vec::new();
    };
    let DeValue::Array(list) = node.get_ref() else {
        walk::wrong_type(
            ledger,
            node,
            "gpus",
            "a list of GPU indices, as in `[0, 1]`",
        );
        return Vec::new();
    };
    list.iter()
        .filter_map(|n| scalar::whole(ledger, n, "gpus", 0, 1023))
        .filter_map(|n| u32::try_from(n).ok())
        .collect()
}

fn megahertz(ledger: &Ledger, node: Node<'_, '_>) -> Option<u32> {
    let help = || Some("write `\"1500 MHz\"`".to_owned());
    let Some(text) = node.get_ref().as_str() else {
        ledger.error(
            node.span(),
            "`clock_floor` takes a clock with its unit",
            "a clock has a unit",
            help(),
        );
        return None;
    };
    let found = text
        .trim()
        .strip_suffix("MHz")
        .and_then(|n| n.trim().parse().ok());
    if found.is_none() {
        ledger.error(
            node.span(),
            format!("`{text}` is no clock"),
            "not a clock",
            help(),
        );
    }
    found
}

/// One source of a log.
pub(super) fn log(ledger: &Ledger, node: Node<'_, '_>) -> Option<LogSource> {
    let before = ledger.errors();
    let table = walk::table(ledger, node, "log", "`log`")?;
    let file = table.text("file").map(LogSource::File);
    let docker = table.text("docker").map(LogSource::Docker);
    let command = table
        .get("command")
        .map(|n| LogSource::Command(scalar::texts(ledger, n, "command")));
    let journald = table.text("journald").map(LogSource::Journald);
    let kubernetes = table.text("kubernetes").map(LogSource::Kubernetes);
    table.close(&[]);
    let mut given: Vec<LogSource> = [file, docker, command, journald, kubernetes]
        .into_iter()
        .flatten()
        .collect();
    if given.len() > 1 {
        ledger.error(
            node.span(),
            "a log has one source",
            format!("{} sources", given.len()),
            Some("keep one of `file`, `docker`, `command`, `journald`, `kubernetes`".into()),
        );
    }
    if given.is_empty() && ledger.errors() == before {
        ledger.error(node.span(), "a log has a source", "none named", Some("write `{ file = \"…\" }`, `{ docker = \"…\" }`, `{ command = [\"…\"] }`, `{ journald = \"…\" }` or `{ kubernetes = \"…\" }`".into()));
    }
    given.pop()
}
