//! From a port to the processes behind it: owners, descendants, pins. Linux `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;

use procfs::ProcError;
use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process as ProcEntry, Stat};

use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::processes::{Pin, Process, ProcessSet};
use crate::evidence::redaction::redact_arguments;
use crate::evidence::role::Role;

/// Processes kept of one seat; a tree beyond it is cut and noted. 64 GPUs with data loaders stay under it.
const PROCESS_LIMIT: usize = 1024;

/// Bytes kept of one command line; vLLM's longest real ones are near 4 KiB.
const CMDLINE_LIMIT: usize = 64 * 1024;

/// The right that lets every descriptor and memory be read.
pub(crate) const RIGHTS: &str = "run sekimon as the server's own user or as root, or give it the right: \
    `setcap cap_sys_ptrace,cap_dac_read_search+ep sekimon`";

/// The processes that listen at `address` in this network namespace, with all their descendants.
///
/// A listener on the address itself wins over one on every address. Several owners (SO_REUSEPORT) are all taken.
/// Absent if nobody listens, or if the owner's descriptors may not be read.
pub fn at_port(address: SocketAddr) -> Sighting<ProcessSet> {
    let sockets = listening(
        procfs::net::tcp(),
        procfs::net::tcp6(),
        Match::Address(address),
    );
    sockets
        .and_then(|sockets| owned_by(&sockets, address.port()))
        .into()
}

/// The processes that listen on `port` inside the network namespace of process `inside` (a container's first process).
pub fn at_port_inside(inside: u32, port: u16) -> Sighting<ProcessSet> {
    let entry = match ProcEntry::new(pid_i32(inside)) {
        Ok(entry) => entry,
        Err(error) => return Sighting::Absent(unreadable(inside, &error)),
    };
    listening(entry.tcp(), entry.tcp6(), Match::Port(port))
        .and_then(|sockets| owned_by(&sockets, port))
        .into()
}

/// The processes `roots` with all their descendants, for a seat whose first process is known (started here, or a container's).
pub fn below(roots: &[u32]) -> Sighting<ProcessSet> {
    tree(roots.to_vec(), Vec::new()).into()
}

/// The pin of one process; absent if it has ended.
pub fn pin(pid: u32) -> Sighting<Pin> {
    boot_id()
        .and_then(|boot| read(pid, &boot).map_err(|error| unreadable(pid, &error)))
        .map(|process| process.pin)
        .into()
}

enum Match {
    Address(SocketAddr),
    Port(u16),
}

/// Inodes of the listening sockets that serve the address.
fn listening(
    v4: Result<Vec<TcpNetEntry>, ProcError>,
    v6: Result<Vec<TcpNetEntry>, ProcError>,
    wanted: Match,
) -> Result<BTreeSet<u64>, Absent> {
    // A kernel without IPv6 has no tcp6; only both missing is an absence.
    let tables = match (v4, v6) {
        (Ok(v4), Ok(v6)) => [v4, v6].concat(),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => one,
        (Err(error), Err(_)) => {
            return Err(Absent::new(
                format!("reading `/proc/net/tcp`: {error}"),
                "mount `/proc` in this namespace",
            ));
        }
    };
    let port = match &wanted {
        Match::Address(address) => address.port(),
        Match::Port(port) => *port,
    };
    let on_port: Vec<_> = tables
        .into_iter()
        .filter(|s| s.state == TcpState::Listen && s.local_address.port() == port)
        .collect();
    let exact = |s: &&TcpNetEntry| match &wanted {
        Match::Address(address) => s.local_address.ip().to_canonical() == address.ip(),
        Match::Port(_) => true,
    };
    let mut chosen: Vec<_> = on_port.iter().filter(exact).collect();
    if chosen.is_empty() {
        chosen = on_port
            .iter()
            .filter(|s| s.local_address.ip().is_unspecified())
            .collect();
    }
    if chosen.is_empty() {
        return Err(Absent::new(
            format!("nobody listens on port {port} in this network namespace"),
            "start the seat here, or name its container in the gate so that its own namespace is read",
        ));
    }
    Ok(chosen.into_iter().map(|s| s.inode).collect())
}

