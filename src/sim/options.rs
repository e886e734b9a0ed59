//! How an embedded seat is set up.

use std::path::PathBuf;

use super::fault::Fault;

/// The options of one embedded seat.
#[derive(Debug, Clone)]
pub struct Options {
    /// Port on 127.0.0.1; 0: a free one.
    pub port: u16,
    /// Name of the model.
    pub model: String,
    /// Code path.
    pub path: Path,
    /// Ranks that it claims to have.
    pub ranks: u32,
    /// Draft tokens a step; absent: no speculation.
    pub draft: Option<u32>,
    /// Log file; absent: standard output.
    pub log: Option<PathBuf>,
    /// Milliseconds of one decode step; absent: the path's own.
    pub step_ms: Option<f64>,
    /// Prefill rate in tokens per millisecond.
    pub prefill_per_ms: f64,
    /// Longest prompt plus answer in tokens.
    pub max_model_len: u64,
    /// KV window in tokens.
    pub kv_tokens: u64,
    /// Sequences decoded at once.
    pub max_num_seqs: usize,
    /// Faults.
    pub faults: Vec<Fault>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            model: "sekimon-ngram".into(),
            path: Path::Lna2,
            ranks: 1,
            draft: Some(3),
            log: None,
            step_ms: None,
            prefill_per_ms: 150.0,
            max_model_len: 389_120,
            kv_tokens: 395_069,
            max_num_seqs: 8,
            faults: Vec::new(),
        }
    }
}

/// A code path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The new kernel.
    Lna2,
    /// The old one.
    Exllamav3,
}

impl Path {
    /// Name in counters and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lna2 => "lna2",
            Self::Exllamav3 => "exllamav3",
        }
    }

    /// Milliseconds of one decode step: a quarter apart, like the two kernels on the certified seat (27.46 and 21.03 ms),
    /// and five times as fast so that a first gate takes a minute.
    pub fn step_ms(self) -> f64 {
        match self {
            Self::Lna2 => 4.2,
            Self::Exllamav3 => 5.5,
        }
    }
}

impl Options {
    /// Whether a fault is switched on.
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// The path that really runs in decode.
    pub(super) fn taken(&self) -> Path {
        let falls = self.has(Fault::SilentFallback) || self.has(Fault::ActiveButDeclined);
        if falls { Path::Exllamav3 } else { self.path }
    }

    /// Draft tokens a step that really are drafted.
    pub(super) fn drafted(&self) -> Option<u32> {
        self.draft.filter(|k| *k > 0 && !self.has(Fault::SpecOff))
    }

    /// What the seat calls its configuration, as vLLM does: a digest of what it was asked for.
    pub(super) fn fingerprint(&self) -> String {
        let asked = format!(
            "{} {} {:?} {}",
            self.model, self.ranks, self.draft, self.max_model_len
        );
        let digest = asked.bytes().fold(0x811C_9DC5_u32, |h, b| {
            (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
        });
        format!("sekimon-sim-{digest:08x}")
    }

    /// The KV window as told.
    pub(super) fn kv_window(&self) -> u64 {
        if self.has(Fault::KvSmall) {
            self.kv_tokens * 4 / 5
        } else {
            self.kv_tokens
        }
    }
}
