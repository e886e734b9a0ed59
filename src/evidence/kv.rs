//! The KV window that a log announces, and the arithmetic that tells what is really stored in it.

use regex::{Captures, Regex};

use super::log::{LogReader, excerpt};

/// How far tokens × bytes may be from the memory told: blocks are rounded, and logs round to two decimals.
pub const KV_TOLERANCE: f64 = 0.02;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// What a log says of its KV cache.
#[derive(Debug, Clone, PartialEq)]
pub struct KvWindow {
    /// Tokens that fit; where several ranks or engines tell different ones, the fewest.
    pub tokens: u64,
    /// Memory in GiB, where told: of one rank.
    pub gib: Option<f64>,
    /// Requests of full length that fit at once, where told.
    pub concurrency: Option<f64>,
    /// Element type by the log's word, which is a promise and no fact.
    pub dtype: Option<String>,
    /// The message that told the tokens.
    pub line: String,
}

/// The KV window of one boot's log; absent if no line tells its tokens.
///
/// A dialect's lines are tried in order: the first that tells tokens counts, the others fill in what it leaves out.
pub fn kv_window(reader: &LogReader, log: &[u8]) -> Option<KvWindow> {
    let lines = reader.dialect().kv;
    let patterns: Vec<&str> = lines.iter().map(|l| l.pattern).collect();
    let expressions: Vec<Regex> = patterns.iter().filter_map(|p| Regex::new(p).ok()).collect();
    let mut told: Vec<Told> = vec![Told::default(); expressions.len()];
    // A byte slice does not fail to be read.
    let _ = reader.read_matching(log, &patterns, |line| {
        for (at, expression) in expressions.iter().enumerate() {
            if let Some(found) = expression.captures(line.message) {
                told[at].add(&found, lines[at].block_size, line.message);
            }
        }
    });
    let first = told
        .iter()
        .find_map(|t| t.tokens.clone().map(|tokens| (tokens, t)))?;
    let ((tokens, line), by) = first;
    let or_any =
        |own: Option<f64>, of: fn(&Told) -> Option<f64>| own.or_else(|| told.iter().find_map(of));
    Some(KvWindow {
        tokens,
        gib: or_any(by.gib, |t| t.gib),
        concurrency: or_any(by.concurrency, |t| t.concurrency),
        dtype: by
            .dtype
            .clone()
            .or_else(|| told.iter().find_map(|t| t.dtype.clone())),
        line,
    })
}

/// What the lines of one pattern told; the least of each.
#[derive(Debug, Clone, Default)]
struct Told {
    tokens: Option<(u64, String)>,
    gib: Option<f64>,
    concurrency: Option<f64>,
    dtype: Option<String>,
}

impl Told {
    fn add(&mut self, found: &Captures<'_>, block_size: Option<u64>, message: &str) {
        let whole = |group| number(found, group).map(|n| n as u64);
        let blocks = || Some(whole("blocks")?.saturating_mul(block_size?));
        let tokens = whole("tokens")
            .or_else(blocks)
            .map(|t| t.saturating_mul(whole("slots").unwrap_or(1)));
        if let Some(tokens) = tokens
            && self
                .tokens
                .as_ref()
                .is_none_or(|(least, _)| tokens < *least)
        {
            self.tokens = Some((tokens, excerpt(message, 300)));
        }
        let gib = number(found, "gib").or_else(|| Some(number(found, "mib")? / 1024.0));
        self.gib = least(self.gib, gib);
        self.concurrency = least(self.concurrency, number(found, "concurrency"));
        if let Some(dtype) = found.name("dtype") {
            self.dtype = Some(dtype.as_str().to_owned());
        }
    }
}

fn number(found: &Captures<'_>, group: &str) -> Option<f64> {
    found.name(group)?.as_str().replace(',', "").parse().ok()
}

fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// What decides how many bytes a token takes in the cache of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvGeometry {
    /// Layers with a cache on one rank, a draft model's included: all of them, over the pipeline's stages.
    pub layers: u32,
    /// What a layer keeps.
    pub attention: KvAttention,
    /// Tensor-parallel size.
    pub tp: u32,
}

