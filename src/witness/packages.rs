//! The Python packages that a process can import, read in its own file tree.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use procfs::process::Process as ProcEntry;
use sha2::{Digest, Sha256};

use super::elf::mapped_objects;
use super::processes::{pid_i32, unreadable};
use super::rooted::Rooted;
use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::environ::{EnvLookup, Environ};
use crate::evidence::packages::{
    ALTERED_LIMIT, Alteration, Altered, Package, RecordCheck, RecordEntry, parse_editable,
    parse_metadata, parse_record, record_digest, same_name,
};

/// Names read of one package folder; a large installation has near a thousand.
const NAME_LIMIT: usize = 20_000;

/// Bytes of a `METADATA` or `direct_url.json` that are read; name and version stand at its head.
const HEAD_BYTES: u64 = 256 * 1024;

/// Bytes of a RECORD that are read; PyTorch's, the longest, is near 2 MB.
const RECORD_BYTES: u64 = 32 * 1024 * 1024;

/// Time for the digests of all named packages of one process; PyTorch alone is near 2 GB on disk, 10 s.
const HASH_TIME: Duration = Duration::from_secs(60);

/// The packages in every package folder of process `pid`; those of `named` with their files against their RECORD.
pub fn of(pid: u32, environ: Option<&Environ>, named: &[String]) -> Sighting<Vec<Package>> {
    folders(pid, environ)
        .and_then(|folders| {
            let root = Rooted::of(pid)?;
            let until = Instant::now() + HASH_TIME;
            let packages: Vec<Package> = folders
                .iter()
                .flat_map(|folder| in_folder(&root, folder, named, until))
                .collect();
            if packages.is_empty() {
                return Err(Absent::new(
                    format!("process {pid} has no Python package folder that can be seen"),
                    "name the library or file to prove instead",
                ));
            }
            Ok(packages)
        })
        .into()
}

/// Folders that may hold packages: those that mapped files lie in, those beside the interpreter, those that the environment names.
fn folders(pid: u32, environ: Option<&Environ>) -> Result<Vec<PathBuf>, Absent> {
    let entry = ProcEntry::new(pid_i32(pid)).map_err(|error| unreadable(pid, &error))?;
    let maps = entry.maps().map_err(|error| unreadable(pid, &error))?;
    let root = Rooted::of(pid)?;
    let mut folders: BTreeSet<PathBuf> = mapped_objects(&maps.0)
        .iter()
        .filter_map(|object| package_folder(&object.path))
        .collect();
    let mut prefixes: BTreeSet<PathBuf> = BTreeSet::new();
    let argv0 = entry.cmdline().ok().and_then(|c| c.into_iter().next());
    for program in [entry.exe().ok(), argv0.map(PathBuf::from)]
        .into_iter()
        .flatten()
    {
        // `/venv/bin/python3` → `/venv`: the folder that holds both `bin` and `lib`.
        prefixes.extend(program.ancestors().nth(2).map(Path::to_path_buf));
    }
    let named = |name| environ.and_then(|e| plain(e, name));
    prefixes.extend(named("VIRTUAL_ENV").map(PathBuf::from));
    for prefix in prefixes.iter().filter(|p| p.is_absolute()) {
        folders.extend(below_prefix(&root, prefix));
    }
    if let Some(path) = named("PYTHONPATH") {
        folders.extend(
            path.split(':')
                .filter(|p| p.starts_with('/'))
                .map(PathBuf::from),
        );
    }
    Ok(folders.into_iter().collect())
}

fn plain<'a>(environ: &'a Environ, name: &str) -> Option<&'a str> {
    match environ.get(name) {
        EnvLookup::Set(value) => value.text(),
        _ => None,
    }
}

fn package_folder(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .find(|a| {
            a.file_name()
                .is_some_and(|n| n == "site-packages" || n == "dist-packages")
        })
        .map(Path::to_path_buf)
}

fn below_prefix(root: &Rooted, prefix: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for lib in ["lib", "lib64"].map(|lib| prefix.join(lib)) {
        for version in root.list(&lib, NAME_LIMIT).unwrap_or_default() {
            if version.starts_with("python3") {
                for kind in ["site-packages", "dist-packages"] {
                    let folder = lib.join(&version).join(kind);
                    if root.has(&folder) {
                        found.push(folder);
                    }
                }
            }
        }
    }
    found
}

fn in_folder(root: &Rooted, folder: &Path, named: &[String], until: Instant) -> Vec<Package> {
    let names = root.list(folder, NAME_LIMIT).unwrap_or_default();
    names
        .iter()
        .filter(|name| name.ends_with(".dist-info"))
        .filter_map(|name| package(root, folder, name, named, until))
        .collect()
}