fn owned_by(sockets: &BTreeSet<u64>, port: u16) -> Result<ProcessSet, Absent> {
    let mut owners = BTreeSet::new();
    let mut closed = 0usize;
    for entry in entries()? {
        match holds(&entry, sockets) {
            Ok(true) => {
                owners.insert(entry.pid().unsigned_abs());
            }
            Ok(false) | Err(ProcError::NotFound(_)) => {}
            Err(_) => closed += 1,
        }
    }
    if owners.is_empty() {
        let why = if closed > 0 {
            format!(
                "no owner of port {port} found; the descriptors of {closed} processes may not be read"
            )
        } else {
            format!(
                "no process holds port {port} (a kernel rule forwards it, or its process is in another pid namespace)"
            )
        };
        return Err(Absent::new(
            why,
            format!("{RIGHTS}; for a container, name it in the gate"),
        ));
    }
    let mut notes = Vec::new();
    if closed > 0 {
        notes.push(format!(
            "the descriptors of {closed} processes may not be read: another owner of port {port} would go unseen; {RIGHTS}"
        ));
    }
    let mut set = tree(owners.into_iter().collect(), notes)?;
    if set.only_proxies() {
        set.notes.push(format!(
            "port {port} is held by a proxy: the seat is in a container behind it, name the container in the gate"
        ));
    }
    Ok(set)
}

