//! The environment that a process really has, and how environments differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::redaction::{EnvValue, EnvVar};

/// Variables that rightly differ between the ranks of one seat.
const PER_RANK: &[&str] = &[
    "RANK",
    "LOCAL_RANK",
    "NODE_RANK",
    "GROUP_RANK",
    "ROLE_RANK",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "VLLM_DP_RANK",
    "VLLM_DP_RANK_LOCAL",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_NODE_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "RAY_JOB_ID",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "LOCAL_WORLD_RANK",
    "SGLANG_DP_RANK",
    "VLLM_HOST_IP",
    "HOSTNAME",
    // vLLM draws these anew for each data-parallel engine.
    "VLLM_DIST_IDENT",
    "VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME",
    // Which cores a rank is bound to.
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "_",
    "SHLVL",
    "PWD",
    "OLDPWD",
];

/// Beginnings of names whose whole family is given to each rank by its launcher or runtime.
const PER_RANK_FAMILIES: &[&str] = &[
    "OMPI_",
    "PMIX_",
    "PMI_",
    "PRTE_",
    "SLURM_",
    "HYDI_",
    "TORCHELASTIC_",
    // The OpenMP runtime of LLVM and Intel registers itself with its process id in the name.
    "__KMP_REGISTERED_LIB_",
];

fn is_per_rank(name: &str) -> bool {
    PER_RANK.contains(&name) || PER_RANK_FAMILIES.iter().any(|f| name.starts_with(f))
}

/// The environment of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environ {
    /// Where it was read.
    pub source: EnvironSource,
    /// Its variables in the order of the process's own list; a name may come twice (the first one counts in libc).
    pub variables: Vec<EnvVar>,
    /// Whether the list was cut at the reader's limit, so that a missing name proves nothing.
    pub cut: bool,
}

/// Where an environment was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EnvironSource {
    /// The process's own list in its memory: what it has now, with everything set since it started.
    Memory {
        /// The mapped file whose symbol points to the list.
        object: String,
    },
    /// `/proc/PID/environ`: what it was started with; later changes are not in it.
    Start {
        /// Why its memory was not read.
        why: String,
    },
}

/// What an environment says of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvLookup<'a> {
    /// It is set to this value.
    Set(&'a EnvValue),
    /// It is not set, and the list is whole and live.
    Unset,
    /// It is not in what was read, but that proves nothing; the text says why.
    Unknown(&'a str),
}

impl Environ {
    /// The value of `name`; a start-time or cut list cannot prove that a name is not set.
    pub fn get(&self, name: &str) -> EnvLookup<'_> {
        if let Some(found) = self.variables.iter().find(|v| v.name == name) {
            return EnvLookup::Set(&found.value);
        }
        match &self.source {
            EnvironSource::Start { why } => EnvLookup::Unknown(why),
            EnvironSource::Memory { .. } if self.cut => {
                EnvLookup::Unknown("the list was cut at the reader's limit")
            }
            EnvironSource::Memory { .. } => EnvLookup::Unset,
        }
    }

    fn map(&self) -> BTreeMap<&str, &EnvValue> {
        // The first of two equal names counts, so later ones must not overwrite it.
        self.variables
            .iter()
            .rev()
            .map(|v| (v.name.as_str(), &v.value))
            .collect()
    }
}

/// How one variable differs between two environments; absent values are not set there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvDifference {
    /// Name.
    pub name: String,
    /// Value in the first (the declared) environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<EnvValue>,
    /// Value in the second (the live) environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<EnvValue>,
}

/// Declared variables that the process does not have, or has with another value.
///
/// What the process has beyond the declared ones is not told: every process has more (`PATH`, `HOME`).
pub fn declared_against_live(declared: &[EnvVar], live: &Environ) -> Vec<EnvDifference> {
    let live = live.map();
    let wanted: BTreeMap<_, _> = declared
        .iter()
        .map(|v| (v.name.as_str(), &v.value))
        .collect();
    wanted
        .into_iter()
        .filter(|(name, value)| live.get(name) != Some(value))
        .map(|(name, value)| EnvDifference {
            name: name.to_owned(),
            declared: Some(value.clone()),
            live: live.get(name).map(|v| (*v).clone()),
        })
        .collect()
}

