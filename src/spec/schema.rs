//! JSON Schema of the gate file, made from the same declarations as the reader.

use serde_json::{Map, Value, json};

use super::kind::{Default, Key, Kind, Takes};

/// The schema (draft-07, which the TOML language servers take).
pub fn schema(kinds: &[&'static dyn Kind]) -> Value {
    let checks: Vec<Value> = kinds.iter().map(|k| check(*k)).collect();
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let log = json!({"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1, "properties": {
        "file": text, "docker": text, "command": texts, "journald": text, "kubernetes": text}});
    let one_or_many = |item: Value| json!({"anyOf": [item, {"type": "array", "items": item}]});
    let announced = json!({"type": "object", "additionalProperties": false, "required": ["line"], "properties": {
        "line": text, "when": {"enum": ["since boot", "window"]}, "matches": texts, "never": texts,
        "on": {"anyOf": [{"enum": ["every rank", "every node", "once"]}, {"type": "object", "additionalProperties": false, "properties": {
            "exactly": {"type": "integer", "minimum": 1}, "at_least": {"type": "integer", "minimum": 1}}}]}}});
    let counter = json!({"type": "object", "additionalProperties": false, "required": ["counter"], "properties": {
        "counter": text, "rank_label": text, "at_least": {"type": "number"}}});
    let resident = json!({"type": "object", "additionalProperties": false, "properties": {
        "library": text, "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "env": {"type": "object", "additionalProperties": text}, "unset": texts}});
    let refuted = json!({"type": "object", "additionalProperties": false, "required": ["line"], "properties": {
        "line": text, "except": text, "when": {"enum": ["since boot", "window"]}, "matches": texts, "never": texts}});
    let size = json!({"type": "integer", "minimum": 1});
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "sekimon gate",
        "type": "object",
        "additionalProperties": false,
        "required": ["title", "seat", "check"],
        "properties": {
            "title": text,
            "seat": {"type": "object", "additionalProperties": false, "required": ["url"], "properties": {
                "url": {"type": "string", "pattern": "^https?://"}, "model": text, "dialect": text,
                "ranks": {"anyOf": [size, {"type": "object", "additionalProperties": false, "properties": {"tp": size, "pp": size, "dp": size, "nodes": size}}]},
                "log": log, "metrics": texts, "api_key_env": text, "restore": text, "together": {"type": "boolean"},
                "gpus": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "clock_floor": {"type": "string", "pattern": "MHz$"}}},
            "builds": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": false, "properties": {
                "like": text, "start": texts, "stop": texts, "env": {"type": "object", "additionalProperties": text},
                "cwd": text, "ready": text, "url": text, "log": log, "path": text}}},
            "paths": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": false, "properties": {
                "preset": one_or_many(text.clone()), "announced": one_or_many(announced), "resident": one_or_many(resident),
                "moved": one_or_many(counter.clone()), "still": one_or_many(counter), "refuted": one_or_many(refuted)}}},
            "runs": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": false, "required": ["report"],
                "properties": {"report": text, "build": text, "sha256": text}}},
            "check": {"type": "array", "minItems": 1, "items": {"oneOf": checks}},
        }
    })
}

fn check(kind: &dyn Kind) -> Value {
    let mut properties = Map::new();
    let mut required = vec![Value::from("kind")];
    properties.insert(
        "kind".into(),
        json!({"const": kind.name(), "description": kind.about()}),
    );
    let limit =
        json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]});
    let figures: Map<String, Value> = kind
        .figures()
        .iter()
        .map(|f| {
            let mut limit = limit.clone();
            limit["description"] = format!("{} [{}]", f.about, f.unit).into();
            (f.name.to_owned(), limit)
        })
        .collect();
    let cell = json!({"type": "object", "additionalProperties": false, "properties": figures});
    for (name, schema) in [
        ("id", json!({"type": "string"})),
        (
            "builds",
            json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
        ),
        ("path", json!({"type": "string"})),
        (
            "repeats",
            json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "object", "additionalProperties": false, "required": ["min", "max"],
            "properties": {"min": {"type": "integer", "minimum": 1}, "max": {"type": "integer", "minimum": 1}}}]}),
        ),
        ("alpha", json!({"type": ["number", "string"]})),
        ("max_swing", json!({"type": ["number", "string"]})),
        (
            "expect",
            json!({"type": "object", "properties": figures, "additionalProperties": cell}),
        ),
    ] {
        properties.insert(name.into(), schema);
    }
    for key in kind.keys() {
        if matches!(key.default, Default::Required) {
            required.push(key.name.into());
        }
        properties.insert(key.name.into(), key_schema(key));
    }
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

fn key_schema(key: &Key) -> Value {
    let mut schema = match key.takes {
        Takes::Count(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Takes::Number(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
        Takes::Fraction => json!({"type": ["number", "string"]}),
        Takes::Flag => json!({"type": "boolean"}),
        Takes::Text | Takes::Time => json!({"type": "string"}),
        Takes::Word(words) => json!({"enum": words}),
        Takes::Texts => json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
        Takes::Words(words) => json!({"type": "array", "minItems": 1, "items": {"enum": words}}),
        Takes::Counts(least, most) => {
            json!({"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": least, "maximum": most}})
        }
        Takes::Rows(columns) => {
            let properties: Map<String, Value> = columns
                .iter()
                .map(|c| (c.name.to_owned(), key_schema(c)))
                .collect();
            let required: Vec<&str> = columns
                .iter()
                .filter(|c| matches!(c.default, Default::Required))
                .map(|c| c.name)
                .collect();
            json!({"type": "array", "minItems": 1, "items":
                {"type": "object", "additionalProperties": false, "required": required, "properties": properties}})
        }
    };
    schema["description"] = key.about.into();
    // A time stands in the gate with its unit; every other default stands as it is.
    let default = match (key.default, key.takes) {
        (Default::Required | Default::Absent, _) => None,
        (Default::Number(x), Takes::Time) => Some(json!(format!("{x} s"))),
        (Default::Count(n), _) => Some(json!(n)),
        (Default::Number(x), _) => Some(json!(x)),
        (Default::Flag(on), _) => Some(json!(on)),
        (Default::Text(text), _) => Some(json!(text)),
        (Default::Texts(texts), _) => Some(json!(texts)),
        (Default::Counts(counts), _) => Some(json!(counts)),
    };
    if let Some(default) = default {
        schema["default"] = default;
    }
    schema
}