fn package(
    root: &Rooted,
    folder: &Path,
    info: &str,
    named: &[String],
    until: Instant,
) -> Option<Package> {
    let info = folder.join(info);
    let text = |name: &str, limit| {
        let bytes = root.read(&info.join(name), limit).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let own = parse_metadata(&text("METADATA", HEAD_BYTES)?)?;
    let files = if named.iter().any(|name| same_name(name, &own.name)) {
        match text("RECORD", RECORD_BYTES) {
            Some(record) => check(root, folder, &parse_record(&record), until).into(),
            None => Sighting::absent(
                format!("`{}` has no RECORD", own.name),
                "install it with pip, which writes one",
            ),
        }
    } else {
        Sighting::absent(
            "not compared: nobody asked for it",
            "name the package in the gate",
        )
    };
    Some(Package {
        name: own.name,
        version: own.version,
        folder: folder.display().to_string(),
        editable: text("direct_url.json", HEAD_BYTES).and_then(|t| parse_editable(&t)),
        files,
    })
}

fn check(
    root: &Rooted,
    folder: &Path,
    entries: &[RecordEntry],
    until: Instant,
) -> Result<RecordCheck, Absent> {
    let mut check = RecordCheck {
        listed: entries.len() as u64,
        checked: 0,
        altered: Vec::new(),
        altered_in_all: 0,
    };
    for entry in entries {
        if Instant::now() >= until {
            return Err(Absent::new(
                format!(
                    "only {} of {} files were hashed in {} s",
                    check.checked,
                    check.listed,
                    HASH_TIME.as_secs()
                ),
                "name fewer packages",
            ));
        }
        if let Some(how) = alteration(root, folder, entry)? {
            check.altered_in_all += 1;
            check.altered.push(Altered {
                path: entry.path.clone(),
                how,
            });
        }
        check.checked += 1;
    }
    check.altered.sort_by(|a, b| a.path.cmp(&b.path));
    check.altered.truncate(ALTERED_LIMIT);
    Ok(check)
}

fn alteration(
    root: &Rooted,
    folder: &Path,
    entry: &RecordEntry,
) -> Result<Option<Alteration>, Absent> {
    let path = folder.join(&entry.path);
    if !root.has(&path) {
        return Ok(Some(Alteration::Missing));
    }
    let mut file = root.open(&path)?;
    let absent = |error: std::io::Error| {
        Absent::new(
            format!("reading `{}`: {error}", path.display()),
            super::processes::RIGHTS,
        )
    };
    let bytes = file.metadata().map_err(absent)?.len();
    if entry.bytes.is_some_and(|recorded| recorded != bytes) {
        return Ok(Some(Alteration::Changed));
    }
    let mut digest = Sha256::new();
    let mut piece = vec![0; 256 * 1024];
    loop {
        match file.read(&mut piece).map_err(absent)? {
            0 => break,
            read => digest.update(&piece[..read]),
        }
    }
    let same = record_digest(&digest.finalize()) == entry.sha256;
    Ok((!same).then_some(Alteration::Changed))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn python_with(path: &Path) -> Running {
        let mut child = Command::new("python3")
            .args(["-c", "print('up',flush=True); input()"])
            .env("PYTHONPATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Running(child)
    }

    /// A package of one file, `kernel.py`, recorded with the digest of `abc`.
    fn install(folder: &Path, content: &str) {
        let info = folder.join("vllm_exl3-1.2.dist-info");
        std::fs::create_dir_all(&info).unwrap();
        std::fs::write(folder.join("kernel.py"), content).unwrap();
        std::fs::write(info.join("METADATA"), "Name: vllm-exl3\nVersion: 1.2\n\n").unwrap();
        let record = "kernel.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n\
             gone.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n";
        std::fs::write(info.join("RECORD"), record).unwrap();
    }

    fn look(folder: &Path, named: &[String]) -> Package {
        let running = python_with(folder);
        let pid = running.0.id();
        let environ = super::super::environ::of(pid).into_result().unwrap();
        let packages = of(pid, Some(&environ), named).into_result().unwrap();
        packages
            .into_iter()
            .find(|p| p.name == "vllm-exl3")
            .unwrap()
    }

    #[test]
    fn a_patched_file_and_a_missing_one_are_told() {
        let dir = tempfile::tempdir().unwrap();
        install(dir.path(), "xyz");
        let package = look(dir.path(), &["vllm_exl3".to_owned()]);
        assert_eq!(package.version, "1.2");
        let check = package.files.seen().unwrap();
        let altered: Vec<_> = check
            .altered
            .iter()
            .map(|a| (a.path.as_str(), a.how))
            .collect();
        assert_eq!(
            altered,
            [
                ("gone.py", Alteration::Missing),
                ("kernel.py", Alteration::Changed)
            ]
        );
    }

    #[test]
    fn a_file_as_recorded_is_not_altered() {
        let dir = tempfile::tempdir().unwrap();
        install(dir.path(), "abc");
        let package = look(dir.path(), &["vllm-exl3".to_owned()]);
        let check = package.files.seen().unwrap();
        assert_eq!(
            (check.listed, check.checked, check.altered_in_all),
            (2, 2, 1)
        );
    }

    #[test]
    fn a_package_that_nobody_named_is_listed_and_not_hashed() {
        let dir = tempfile::tempdir().unwrap();
        install(dir.path(), "abc");
        let package = look(dir.path(), &[]);
        assert!(package.files.seen().is_none());
        assert_eq!(package.folder, dir.path().display().to_string());
    }

    #[test]
    fn the_interpreter_brings_its_own_packages() {
        let dir = tempfile::tempdir().unwrap();
        let running = python_with(dir.path());
        let packages = of(running.0.id(), None, &[]);
        let why = format!("{packages:?}");
        // An interpreter without any package at all is possible; then the absence must say so.
        match packages {
            Sighting::Seen { value } => assert!(value.iter().all(|p| !p.version.is_empty())),
            Sighting::Absent(absent) => assert!(absent.why.contains("package folder"), "{why}"),
        }
    }
}