/// The environment of one rank, for comparison with the others.
#[derive(Debug, Clone, Copy)]
pub struct RankEnviron<'a> {
    /// Process id of the rank's worker.
    pub pid: u32,
    /// Its environment.
    pub environ: &'a Environ,
}

/// A variable that differs between ranks though it should not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankDifference {
    /// Name.
    pub name: String,
    /// Each rank's value, in the order given; absent where it is not set.
    pub values: Vec<RankValue>,
}

/// The value that one rank has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankValue {
    /// Process id of the rank's worker.
    pub pid: u32,
    /// Its value; absent if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<EnvValue>,
}

/// Variables that differ between the ranks, but for those that must (`RANK`, `CUDA_VISIBLE_DEVICES` …), sorted by name.
pub fn between_ranks(ranks: &[RankEnviron<'_>]) -> Vec<RankDifference> {
    let maps: Vec<_> = ranks.iter().map(|r| r.environ.map()).collect();
    let names: BTreeSet<&str> = maps.iter().flat_map(|m| m.keys().copied()).collect();
    names
        .into_iter()
        .filter(|name| !is_per_rank(name))
        .filter(|name| maps.iter().any(|m| m.get(name) != maps[0].get(name)))
        .map(|name| RankDifference {
            name: name.to_owned(),
            values: ranks
                .iter()
                .zip(&maps)
                .map(|(rank, map)| RankValue {
                    pid: rank.pid,
                    value: map.get(name).map(|v| (*v).clone()),
                })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(entries: &[&str]) -> Environ {
        Environ {
            source: EnvironSource::Memory {
                object: "libc.so.6".into(),
            },
            variables: entries.iter().map(|e| EnvVar::parse(e).unwrap()).collect(),
            cut: false,
        }
    }

    #[test]
    fn only_a_whole_live_list_proves_that_a_name_is_unset() {
        let mut environ = live(&["A=1"]);
        assert_eq!(environ.get("B"), EnvLookup::Unset);
        environ.cut = true;
        assert!(matches!(environ.get("B"), EnvLookup::Unknown(_)));
        environ.cut = false;
        environ.source = EnvironSource::Start {
            why: "no right".into(),
        };
        assert_eq!(environ.get("B"), EnvLookup::Unknown("no right"));
        assert!(matches!(environ.get("A"), EnvLookup::Set(_)));
    }

    #[test]
    fn a_variable_that_the_entry_point_dropped_or_changed_is_told() {
        let declared = ["MOE_KERNEL=lna2", "STRICT=1", "SAME=x"].map(|e| EnvVar::parse(e).unwrap());
        let differences =
            declared_against_live(&declared, &live(&["STRICT=0", "SAME=x", "PATH=/bin"]));
        let names: Vec<_> = differences.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["MOE_KERNEL", "STRICT"]);
        assert_eq!(differences[0].live, None);
        assert_eq!(differences[1].live.as_ref().unwrap().text(), Some("0"));
    }

    #[test]
    fn the_first_of_two_equal_names_counts() {
        let declared = [EnvVar::parse("A=1").unwrap()];
        assert_eq!(
            declared_against_live(&declared, &live(&["A=1", "A=2"])),
            vec![]
        );
    }

    #[test]
    fn ranks_may_differ_in_their_rank_and_in_nothing_else() {
        let (a, b) = (
            live(&["RANK=0", "X=1", "__KMP_REGISTERED_LIB_7=x", "PMIX_RANK=0"]),
            live(&["RANK=1", "X=1", "__KMP_REGISTERED_LIB_8=x", "Y=2"]),
        );
        let ranks = [
            RankEnviron {
                pid: 7,
                environ: &a,
            },
            RankEnviron {
                pid: 8,
                environ: &b,
            },
        ];
        let differences = between_ranks(&ranks);
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].name, "Y");
        assert_eq!(differences[0].values[0].value, None);
    }
}
