//! sekimon (席門), the acceptance gate for LLM serving builds: the map of the house.
//!
//! # The one idea
//!
//! A figure belongs to a window, and a window carries its proof. While a window is open, witnesses stand beside the
//! traffic: the log between two byte offsets, the counters at both ends, the processes that own the port, the clocks of
//! the GPUs. No verdict on a figure is better than the proof of its path in the same windows.
//!
//! ```text
//! gates/*.toml ─ spec ─▶ Gate ─ plan ─▶ Plan ─ run (drive + witness) ─▶ evidence on disk ─ judge ─▶ Findings ─ report ─▶ files
//! ```
//!
//! A run is judged from what was written down, never from memory: `sekimon run` writes its evidence, closes it, reads it
//! back and judges that; `sekimon judge` does the second half alone and gives the same bytes.
//!
//! # The rooms, left to right
//!
//! A room imports only from rooms before it (`tests/tidy.rs` holds this).
//!
//! | room | what lives there | touches the world |
//! |---|---|---|
//! | [`stats`] | numbers only: bounds, intervals, sequential looks | no |
//! | [`workload`] | what is asked of a seat: prompts, haystacks, needles, corpora | no |
//! | [`quality`] | what an answer says of itself: needle classes, loops, logprob guards | no |
//! | [`dialect`] | one file per server family: how it spells counters, lines, requests | no |
//! | [`spec`] | gate file → [`spec::gate::Gate`], every fault at once | no |
//! | [`evidence`] | windows, exchanges, boots, and the pure readers of scrapes and logs | no |
//! | [`plan`] | Gate → ordered boots and windows | no |
//! | [`judge`] | evidence → findings: proof of path, bounds, preconditions | no |
//! | [`check`] | one file per kind of check: keys, windows, conclusions | no |
//! | [`archive`] | run directories: the journal and its reading | its own files |
//! | [`report`] | one document, one outline, many printers | no |
//! | [`drill`] | takes each proof away in recorded evidence and judges again | no |
//! | [`drive`] | HTTP: client, stream reader, load, logprobs | yes |
//! | [`witness`] | log, processes, libraries, packs, GPUs, containers | yes |
//! | [`seat`] | starting and ending builds | yes |
//! | [`run`] | the conductor: walks a plan and writes down what happens | yes |
//! | [`sim`] | the embedded seat, a server of its own with faults to switch on | yes |
//! | [`cli`] | one file per command; the only room that prints | yes |
//!
//! The order differs from the order in which data walks: a room must know the words it speaks in, so the words
//! (`evidence`) stand left of those who speak them (`drive`, `witness`), and `judge` stands left of both because it needs
//! neither.
//!
//! # How to add
//!
//! - a **dialect**: one file in `dialect/` with one `pub static`, its row in [`dialect::DIALECTS`], its recordings in
//!   `fixtures/servers/`;
//! - a **check**: one file in `check/` with one unit struct that implements [`spec::kind::Kind`] (what it declares),
//!   [`plan::Planned`] (which windows it wants) and [`judge::sample::Concludes`] (what it concludes), and its row in
//!   [`check::KINDS`]; gate reader, schema, `kinds` table and plan follow from the declaration;
//! - a **printer**: one file in `report/` and its row in [`report::PRINTERS`];
//! - a **fault** of the embedded seat: one variant and its row in [`sim::fault::FAULTS`];
//! - a **witness**: one file in `witness/` for the reading and one in `evidence/` for what was read.
//!
//! # What we did not do, and why
//!
//! - No weighted scores: a mean hides a failed check. A gate passes only when every check passes.
//! - No expression language in gates: a limit is one line that an approver can read aloud.
//! - No retokenising of answers: tokens are what `usage` bills, held against the server's own counters.
//! - No outlier is dropped by its value; a repeat is void only for a recorded cause.

pub mod archive;
pub mod check;
pub mod cli;
pub mod dialect;
pub mod drill;
pub mod drive;
pub mod evidence;
pub mod judge;
pub mod plan;
pub mod quality;
pub mod report;
pub mod run;
pub mod seat;
pub mod sim;
pub mod spec;
pub mod stats;
pub mod witness;
pub mod workload;