/// What a layer keeps of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvAttention {
    /// A key and a value for each KV head; heads are shared out over the ranks, and copied where there are too few.
    Grouped {
        /// KV heads.
        kv_heads: u32,
        /// Elements of a head.
        head_dim: u32,
    },
    /// One latent vector, whole on every rank (MLA).
    Latent {
        /// Elements of the latent.
        kv_lora_rank: u32,
        /// Elements of the rotary part.
        rope_dim: u32,
    },
}

/// What kind of number is stored, by its width: the arithmetic cannot tell two types of one width apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvDtype {
    /// 32 bits.
    Float32,
    /// 16 bits: bf16 or f16.
    Half,
    /// 8 bits: fp8 or int8.
    Eight,
    /// 4 bits.
    Four,
}

/// The widths that are tried.
const DTYPES: [KvDtype; 4] = [
    KvDtype::Float32,
    KvDtype::Half,
    KvDtype::Eight,
    KvDtype::Four,
];

/// What the arithmetic says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KvIdentity {
    /// Tokens × bytes are the memory within [`KV_TOLERANCE`].
    Stored(KvDtype),
    /// No width fits: scales beside the numbers, other layers, or another model.
    Unexplained {
        /// Bytes an element would have.
        bytes_per_element: f64,
    },
}

impl KvDtype {
    /// Bytes of one element.
    pub fn bytes(self) -> f64 {
        match self {
            KvDtype::Float32 => 4.0,
            KvDtype::Half => 2.0,
            KvDtype::Eight => 1.0,
            KvDtype::Four => 0.5,
        }
    }

    /// The word that gates use.
    pub fn word(self) -> &'static str {
        match self {
            KvDtype::Float32 => "f32",
            KvDtype::Half => "bf16_or_f16",
            KvDtype::Eight => "fp8_or_int8",
            KvDtype::Four => "int4",
        }
    }

    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            KvDtype::Float32 => "f32",
            KvDtype::Half => "bf16/f16",
            KvDtype::Eight => "fp8/int8",
            KvDtype::Four => "4 bits",
        }
    }
}

impl KvGeometry {
    /// Elements that one token takes on one rank.
    pub fn elements_per_token(&self) -> f64 {
        let a_layer = match self.attention {
            KvAttention::Grouped { kv_heads, head_dim } => {
                2.0 * f64::from(kv_heads.div_ceil(self.tp.max(1))) * f64::from(head_dim)
            }
            KvAttention::Latent {
                kv_lora_rank,
                rope_dim,
            } => f64::from(kv_lora_rank) + f64::from(rope_dim),
        };
        a_layer * f64::from(self.layers)
    }

