//! The schema and the table of kinds against the reader.

use serde_json::Value;

use super::kind::ProofNeed;
use super::kinds::table;
use super::schema::schema;
use super::test_kinds::{GOOD, kinds};

fn json(toml: &str) -> Value {
    let table: toml::Table = toml.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&schema(&kinds())).unwrap()
}

#[test]
fn a_good_gate_holds_the_schema() {
    let gate = json(GOOD);
    let faults: Vec<String> = validator()
        .iter_errors(&gate)
        .map(|e| e.to_string())
        .collect();
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn the_schema_is_a_schema() {
    assert!(jsonschema::meta::is_valid(&schema(&kinds())));
}

/// What an editor can see without knowing the other parts of the file.
#[test]
fn a_gate_of_a_wrong_shape_does_not_hold_the_schema() {
    let names = [
        "announced-count",
        "api-key",
        "empty",
        "kind-keys",
        "log",
        "unknown-cell",
        "unknown-key",
        "unknown-kind",
        "unknown-run",
        "url",
        "wrong-type",
    ];
    for name in names {
        let path = format!(
            "{}/fixtures/gates/bad/{name}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let gate = json(&std::fs::read_to_string(path).unwrap());
        assert!(!validator().is_valid(&gate), "{name}");
    }
}

#[test]
fn every_default_in_the_schema_is_one_that_the_schema_takes() {
    let schema = schema(&kinds());
    let mut seen = 0;
    let kinds = schema["properties"]["check"]["items"]["oneOf"]
        .as_array()
        .unwrap();
    for key in kinds
        .iter()
        .flat_map(|k| k["properties"].as_object().unwrap().values())
    {
        if let Some(default) = key.get("default") {
            assert!(jsonschema::is_valid(key, default), "{key}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen} defaults");
}

#[test]
fn the_table_has_types_and_defaults_as_a_gate_writes_them() {
    let table = table(&kinds());
    let names: Vec<&str> = table.iter().map(|row| row.kind).collect();
    assert_eq!(names, ["throughput", "needle", "health"]);
    let needle = &table[1];
    let key = |name: &str| needle.keys.iter().find(|k| k.name == name).unwrap();
    assert_eq!(key("deadline").default.as_deref(), Some("\"900 s\""));
    assert_eq!(key("languages").default.as_deref(), Some("[\"en\"]"));
    assert_eq!(key("languages").takes, "a list of `en`, `ja`");
    assert_eq!(key("tokens").takes, "a whole number from 256 to 10000000");
    assert_eq!(needle.figures[0].words, ["exact", "wrong"]);
    assert_eq!(table[2].proof, ProofNeed::None);
    assert!(!table[2].keys[0].required);
}
