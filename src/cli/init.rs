//! `sekimon init`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{exit, gate_file, print};
use crate::drive::client::{Client, ClientOptions, Secret};
use crate::drive::recognise::Expected;
use crate::evidence::absence::Sighting;
use crate::run::survey::{Survey, survey};

/// Look at a live seat and write a starter gate.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// URL of the seat.
    url: String,
    /// Model to ask for; by default the one that the seat offers.
    #[arg(long)]
    model: Option<String>,
    /// Environment variable that holds the API key.
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// Write the gate here instead of on standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Init {
    /// Looks and writes.
    pub(super) fn go(self) -> ExitCode {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        else {
            return ExitCode::from(exit::INTERNAL);
        };
        let mut options = ClientOptions::new(&self.url);
        options.api_key = self
            .api_key_env
            .as_ref()
            .and_then(|name| std::env::var(name).ok())
            .filter(|k| !k.is_empty())
            .map(Secret::new);
        let client = match Client::new(options) {
            Ok(client) => client,
            Err(fault) => {
                print::message(&format!("error: {fault}"));
                return ExitCode::from(exit::USAGE);
            }
        };
        // The witnesses want a gate for the libraries that its paths name; a starter gate names none yet.
        let Ok(empty) = gate_file::parse("init", "init", EMPTY) else {
            return ExitCode::from(exit::INTERNAL);
        };
        let expected = Expected {
            dialect: None,
            model: self.model.clone(),
        };
        match runtime.block_on(survey(&client, &expected, &empty)) {
            Ok(survey) => self.write(&survey),
            Err(fault) => {
                print::message(&format!("error: {fault}"));
                ExitCode::from(exit::UNREACHABLE)
            }
        }
    }

    fn write(&self, survey: &Survey) -> ExitCode {
        print::message(&account(survey));
        let gate = starter(self, survey);
        match &self.out {
            None => print::data(&gate),
            Some(path) => {
                if let Err(cause) = std::fs::write(path, &gate) {
                    print::message(&format!(
                        "error: cannot write `{}`: {cause}",
                        path.display()
                    ));
                    return ExitCode::from(exit::USAGE);
                }
                print::message(&format!(
                    "wrote {}; look at it with `sekimon plan {}`",
                    path.display(),
                    path.display()
                ));
            }
        }
        ExitCode::SUCCESS
    }
}

const EMPTY: &str =
    "title = \"init\"\n[seat]\nurl = \"http://127.0.0.1:1\"\n[[check]]\nkind = \"health\"\n";

/// What the seat can give, and what would give more.
fn account(survey: &Survey) -> String {
    let mut text = String::new();
    let told = &survey.identity;
    let _ = writeln!(
        text,
        "{} {} serves `{}`{}",
        survey.dialect.name,
        told.version.as_deref().unwrap_or("(version not told)"),
        told.model,
        told.max_model_len
            .map_or_else(String::new, |n| format!(", context {n} tokens")),
    );
    let mut row = |name: &str, state: Result<String, String>| {
        let (mark, says) = match state {
            Ok(says) => ("yes", says),
            Err(says) => ("no ", says),
        };
        let _ = writeln!(text, "  {mark}  {name:<22} {says}");
    };
    row(
        "counters",
        survey
            .metrics
            .as_ref()
            .map(|m| format!("{} series", m.len()))
            .map_err(Clone::clone),
    );
    row(
        "accept length",
        survey
            .drafts
            .map(|name| format!("by {name}"))
            .ok_or("no draft counter: speculation is off, or not counted".into()),
    );
    row(
        "perplexity",
        survey
            .logprobs
            .as_ref()
            .map(|r| format!("prompt logprobs by {r:?}"))
            .map_err(Clone::clone),
    );
    row(
        "exact prompt length",
        survey
            .dialect
            .requests
            .tokenize
            .map(|t| format!("by {}", t.path))
            .ok_or("no tokenizer route".into()),
    );
    row(
        "processes",
        match &survey.residents.set {
            Sighting::Seen { value } => Ok(format!(
                "{} processes, {} that compute",
                value.processes.len(),
                value.computing().len()
            )),
            Sighting::Absent(absent) => Err(format!("{}; {}", absent.why, absent.mend)),
        },
    );
    let read = survey
        .residents
        .each
        .iter()
        .filter(|r| r.environ.seen().is_some())
        .count();
    let all = survey.residents.each.len();
    row(
        "live environment",
        if all > 0 && read == all {
            Ok(format!("of {read} processes"))
        } else {
            Err(format!(
                "of {read} of {all} processes; run sekimon as the seat's user or as root"
            ))
        },
    );
    row(
        "log",
        survey.log_files.first().map(|f| format!("standard output goes to {f}")).ok_or(
            "not found by itself: name it as { file = … }, { docker = … }, { journald = … } or { command = … }".into(),
        ),
    );
    text
}

