//! The environment of a running process, read from its memory.
//!
//! `/proc/PID/environ` is the area that the kernel filled at exec. Servers that set a process title (vLLM, SGLang)
//! overwrite it, and nothing set later is in it. libc's own list, behind the symbol `environ`, is what the process
//! hands to `getenv`: it is found through the symbol's place in the mapped file and read from `/proc/PID/mem`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use procfs::process::Process as ProcEntry;

use super::elf::{EnvironSymbol, MappedObject, Word, environ_symbol, mapped_objects};
use super::processes::{RIGHTS, pid_i32, unreadable};
use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::environ::{Environ, EnvironSource};
use crate::evidence::redaction::EnvVar;

/// Variables read at most; a sound environment has some hundreds.
const VARIABLE_LIMIT: usize = 8192;

/// Bytes of one variable at most: Linux itself refuses longer ones at exec (MAX_ARG_STRLEN, 32 pages).
const VARIABLE_BYTES: usize = 128 * 1024;

/// Bytes of all variables at most; twice what Linux passes at exec by default (a quarter of an 8 MiB stack).
const ENVIRON_BYTES: usize = 4 * 1024 * 1024;

/// Looks at a list that changes under us; a second one right after is enough, `putenv` takes microseconds.
const ATTEMPTS: usize = 3;

/// Where files begin and end in memory; strings are read up to such a border because the page behind may not be there.
const PAGE: usize = 4096;

/// The environment of process `pid`: its live one, else the one it was started with, else the reason why neither can be had.
///
/// A blanked start environment is an absence, never an empty environment.
pub fn of(pid: u32) -> Sighting<Environ> {
    let from_memory = match in_memory(pid) {
        Ok(environ) => return Sighting::Seen { value: environ },
        Err(absent) => absent,
    };
    match at_start(pid) {
        Ok(variables) => Sighting::Seen {
            value: Environ {
                source: EnvironSource::Start {
                    why: from_memory.why,
                },
                variables,
                cut: false,
            },
        },
        Err(at_start) => Sighting::absent(
            format!("{}; {}", from_memory.why, at_start.why),
            from_memory.mend,
        ),
    }
}

/// The live environment from the process's memory.
fn in_memory(pid: u32) -> Result<Environ, Absent> {
    let entry = ProcEntry::new(pid_i32(pid)).map_err(|error| unreadable(pid, &error))?;
    let maps = entry.maps().map_err(|error| unreadable(pid, &error))?;
    let path = format!("/proc/{pid}/mem");
    let memory = File::open(&path)
        .map_err(|error| Absent::new(format!("opening `{path}`: {error}"), RIGHTS))?;
    let objects = mapped_objects(&maps.0);
    // The executable comes first: where it has a symbol of its own (copy relocation, static link), libc's is not used.
    for object in candidates(&entry, &objects) {
        if let Some(symbol) = environ_symbol(pid, object) {
            return read_list(&memory, symbol).map(|list| Environ {
                source: EnvironSource::Memory {
                    object: object.path.display().to_string(),
                },
                variables: list.variables,
                cut: list.cut,
            });
        }
    }
    Err(Absent::new(
        format!(
            "no mapped file of process {pid} has the symbol `environ` (a static or stripped program)"
        ),
        "start the server through a dynamically linked interpreter, or prove the path by its log and counters",
    ))
}

fn candidates<'a>(entry: &ProcEntry, objects: &'a [MappedObject]) -> Vec<&'a MappedObject> {
    let exe = entry.exe().ok();
    let is_exe = |object: &&MappedObject| Some(&object.path) == exe.as_ref();
    let is_libc = |object: &&MappedObject| object.path.file_name().is_some_and(is_libc_name);
    objects
        .iter()
        .filter(is_exe)
        .chain(objects.iter().filter(is_libc))
        .collect()
}

fn is_libc_name(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    ["libc.so", "libc-", "ld-musl-", "libc.musl-"]
        .iter()
        .any(|start| name.starts_with(start))
}

struct List {
    variables: Vec<EnvVar>,
    cut: bool,
}

fn read_list(memory: &File, symbol: EnvironSymbol) -> Result<List, Absent> {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        match read_list_once(memory, symbol) {
            Ok(list) => return Ok(list),
            Err(error) => last = error.to_string(),
        }
    }
    Err(Absent::new(
        format!("reading the environment in memory: {last}"),
        RIGHTS,
    ))
}