fn holds(entry: &ProcEntry, sockets: &BTreeSet<u64>) -> Result<bool, ProcError> {
    for descriptor in entry.fd()? {
        if let Ok(descriptor) = descriptor
            && let FDTarget::Socket(inode) = descriptor.target
            && sockets.contains(&inode)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn entries() -> Result<impl Iterator<Item = ProcEntry>, Absent> {
    let all = procfs::process::all_processes().map_err(|error| {
        Absent::new(
            format!("reading `/proc`: {error}"),
            "mount `/proc` in this namespace",
        )
    })?;
    Ok(all.filter_map(Result::ok))
}

fn tree(roots: Vec<u32>, mut notes: Vec<String>) -> Result<ProcessSet, Absent> {
    let boot = boot_id()?;
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for stat in entries()?.filter_map(|entry| entry.stat().ok()) {
        children
            .entry(stat.ppid.unsigned_abs())
            .or_default()
            .push(stat.pid.unsigned_abs());
    }
    let mut queue: Vec<u32> = roots.clone();
    let mut known: BTreeSet<u32> = roots.iter().copied().collect();
    let mut processes = Vec::new();
    let mut next = 0;
    while let Some(&pid) = queue.get(next) {
        next += 1;
        // A child that ends while we look is simply not part of the seat any more.
        if let Ok(process) = read(pid, &boot) {
            processes.push(process);
        }
        let below = children.get(&pid).into_iter().flatten();
        queue.extend(below.filter(|&&child| known.insert(child)));
        if queue.len() > PROCESS_LIMIT {
            queue.truncate(PROCESS_LIMIT);
            notes.push(format!(
                "more than {PROCESS_LIMIT} processes: the tree was cut"
            ));
            break;
        }
    }
    if processes.is_empty() {
        return Err(Absent::new(
            format!("none of the processes {roots:?} is there any more"),
            "start the seat",
        ));
    }
    Ok(ProcessSet {
        owners: roots,
        processes,
        notes,
    })
}

fn read(pid: u32, boot_id: &str) -> Result<Process, ProcError> {
    let entry = ProcEntry::new(pid_i32(pid))?;
    let stat = entry.stat()?;
    if is_dead(&stat) {
        return Err(ProcError::NotFound(None));
    }
    let mut cmdline = entry.cmdline().unwrap_or_default();
    trim(&mut cmdline);
    let title = if cmdline.is_empty() {
        std::slice::from_ref(&stat.comm)
    } else {
        &cmdline
    };
    Ok(Process {
        parent: stat.ppid.unsigned_abs(),
        role: Role::of_command(title),
        pin: Pin {
            boot_id: boot_id.to_owned(),
            pid,
            start_ticks: stat.starttime,
            exe: entry.exe().ok().map(|path| path.display().to_string()),
            cmdline: redact_arguments(&cmdline),
            comm: stat.comm,
        },
    })
}

/// A zombie holds no port and no memory: it is not part of a seat.
fn is_dead(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X' | 'x')
}

/// Drops what a new title left blank behind it, and what is beyond the limit.
fn trim(cmdline: &mut Vec<String>) {
    while cmdline.last().is_some_and(String::is_empty) {
        cmdline.pop();
    }
    let mut room = CMDLINE_LIMIT;
    cmdline.retain(|argument| {
        let fits = argument.len() <= room;
        room = room.saturating_sub(argument.len());
        fits
    });
}

fn boot_id() -> Result<String, Absent> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .map_err(|error| {
            Absent::new(
                format!("reading the kernel's boot id: {error}"),
                "run on Linux with `/proc` mounted",
            )
        })
}

/// An absence for a process whose entry could not be read.
pub(crate) fn unreadable(pid: u32, error: &ProcError) -> Absent {
    match error {
        ProcError::NotFound(_) => Absent::new(format!("process {pid} has ended"), "start the seat"),
        error => Absent::new(format!("reading `/proc/{pid}`: {error}"), RIGHTS),
    }
}

/// Process ids are positive and far below `i32::MAX` on Linux (at most 2^22); a larger number finds no process.
pub(crate) fn pid_i32(pid: u32) -> i32 {
    i32::try_from(pid).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Runs a Python text and returns it with its first line of output.
    fn python(script: &str) -> (Running, String) {
        let mut child = Command::new("python3")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        (Running(child), line.trim().to_owned())
    }

    fn loopback(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn the_owner_of_a_port_is_found_and_pinned() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let set = at_port(listener.local_addr().unwrap())
            .into_result()
            .unwrap();
        assert!(set.owners.contains(&std::process::id()));
        let me = pin(std::process::id()).into_result().unwrap();
        assert!(set.processes.iter().any(|p| p.pin.is(&me)));
        assert!(me.exe.is_some() && me.start_ticks > 0 && !me.boot_id.is_empty());
    }

    #[test]
    fn several_owners_of_one_port_and_their_children_are_all_taken() {
        let (seat, line) = python(
            "import os,socket,time\n\
             def bind(port):\n\
             \x20   s=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEPORT,1)\n\
             \x20   s.bind(('127.0.0.1',port)); s.listen(); return s\n\
             a=bind(0); port=a.getsockname()[1]\n\
             a.set_inheritable(False)\n\
             r,w=os.pipe()\n\
             first=os.fork()\n\
             if first==0:\n\
             \x20   a.close(); b=bind(port); os.write(w,b'x'); time.sleep(600)\n\
             os.read(r,1)\n\
             second=os.fork()\n\
             if second==0:\n\
             \x20   a.close(); time.sleep(600)\n\
             print(port,first,second,flush=True); time.sleep(600)",
        );
        let ids: Vec<u32> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let [port, first, second] = ids[..] else {
            panic!("{line}")
        };
        let set = at_port(loopback(port as u16)).into_result().unwrap();
        let parent = seat.0.id();
        let mut owners = set.owners.clone();
        owners.sort_unstable();
        let mut expected = vec![parent, first];
        expected.sort_unstable();
        assert_eq!(owners, expected);
        assert!(
            set.processes
                .iter()
                .any(|p| p.pin.pid == second && p.parent == parent)
        );
        for orphan in [first, second] {
            let orphan = rustix::process::Pid::from_raw(pid_i32(orphan)).unwrap();
            rustix::process::kill_process(orphan, rustix::process::Signal::KILL).unwrap();
        }
    }

    #[test]
    fn a_port_without_a_listener_is_an_absence_with_its_cure() {
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        };
        let absent = at_port(loopback(port)).into_result().unwrap_err();
        assert!(absent.why.contains(&format!("port {port}")), "{absent}");
        assert!(!absent.mend.is_empty());
    }

    #[test]
    fn a_process_that_ended_is_told_by_its_pin() {
        let (seat, _) = python("print('up',flush=True)\nimport time; time.sleep(600)");
        let id = seat.0.id();
        let before = below(&[id]).into_result().unwrap().pins();
        assert_eq!(
            before.same_as(&below(&[id]).into_result().unwrap().pins()),
            vec![]
        );
        drop(seat);
        assert!(below(&[id]).into_result().is_err());
        assert_eq!(before.same_as(&Default::default()).len(), 1);
    }

    #[test]
    fn the_port_is_found_inside_a_process_namespace_too() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let set = at_port_inside(std::process::id(), port)
            .into_result()
            .unwrap();
        assert!(set.owners.contains(&std::process::id()));
    }
}
