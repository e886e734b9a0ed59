//! What a server needs to find in a model pack when it starts again, from the pack's own small files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::pack_fault::PackFault;

/// What is known of a pack for this question.
#[derive(Debug, Clone, Default)]
pub struct PackView {
    /// Every path that leads to a file, with its size in bytes.
    pub files: BTreeMap<String, u64>,
    /// The text of the JSON files at the pack's top, by name; absent from here if unreadable.
    pub texts: BTreeMap<String, String>,
    /// The headers of the safetensors files, by name: the length that the header declares, or why it could not be read.
    pub safetensors: BTreeMap<String, Result<u64, String>>,
}

/// Sets of files any one of which is a whole tokenizer.
const TOKENIZERS: &[&[&str]] = &[
    &["tokenizer.json"],
    &["tokenizer.model"],
    &["tekken.json"],
    &["vocab.json", "merges.txt"],
    &["spiece.model"],
    &["vocab.txt"],
    &["tiktoken.model"],
    &["qwen.tiktoken"],
];

/// Keys of `tokenizer_config.json` whose value names a file of the pack.
const TOKENIZER_FILE_KEYS: &[&str] = &["vocab_file", "merges_file", "tokenizer_file"];

/// Endings of files that hold weights.
const WEIGHTS: &[&str] = &[".safetensors", ".bin", ".gguf", ".pt", ".pth"];

/// What a restart would not find, or could not use. A pack of GGUF files only needs them alone.
pub fn restart_faults(pack: &PackView) -> Vec<PackFault> {
    let mut faults = weights(pack);
    if pack.files.keys().any(|path| path.ends_with(".gguf")) && !pack.has("config.json") {
        return faults;
    }
    match pack.json("config.json") {
        Ok(Some(config)) => faults.extend(remote_code(pack, &config, "config.json")),
        Ok(None) => faults.push(needed(
            "config.json",
            "a server reads the model's form from it",
        )),
        Err(fault) => faults.push(fault),
    }
    faults.extend(tokenizer(pack));
    faults
}

impl PackView {
    fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    fn json(&self, name: &str) -> Result<Option<Value>, PackFault> {
        let Some(text) = self.texts.get(name) else {
            return Ok(None);
        };
        serde_json::from_str(text)
            .map(Some)
            .map_err(|error| PackFault::Unusable {
                path: name.to_owned(),
                why: format!("it is no JSON: {error}"),
            })
    }
}

fn needed(path: &str, because: &str) -> PackFault {
    PackFault::NeededMissing {
        path: path.to_owned(),
        because: because.to_owned(),
    }
}

/// Python files that `auto_map` names: the server runs them with `--trust-remote-code`.
fn remote_code(pack: &PackView, config: &Value, from: &str) -> Vec<PackFault> {
    let Some(map) = config.get("auto_map").and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut modules = BTreeSet::new();
    for value in map.values() {
        let names = match value {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            Value::String(one) => vec![one.as_str()],
            _ => Vec::new(),
        };
        // `other/repository--module.Class` is fetched from elsewhere and cannot be in the pack.
        let local = names.into_iter().filter(|name| !name.contains("--"));
        modules.extend(local.filter_map(|name| name.split('.').next()));
    }
    modules
        .into_iter()
        .map(|module| format!("{module}.py"))
        .filter(|file| !pack.has(file))
        .map(|file| needed(&file, &format!("`auto_map` in `{from}` names it")))
        .collect()
}

fn tokenizer(pack: &PackView) -> Vec<PackFault> {
    let mut faults = Vec::new();
    let whole = |set: &&[&str]| set.iter().all(|file| pack.has(file));
    if !TOKENIZERS.iter().any(whole) {
        faults.push(needed(
            "tokenizer.json",
            "there is no tokenizer of any known form",
        ));
    }
    let config = match pack.json("tokenizer_config.json") {
        Ok(Some(config)) => config,
        Ok(None) => return faults,
        Err(fault) => return [faults, vec![fault]].concat(),
    };
    for key in TOKENIZER_FILE_KEYS {
        // An absolute path or a path of another machine is a habit of some savers and is not read by servers.
        let named = config.get(key).and_then(Value::as_str);
        if let Some(file) = named.filter(|f| !f.contains('/') && !pack.has(f)) {
            faults.push(needed(
                file,
                &format!("`{key}` in `tokenizer_config.json` names it"),
            ));
        }
    }
    faults.extend(remote_code(pack, &config, "tokenizer_config.json"));
    faults
}

