//! What lives in the serving processes: environment, libraries, mounts and packages of each, and whether the ranks are alike.

use serde::{Deserialize, Serialize};

use super::absence::{Absent, Sighting};
use super::environ::Environ;
use super::environ::{self, EnvironSource, RankDifference, RankEnviron};
use super::libraries::{self, Library, LibraryDifference, RankLibraries};
use super::mounts::Mount;
use super::packages::Package;

/// What lives in one process that runs the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// Process id.
    pub pid: u32,
    /// Global rank from 0; absent where the process's title does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Its live environment.
    pub environ: Sighting<Environ>,
    /// Its mapped files that hold code.
    pub libraries: Sighting<Vec<Library>>,
    /// Its mounts.
    #[serde(default = "not_recorded")]
    pub mounts: Sighting<Vec<Mount>>,
    /// Python packages that it can import.
    #[serde(default = "not_recorded")]
    pub packages: Sighting<Vec<Package>>,
}

/// What a run of an older version did not write down.
fn not_recorded<T>() -> Sighting<T> {
    Sighting::absent(
        "not recorded by the version that made this run",
        "run the gate again",
    )
}

impl Resident {
    /// How reasons name it: `rank 3 (process 104)`.
    pub fn name(&self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank} (process {})", self.pid),
            None => format!("process {}", self.pid),
        }
    }
}

/// What differs between ranks that should be alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asymmetry {
    /// Variables.
    pub variables: Sighting<Vec<RankDifference>>,
    /// Code.
    pub code: Sighting<Vec<LibraryDifference>>,
}

/// Compares the ranks; absent unless every one of at least two could be looked into in the same way.
pub fn asymmetry(ranks: &[&Resident]) -> Asymmetry {
    if ranks.len() < 2 {
        let one = Absent::new(
            "there are no two ranks to compare",
            "nothing: a seat of one rank is alike by itself",
        );
        return Asymmetry {
            variables: Sighting::Absent(one.clone()),
            code: Sighting::Absent(one),
        };
    }
    Asymmetry {
        variables: variables(ranks).into(),
        code: code(ranks).into(),
    }
}

fn variables(ranks: &[&Resident]) -> Result<Vec<RankDifference>, Absent> {
    let environs: Vec<RankEnviron<'_>> = ranks
        .iter()
        .map(|rank| {
            let environ = seen(&rank.environ)?;
            if let EnvironSource::Start { why } = &environ.source {
                return Err(Absent::new(
                    format!(
                        "only the environment at start of process {} is known: {why}",
                        rank.pid
                    ),
                    "give the right to read the server's memory: run sekimon as root or as the server's user",
                ));
            }
            if environ.cut {
                return Err(Absent::new(
                    format!(
                        "the environment of process {} was cut at the reader's limit",
                        rank.pid
                    ),
                    "start the server with fewer variables",
                ));
            }
            Ok(RankEnviron {
                pid: rank.pid,
                environ,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(environ::between_ranks(&environs))
}

fn code(ranks: &[&Resident]) -> Result<Vec<LibraryDifference>, Absent> {
    let libraries: Vec<RankLibraries<'_>> = ranks
        .iter()
        .map(|rank| {
            Ok(RankLibraries {
                pid: rank.pid,
                libraries: seen(&rank.libraries)?,
            })
        })
        .collect::<Result<_, Absent>>()?;
    Ok(libraries::between_ranks(&libraries))
}

fn seen<T>(sighting: &Sighting<T>) -> Result<&T, Absent> {
    match sighting {
        Sighting::Seen { value } => Ok(value),
        Sighting::Absent(absent) => Err(absent.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::redaction::EnvVar;
    use super::*;

    fn rank(pid: u32, entries: &[&str]) -> Resident {
        Resident {
            pid,
            rank: None,
            environ: Sighting::Seen {
                value: Environ {
                    source: EnvironSource::Memory {
                        object: "libc".into(),
                    },
                    variables: entries.iter().map(|e| EnvVar::parse(e).unwrap()).collect(),
                    cut: false,
                },
            },
            libraries: Sighting::Seen { value: vec![] },
            mounts: Sighting::Seen { value: vec![] },
            packages: Sighting::absent("x", "y"),
        }
    }

    fn start_only(mut rank: Resident) -> Resident {
        if let Sighting::Seen { value } = &mut rank.environ {
            value.source = EnvironSource::Start {
                why: "no right".into(),
            };
        }
        rank
    }

    #[test]
    fn a_variable_that_one_worker_lacks_is_an_asymmetry() {
        let found = asymmetry(&[&rank(7, &["MOE=1", "RANK=0"]), &rank(8, &["RANK=1"])]);
        let differences = found.variables.seen().unwrap();
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].name, "MOE");
        assert_eq!(found.code.seen(), Some(&vec![]));
    }

    #[test]
    fn a_start_environment_cannot_be_compared() {
        let found = asymmetry(&[&rank(7, &["A=1"]), &start_only(rank(8, &["A=2"]))]);
        assert!(found.variables.seen().is_none());
    }

    #[test]
    fn one_rank_has_nothing_to_differ_from() {
        assert!(asymmetry(&[&rank(7, &[])]).code.seen().is_none());
    }

    #[test]
    fn residents_of_an_older_run_are_read_with_what_they_lack_absent() {
        let old = r#"{"pid":7,"environ":{"state":"x"},"libraries":{"state":"x"}}"#;
        let mut value = serde_json::to_value(rank(7, &[])).unwrap();
        let object = value.as_object_mut().unwrap();
        object.remove("mounts");
        object.remove("packages");
        let read: Resident = serde_json::from_value(value).unwrap();
        assert!(read.mounts.seen().is_none() && read.packages.seen().is_none());
        assert!(serde_json::from_str::<Resident>(old).is_err());
    }
}
