//! Looks into the processes that run the model: environment, libraries, mounts, packages of each.

use std::collections::HashMap;

use super::libraries::{Hashed, LibraryReader};
use super::{environ, mounts, packages};
use crate::evidence::absence::Sighting;
use crate::evidence::packages::Package;
use crate::evidence::processes::{Process, ProcessSet};
use crate::evidence::rank::RankTag;
use crate::evidence::resident::Resident;
use crate::evidence::role::Role;
use crate::spec::gate::Ranks;

/// What is looked at beyond the lists themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which mapped files are hashed.
    pub hashed: Hashed,
    /// Packages whose files are compared with their RECORD.
    pub packages: Vec<String>,
    /// How the seat is divided, to tell which rank a title means.
    pub ranks: Ranks,
}

/// Packages by the mount namespace that they were seen in: eight workers of one container cost one look.
type Seen = HashMap<Option<String>, Sighting<Vec<Package>>>;

/// Looks into every process of the set that runs the model. Takes as long as hashing what is wanted, at most two minutes a process.
pub fn look(set: &ProcessSet, wanted: &Wanted, reader: &mut LibraryReader) -> Vec<Resident> {
    let mut seen = Seen::new();
    set.computing()
        .into_iter()
        .map(|process| look_into(process, wanted, reader, &mut seen))
        .collect()
}

fn look_into(
    process: &Process,
    wanted: &Wanted,
    reader: &mut LibraryReader,
    seen: &mut Seen,
) -> Resident {
    let pid = process.pin.pid;
    let environ = environ::of(pid);
    let packages = match namespace(pid) {
        None => packages::of(pid, environ.seen(), &wanted.packages),
        space => seen
            .entry(space)
            .or_insert_with(|| packages::of(pid, environ.seen(), &wanted.packages))
            .clone(),
    };
    Resident {
        pid,
        rank: rank(process, &wanted.ranks),
        libraries: reader.read(pid, &wanted.hashed),
        mounts: mounts::of(pid),
        packages,
        environ,
    }
}

/// The mount namespace with the interpreter: ranks may run other virtual environments of one host.
fn namespace(pid: u32) -> Option<String> {
    let link = |name: &str| {
        let path = std::fs::read_link(format!("/proc/{pid}/{name}")).ok()?;
        Some(path.display().to_string())
    };
    Some(format!("{} {}", link("ns/mnt")?, link("exe")?))
}

fn rank(process: &Process, ranks: &Ranks) -> Option<u32> {
    match process.role {
        Role::Worker { rank } => RankTag {
            tp: rank.tp,
            pp: rank.pp,
            dp: rank.dp,
            ep: rank.ep,
            rank: None,
        }
        .index(ranks),
        // A seat of one rank has one process that computes, whatever it is called.
        _ => (ranks.total() == 1).then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::evidence::resident::asymmetry;
    use crate::witness::processes::below;

    #[test]
    fn two_forked_workers_are_compared() {
        // Two workers under the titles that vLLM gives, one with a variable that the other lacks.
        let script = "import os,sys,time\n\
             for rank in range(2):\n\
             \x20   if os.fork()==0:\n\
             \x20       env=dict(os.environ,RANK=str(rank))\n\
             \x20       if rank==1: env['SEKIMON_ONLY']='1'\n\
             \x20       code=\"print('up',flush=True);input()\"\n\
             \x20       os.execvpe(sys.executable,['VLLM::Worker_TP%d'%rank,'-c',code],env)\n\
             time.sleep(600)";
        let mut parent = Command::new("python3")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
        for _ in 0..2 {
            assert_eq!(lines.next().unwrap().unwrap(), "up");
        }
        let set = below(&[parent.id()]).into_result().unwrap();
        let wanted = Wanted {
            hashed: Hashed::Named(vec!["libc.so".into()]),
            packages: vec![],
            ranks: Ranks {
                tp: 2,
                pp: 1,
                dp: 1,
                nodes: 1,
            },
        };
        let residents = look(&set, &wanted, &mut LibraryReader::default());
        // Their input ends with ours, and they with it.
        drop(parent.stdin.take());
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert_eq!(residents.len(), 2);
        let ranks: Vec<_> = residents.iter().map(|r| r.rank).collect();
        assert_eq!(ranks, [Some(0), Some(1)]);
        let found = asymmetry(&residents.iter().collect::<Vec<_>>());
        let names: Vec<_> = found
            .variables
            .seen()
            .unwrap()
            .iter()
            .map(|d| d.name.as_str())
            .collect();
        assert_eq!(names, ["SEKIMON_ONLY"]);
        assert_eq!(found.code.seen(), Some(&vec![]));
    }
}
