//! JSON Schema of `report.json`, from the types that write it.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::document::{Report, SCHEMA};

/// The schema (draft 2020-12) of every report of this version, older fields never taken away.
///
/// Unknown keys are allowed: versions to come only add.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Report>()
        .to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), json!(SCHEMA));
        root.insert("description".into(), json!("Report of a sekimon gate run."));
    }
    if let Some(Value::Object(name)) = schema.pointer_mut("/properties/schema") {
        name.insert("const".into(), json!(SCHEMA));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{json, sample};

    fn faults(document: &Value) -> Vec<String> {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        validator
            .iter_errors(document)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect()
    }

    fn written(report: &Report) -> Value {
        serde_json::from_str(&json::bytes(report)).unwrap()
    }

    #[test]
    fn every_report_that_is_written_is_valid() {
        for report in [
            sample::mixed(),
            sample::passing(),
            sample::empty(),
            sample::hostile(),
        ] {
            assert_eq!(faults(&written(&report)), Vec::<String>::new());
        }
    }

    #[test]
    fn a_report_of_a_later_version_with_more_in_it_is_valid() {
        let mut document = written(&sample::mixed());
        document["checks"][0]["figures"][0]["later"] = json!(1);
        assert_eq!(faults(&document), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_report_is_refused() {
        for (pointer, wrong) in [
            ("/verdict", json!("green")),
            ("/schema", json!("sekimon.report/2")),
            ("/checks/0/figures/0/interval", json!([1.0])),
            ("/checks/0/figures/0/n", json!(-1)),
            ("/windows/0/seconds", Value::Null),
            ("/not_run", Value::Null),
        ] {
            let mut document = written(&sample::mixed());
            *document.pointer_mut(pointer).expect(pointer) = wrong;
            assert!(!faults(&document).is_empty(), "{pointer}");
        }
        let mut document = written(&sample::mixed());
        document.as_object_mut().unwrap().remove("conditions");
        assert!(!faults(&document).is_empty());
    }
}
