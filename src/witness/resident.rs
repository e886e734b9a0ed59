//! Looks into the processes that run the model: environment, libraries, mounts, packages of each.

use super::libraries::{Hashed, LibraryReader};
use super::{environ, mounts, packages};
use crate::evidence::processes::{Process, ProcessSet};
use crate::evidence::resident::Resident;

/// What is looked at beyond the lists themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which mapped files are hashed.
    pub hashed: Hashed,
    /// Packages whose files are compared with their RECORD.
    pub packages: Vec<String>,
}

/// Looks into every process of the set that runs the model. Takes as long as hashing what is wanted, at most two minutes a process.
pub fn look(set: &ProcessSet, wanted: &Wanted, reader: &mut LibraryReader) -> Vec<Resident> {
    set.computing()
        .into_iter()
        .map(|process| look_into(process, wanted, reader))
        .collect()
}

fn look_into(process: &Process, wanted: &Wanted, reader: &mut LibraryReader) -> Resident {
    let pid = process.pin.pid;
    let environ = environ::of(pid);
    Resident {
        libraries: reader.read(pid, &wanted.hashed),
        mounts: mounts::of(pid),
        packages: packages::of(pid, environ.seen(), &wanted.packages),
        environ,
        process: process.clone(),
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
        };
        let residents = look(&set, &wanted, &mut LibraryReader::default());
        // Their input ends with ours, and they with it.
        drop(parent.stdin.take());
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert_eq!(residents.len(), 2);
        let found = asymmetry(&residents);
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