fn starter(init: &Init, survey: &Survey) -> String {
    let mut text = String::new();
    let told = &survey.identity;
    let _ = writeln!(
        text,
        "# A starter gate for {} at {}. Every line is meant to be changed.",
        survey.dialect.name, init.url
    );
    let _ = writeln!(
        text,
        "title = {:?}\n\n[seat]\nurl     = {:?}\nmodel   = {:?}\ndialect = {:?}",
        format!("{} at the seat", told.model),
        init.url,
        told.model,
        survey.dialect.id
    );
    let workers = survey
        .residents
        .set
        .seen()
        .map_or(1, |s| s.computing().len().max(1));
    let _ = writeln!(
        text,
        "ranks   = {workers}    # processes that compute; say what the recipe says"
    );
    match survey.log_files.first() {
        Some(file) => {
            let _ = writeln!(text, "log     = {{ file = {file:?} }}");
        }
        None => text.push_str("# log   = { docker = \"NAME\" }   # without a log nothing that a line proves can be proven\n"),
    }
    if let Some(name) = &init.api_key_env {
        let _ = writeln!(text, "api_key_env = {name:?}");
    }
    text.push_str("\n# What proves that the path was taken. Take the line that your build prints on every rank, and the counter that it moves.\n[paths.serving]\n");
    text.push_str("# announced = { line = 'your kernel ACTIVE', on = \"every rank\", matches = [\"your kernel ACTIVE\"], never = [\"your kernel declined\"] }\n");
    if let Some(first) = survey.dialect.log.first_lines.first() {
        let _ = writeln!(
            text,
            "announced = {{ line = {first:?}, on = {{ at_least = 1 }} }}"
        );
    }
    let moved = survey.drafts.or_else(|| {
        let metrics = survey.dialect.metrics.as_ref()?;
        metrics.generation_tokens.first().copied()
    });
    if let (Some(moved), Ok(_)) = (moved, &survey.metrics) {
        let _ = writeln!(text, "moved     = {{ counter = {moved:?} }}");
    }
    let room = told.max_model_len.unwrap_or(8192);
    text.push_str("\n[[check]]\nkind = \"health\"\n");
    if survey.log_files.is_empty() {
        text.push_str("log  = \"none\"   # take this out when the log is named above\n");
    }
    if !survey.dialect.kv.is_empty() {
        text.push_str(
            "\n[[check]]\nkind = \"kv_window\"\n# expect = { kv_tokens = \">= 395_000 tokens\" }\n",
        );
    }
    text.push_str("\n[[check]]\nkind    = \"throughput\"\npath    = \"serving\"\nstreams = [1, 4]\nrepeats = 7\n# expect = { decode_tok_s = \">= 60 tok/s\" }\n");
    if survey.drafts.is_some() {
        text.push_str("\n[[check]]\nkind    = \"accept_length\"\npath    = \"serving\"\nstreams = [1]\n# expect = { accept_length = \">= 1.9\" }\n");
    }
    if survey.dialect.requests.tokenize.is_some() {
        let _ = writeln!(
            text,
            "\n[[check]]\nkind   = \"needle\"\npath   = \"serving\"\ntokens = {}\nexpect = {{ answer = \"is exact\" }}",
            (room * 2 / 3).clamp(512, 166_000)
        );
    }
    if survey.logprobs.is_ok() {
        text.push_str("\n[[check]]   # wants a build with speculation off\nkind    = \"perplexity\"\npath    = \"serving\"\n# expect = { ppl = \"within 0.02 of run:certified\" }\n");
    }
    text
}