fn read_list_once(memory: &File, symbol: EnvironSymbol) -> std::io::Result<List> {
    let mut list = List {
        variables: Vec::new(),
        cut: false,
    };
    let mut pointer = read_word(memory, symbol.address, symbol.word)?;
    // A null list is what `clearenv` leaves: an empty environment, and seen as such.
    if pointer == 0 {
        return Ok(list);
    }
    let mut room = ENVIRON_BYTES;
    for _ in 0..VARIABLE_LIMIT {
        let entry = read_word(memory, pointer, symbol.word)?;
        if entry == 0 {
            return Ok(list);
        }
        let text = read_text(memory, entry, VARIABLE_BYTES.min(room))?;
        let Some(text) = text else { break };
        room = room.saturating_sub(text.len() + 1);
        list.variables.extend(EnvVar::parse(&text));
        pointer += symbol.word.bytes();
    }
    list.cut = true;
    Ok(list)
}

fn read_word(memory: &File, address: u64, word: Word) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes[..word.bytes() as usize], address)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A text up to its NUL; nothing if it is longer than `limit`.
fn read_text(memory: &File, address: u64, limit: usize) -> std::io::Result<Option<String>> {
    let mut text: Vec<u8> = Vec::new();
    let mut page = [0; PAGE];
    while text.len() < limit {
        let at = address + text.len() as u64;
        let to_border = PAGE - (at % PAGE as u64) as usize;
        memory.read_exact_at(&mut page[..to_border], at)?;
        if let Some(end) = memchr::memchr(0, &page[..to_border]) {
            text.extend_from_slice(&page[..end]);
            return Ok(Some(String::from_utf8_lossy(&text).into_owned()));
        }
        text.extend_from_slice(&page[..to_border]);
    }
    Ok(None)
}

/// The environment at exec, unless something wrote over it.
fn at_start(pid: u32) -> Result<Vec<EnvVar>, Absent> {
    let path = format!("/proc/{pid}/environ");
    let bytes = super::bounded::read(Path::new(&path), ENVIRON_BYTES as u64)
        .map_err(|error| Absent::new(format!("reading `{path}`: {error}"), RIGHTS))?;
    parse_start(&bytes).ok_or_else(|| {
        Absent::new(
            format!("`{path}` is blank or written over, as by a process title"),
            "start the server with `SPT_NOENV=1`, which keeps the area",
        )
    })
}