    /// What is stored in a cache of so many tokens that takes so much memory on one rank; absent for empty input.
    pub fn identify(&self, tokens: u64, gib: f64) -> Option<KvIdentity> {
        let elements = self.elements_per_token() * tokens as f64;
        if elements <= 0.0 || gib.is_nan() || gib <= 0.0 {
            return None;
        }
        let bytes_per_element = gib * GIB / elements;
        let fits =
            |dtype: &KvDtype| (bytes_per_element / dtype.bytes() - 1.0).abs() <= KV_TOLERANCE;
        Some(match DTYPES.into_iter().find(fits) {
            Some(dtype) => KvIdentity::Stored(dtype),
            None => KvIdentity::Unexplained { bytes_per_element },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect;

    fn window(id: &str, log: &str) -> Option<KvWindow> {
        kv_window(&LogReader::new(dialect::named(id).unwrap()), log.as_bytes())
    }

    #[test]
    fn each_era_of_vllm_tells_its_window() {
        let prefix = "(EngineCore pid=1) INFO 12-01 05:41:23 [kv_cache_utils.py:1147] ";
        let log = format!(
            "{prefix}GPU KV cache size: 415,872 tokens, Maximum concurrency for 8,192 tokens per request: 50.77x\n\
             (Worker_TP0 pid=2) INFO 12-01 05:41:23 [gpu_worker.py:773] Available KV cache memory: 12.34 GiB\n\
             (Worker_TP1 pid=3) INFO 12-01 05:41:23 [gpu_worker.py:773] Available KV cache memory: 12.30 GiB\n"
        );
        let seen = window("vllm", &log).unwrap();
        assert_eq!(
            (seen.tokens, seen.gib, seen.concurrency),
            (415_872, Some(12.30), Some(50.77))
        );
        let log = format!(
            "{prefix}GPU KV cache size: 396,656 tokens\n{prefix}Maximum concurrency for 389,120 tokens per request: 1.02x\n"
        );
        let seen = window("vllm", &log).unwrap();
        assert_eq!(
            (seen.tokens, seen.gib, seen.concurrency),
            (396_656, None, Some(1.02))
        );
        let seen = window(
            "vllm",
            "INFO 12-01 05:41:23 [e.py:1] # GPU blocks: 1000, # CPU blocks: 512\n",
        )
        .unwrap();
        assert_eq!(seen.tokens, 16_000);
        assert_eq!(
            window("vllm", "INFO 12-01 05:41:23 [e.py:1] nothing\n"),
            None
        );
    }

    #[test]
    fn llama_cpp_tells_cells_memory_and_type() {
        let log = "llama_kv_cache: size =  720.00 MiB (  8192 cells,  30 layers,  4/4 seqs), K (f16):  360.00 MiB, V (f16):  360.00 MiB\n";
        let seen = window("llamacpp", log).unwrap();
        assert_eq!(
            (seen.tokens, seen.gib, seen.dtype.as_deref()),
            (8192, Some(720.0 / 1024.0), Some("f16"))
        );
    }

    #[test]
    fn the_fewest_tokens_of_several_engines_count() {
        let log = "(EngineCore_DP0 pid=1) INFO 12-01 05:41:23 [k.py:1] GPU KV cache size: 500 tokens\n\
                   (EngineCore_DP1 pid=2) INFO 12-01 05:41:23 [k.py:1] GPU KV cache size: 400 tokens\n";
        assert_eq!(window("vllm", log).unwrap().tokens, 400);
    }

    #[test]
    fn memory_tells_the_stored_type_whatever_the_log_promises() {
        // SmolLM2-135M as recorded: 30 layers, 3 KV heads of 64, 46,592 tokens in 1 GiB.
        let attention = KvAttention::Grouped {
            kv_heads: 3,
            head_dim: 64,
        };
        let smol = KvGeometry {
            layers: 30,
            attention,
            tp: 1,
        };
        assert_eq!(
            smol.identify(46_592, 1.0),
            Some(KvIdentity::Stored(KvDtype::Half))
        );
        // The same model as its own draft keeps two caches: half the tokens.
        let both = KvGeometry { layers: 60, ..smol };
        assert_eq!(
            both.identify(23_296, 1.0),
            Some(KvIdentity::Stored(KvDtype::Half))
        );
        // fp8 was promised and 16 bits are stored: the window did not double.
        assert_ne!(
            smol.identify(46_592, 1.0),
            Some(KvIdentity::Stored(KvDtype::Eight))
        );
        assert_eq!(
            smol.identify(93_184, 1.0),
            Some(KvIdentity::Stored(KvDtype::Eight))
        );
        assert!(matches!(
            smol.identify(60_000, 1.0),
            Some(KvIdentity::Unexplained { .. })
        ));
        assert_eq!(smol.identify(0, 1.0), None);
    }

    #[test]
    fn heads_are_copied_where_ranks_are_many_and_latents_are_whole() {
        let heads = |tp| KvGeometry {
            layers: 1,
            attention: KvAttention::Grouped {
                kv_heads: 8,
                head_dim: 128,
            },
            tp,
        };
        assert_eq!(heads(4).elements_per_token(), 512.0);
        assert_eq!(heads(16).elements_per_token(), 256.0);
        let latent = KvAttention::Latent {
            kv_lora_rank: 512,
            rope_dim: 64,
        };
        assert_eq!(
            KvGeometry {
                layers: 61,
                attention: latent,
                tp: 8
            }
            .elements_per_token(),
            35_136.0
        );
    }
}