fn weights(pack: &PackView) -> Vec<PackFault> {
    let mut faults = Vec::new();
    if !pack
        .files
        .keys()
        .any(|path| WEIGHTS.iter().any(|end| path.ends_with(end)))
    {
        faults.push(needed("model.safetensors", "there are no weights"));
    }
    for index in pack.texts.keys().filter(|n| n.ends_with(".index.json")) {
        faults.extend(match pack.json(index) {
            Ok(Some(value)) => shards(pack, &value, index),
            Ok(None) => Vec::new(),
            Err(fault) => vec![fault],
        });
    }
    for (path, declared) in &pack.safetensors {
        let why = match declared {
            Ok(declared) if pack.files.get(path) == Some(declared) => continue,
            Ok(declared) => format!(
                "its header declares {declared} bytes, the file has {}: it was cut or is still being written",
                pack.files.get(path).copied().unwrap_or_default()
            ),
            Err(why) => why.clone(),
        };
        faults.push(PackFault::Unusable {
            path: path.clone(),
            why,
        });
    }
    faults
}

/// Every shard that an index names must be there and hold something.
fn shards(pack: &PackView, index: &Value, name: &str) -> Vec<PackFault> {
    let Some(map) = index.get("weight_map").and_then(Value::as_object) else {
        return vec![PackFault::Unusable {
            path: name.to_owned(),
            why: "it has no `weight_map`".to_owned(),
        }];
    };
    let named: BTreeSet<&str> = map.values().filter_map(Value::as_str).collect();
    let fault = |shard: &str| match pack.files.get(shard) {
        None => Some(needed(shard, &format!("`{name}` lists it"))),
        Some(0) => Some(PackFault::Unusable {
            path: shard.to_owned(),
            why: "it is empty".to_owned(),
        }),
        Some(_) => None,
    };
    named.into_iter().filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(files: &[&str], texts: &[(&str, &str)]) -> PackView {
        let own = |t: &&str| (*t).to_owned();
        PackView {
            files: files
                .iter()
                .map(own)
                .chain(texts.iter().map(|(n, _)| (*n).to_owned()))
                .map(|f| (f, 10))
                .collect(),
            texts: texts
                .iter()
                .map(|(n, t)| ((*n).to_owned(), (*t).to_owned()))
                .collect(),
            safetensors: BTreeMap::new(),
        }
    }

    fn missing(pack: &PackView) -> Vec<String> {
        restart_faults(pack)
            .into_iter()
            .map(|fault| match fault {
                PackFault::NeededMissing { path, .. } | PackFault::Unusable { path, .. } => path,
                other => panic!("{other}"),
            })
            .collect()
    }

    const INDEX: &str = r#"{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}"#;

    #[test]
    fn a_whole_pack_would_start() {
        let whole = pack(
            &["tokenizer.json", "m-1.safetensors", "m-2.safetensors"],
            &[
                ("config.json", "{}"),
                ("model.safetensors.index.json", INDEX),
            ],
        );
        assert_eq!(restart_faults(&whole), vec![]);
        assert_eq!(restart_faults(&pack(&["model.gguf"], &[])), vec![]);
    }

    #[test]
    fn a_shard_that_the_index_lists_is_needed() {
        let cut = pack(
            &["tokenizer.json", "m-1.safetensors"],
            &[
                ("config.json", "{}"),
                ("model.safetensors.index.json", INDEX),
            ],
        );
        assert_eq!(missing(&cut), ["m-2.safetensors"]);
    }

    #[test]
    fn an_empty_folder_lacks_everything() {
        assert_eq!(
            missing(&PackView::default()),
            ["model.safetensors", "config.json", "tokenizer.json"]
        );
    }

    #[test]
    fn code_and_tokenizer_files_that_are_named_are_needed() {
        let named = pack(
            &["model.safetensors", "tokenizer.model"],
            &[
                (
                    "config.json",
                    r#"{"auto_map": {"AutoConfig": "configuration_x.XConfig"}}"#,
                ),
                ("tokenizer_config.json", r#"{"vocab_file": "vocab.txt"}"#),
            ],
        );
        assert_eq!(missing(&named), ["configuration_x.py", "vocab.txt"]);
    }

    #[test]
    fn a_cut_safetensors_file_is_told() {
        let mut cut = pack(
            &["tokenizer.json", "model.safetensors"],
            &[("config.json", "{}")],
        );
        cut.safetensors.insert("model.safetensors".into(), Ok(10));
        assert_eq!(restart_faults(&cut), vec![]);
        cut.safetensors.insert("model.safetensors".into(), Ok(11));
        assert_eq!(missing(&cut), ["model.safetensors"]);
    }

    #[test]
    fn a_damaged_config_is_told() {
        let damaged = pack(
            &["tokenizer.json", "model.safetensors"],
            &[("config.json", "{")],
        );
        assert_eq!(missing(&damaged), ["config.json"]);
    }
}