/// The entries of a start environment; nothing if any part of the area was overwritten.
fn parse_start(bytes: &[u8]) -> Option<Vec<EnvVar>> {
    let text = bytes.strip_suffix(b"\0")?;
    text.split(|b| *b == 0)
        .map(|entry| EnvVar::parse(&String::from_utf8_lossy(entry)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::evidence::environ::EnvLookup;

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Starts a command with one variable set and waits for its first line.
    fn started(program: &str, arguments: &[&str]) -> Running {
        let mut child = Command::new(program)
            .args(arguments)
            .env("SEKIMON_TEST", "at start")
            .env("SEKIMON_TEST_TOKEN", "abcdefghijklmnopqrstuvwxyz")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "up\n");
        Running(child)
    }

    fn value(environ: &Environ, name: &str) -> Option<String> {
        match environ.get(name) {
            EnvLookup::Set(value) => Some(value.to_string()),
            _ => None,
        }
    }

    #[test]
    fn what_a_process_set_after_its_start_is_seen() {
        let running = started(
            "python3",
            &[
                "-c",
                "import os,time\nos.environ['SEKIMON_TEST']='later'\nos.environ['SEKIMON_NEW']='new'\n\
                 print('up',flush=True); time.sleep(600)",
            ],
        );
        let pid = running.0.id();
        let environ = of(pid).into_result().unwrap();
        assert!(matches!(environ.source, EnvironSource::Memory { .. }));
        assert_eq!(value(&environ, "SEKIMON_TEST").as_deref(), Some("later"));
        assert_eq!(value(&environ, "SEKIMON_NEW").as_deref(), Some("new"));
        assert_eq!(environ.get("SEKIMON_NOT_SET"), EnvLookup::Unset);
        let start = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(memchr::memmem::find(&start, b"SEKIMON_NEW").is_none());
    }

    #[test]
    fn a_blanked_start_area_does_not_hide_the_environment() {
        // What a process title does: the strings are copied away, then their old place is blanked.
        let running = started(
            "python3",
            &[
                "-c",
                "import os,time,ctypes\n\
                 stat=open('/proc/self/stat').read().rsplit(')',1)[1].split()\n\
                 lo,hi=int(stat[47]),int(stat[48])\n\
                 keep=dict(os.environ)\n\
                 [os.environ.__setitem__(k,v) for k,v in keep.items()]\n\
                 ctypes.memset(lo,0,hi-lo)\n\
                 print('up',flush=True); time.sleep(600)",
            ],
        );
        let pid = running.0.id();
        let start = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(!start.is_empty() && start.iter().all(|b| *b == 0));
        let environ = of(pid).into_result().unwrap();
        assert_eq!(value(&environ, "SEKIMON_TEST").as_deref(), Some("at start"));
        assert!(at_start(pid).unwrap_err().why.contains("blank"));
    }

    #[test]
    fn a_secret_is_seen_to_be_set_and_never_kept() {
        let running = started("python3", &["-c", "print('up',flush=True); input()"]);
        let environ = of(running.0.id()).into_result().unwrap();
        assert_eq!(
            value(&environ, "SEKIMON_TEST_TOKEN").as_deref(),
            Some("[redacted]")
        );
        let kept = serde_json::to_string(&environ).unwrap();
        assert!(!kept.contains("abcdefghijklmnopqrstuvwxyz"));
    }

    #[test]
    fn a_forked_child_has_its_own_environment() {
        let running = started(
            "python3",
            &[
                "-c",
                "import os,time\n\
                 child=os.fork()\n\
                 if child==0: os.environ['SEKIMON_TEST']='child'; print('up',flush=True); time.sleep(600)\n\
                 time.sleep(600)",
            ],
        );
        let parent = running.0.id();
        let set = super::super::processes::below(&[parent])
            .into_result()
            .unwrap();
        let child = set.processes.iter().find(|p| p.parent == parent).unwrap();
        let seen = |pid| value(&of(pid).into_result().unwrap(), "SEKIMON_TEST");
        assert_eq!(seen(child.pin.pid).as_deref(), Some("child"));
        assert_eq!(seen(parent).as_deref(), Some("at start"));
        let child = rustix::process::Pid::from_raw(pid_i32(child.pin.pid)).unwrap();
        rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    }

    #[test]
    fn a_plain_shell_is_read_too() {
        let mut running = started("sh", &["-c", "echo up; read line"]);
        let environ = of(running.0.id()).into_result().unwrap();
        assert!(matches!(environ.source, EnvironSource::Memory { .. }));
        running.0.stdin.take().unwrap().write_all(b"end\n").unwrap();
    }

    #[test]
    fn a_program_with_a_symbol_of_its_own_is_read_there() {
        // A fixed-address program gets its own copy of `environ`; libc then uses that one. Rust's linker step needs `cc` too.
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("seat.c");
        let text = "#include <stdio.h>\n#include <stdlib.h>\nextern char **environ;\n\
            int main(void){ setenv(\"SEKIMON_TEST\", \"later\", 1); \
            printf(environ ? \"up\\n\" : \"none\\n\"); fflush(stdout); getchar(); return 0; }\n";
        std::fs::write(&source, text).unwrap();
        for flags in [&["-fpie", "-pie"], &["-fno-pie", "-no-pie"]] {
            let program = dir.path().join(flags[1]);
            let built = Command::new("cc")
                .args(flags)
                .arg(&source)
                .arg("-o")
                .arg(&program)
                .status();
            assert!(built.unwrap().success());
            let program = program.display().to_string();
            let running = started(&program, &[]);
            let environ = of(running.0.id()).into_result().unwrap();
            assert_eq!(value(&environ, "SEKIMON_TEST").as_deref(), Some("later"));
            assert!(
                matches!(&environ.source, EnvironSource::Memory { object } if *object == program)
            );
        }
    }

    #[test]
    fn a_process_that_is_gone_is_an_absence() {
        let running = started("sh", &["-c", "echo up; read line"]);
        let pid = running.0.id();
        drop(running);
        let absent = of(pid).into_result().unwrap_err();
        assert!(!absent.mend.is_empty());
    }

    #[test]
    fn an_overwritten_start_area_is_not_an_environment() {
        assert_eq!(parse_start(b"A=1\0B=2\0").unwrap().len(), 2);
        assert_eq!(parse_start(&[0; 1502]), None);
        assert_eq!(parse_start(b""), None);
        assert_eq!(parse_start(b"VLLM::Worker_TP0\0\0\0\0"), None);
        assert_eq!(parse_start(b"rker_TP0\0B=2\0"), None);
    }
}
