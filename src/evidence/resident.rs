//! What lives in the serving processes: environment, libraries, mounts and packages of each, and whether the ranks are alike.

use serde::{Deserialize, Serialize};

use super::absence::{Absent, Sighting};
use super::environ::Environ;
use super::environ::{self, EnvironSource, RankDifference, RankEnviron};
use super::libraries::{self, Library, LibraryDifference, RankLibraries};
use super::mounts::Mount;
use super::packages::Package;
use super::processes::Process;

/// What lives in one serving process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// The process.
    pub process: Process,
    /// Its environment.
    pub environ: Sighting<Environ>,
    /// Its mapped files.
    pub libraries: Sighting<Vec<Library>>,
    /// Its mounts.
    pub mounts: Sighting<Vec<Mount>>,
    /// Python packages that it can import.
    pub packages: Sighting<Vec<Package>>,
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
pub fn asymmetry(ranks: &[Resident]) -> Asymmetry {
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

fn variables(ranks: &[Resident]) -> Result<Vec<RankDifference>, Absent> {
    let environs: Vec<RankEnviron<'_>> = ranks
        .iter()
        .map(|rank| {
            let environ = seen(&rank.environ)?;
            if let EnvironSource::Start { why } = &environ.source {
                return Err(Absent::new(
                    format!(
                        "only the environment at start of {} is known: {why}",
                        rank.process.pin
                    ),
                    "give the right to read the server's memory",
                ));
            }
            Ok(RankEnviron {
                pid: rank.process.pin.pid,
                environ,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(environ::between_ranks(&environs))
}

fn code(ranks: &[Resident]) -> Result<Vec<LibraryDifference>, Absent> {
    let libraries: Vec<RankLibraries<'_>> = ranks
        .iter()
        .map(|rank| {
            Ok(RankLibraries {
                pid: rank.process.pin.pid,
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
    use super::super::processes::Pin;
    use super::super::redaction::EnvVar;
    use super::super::role::Role;
    use super::*;

    fn rank(pid: u32, entries: &[&str]) -> Resident {
        Resident {
            process: Process {
                pin: Pin {
                    boot_id: "b".into(),
                    pid,
                    start_ticks: 1,
                    exe: None,
                    comm: "w".into(),
                    cmdline: vec![],
                },
                parent: 1,
                role: Role::Unknown,
            },
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

    #[test]
    fn a_variable_that_one_worker_lacks_is_an_asymmetry() {
        let found = asymmetry(&[rank(7, &["MOE=1", "RANK=0"]), rank(8, &["RANK=1"])]);
        assert_eq!(found.variables.seen().unwrap()[0].name, "MOE");
        assert_eq!(found.code.seen(), Some(&vec![]));
    }

    #[test]
    fn one_rank_that_cannot_be_looked_into_makes_it_absent() {
        let mut blind = rank(8, &[]);
        blind.environ = Sighting::absent("no right", "be root");
        let found = asymmetry(&[rank(7, &["A=1"]), blind]);
        assert!(found.variables.seen().is_none());
        assert!(asymmetry(&[rank(7, &[])]).code.seen().is_none());
    }
}
