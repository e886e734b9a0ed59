//! Following a file: every byte in order, and every sign that bytes were lost.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::log_source::Start;
use super::log_writer::CopyWriter;
use crate::evidence::absence::Absent;
use crate::evidence::log_copy::{LogIncident, LogPin, LogStart};

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

/// Bytes before our place that are compared on each look: a file that was cut and has grown beyond our place again differs there.
const TAIL: usize = 64;

/// A file that is followed.
#[derive(Debug)]
pub(crate) struct FileTail {
    path: PathBuf,
    open: Option<Opened>,
    /// Whether the present trouble was told already.
    told: bool,
}

#[derive(Debug)]
struct Opened {
    file: File,
    device: u64,
    inode: u64,
    offset: u64,
    tail: Vec<u8>,
}

/// How far a look goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Some bytes, so that nobody else waits long; the rest at the next look.
    Some,
    /// Everything that is there now.
    End,
}

impl FileTail {
    /// Follows the file at `path`; one that does not exist yet is waited for.
    pub(crate) fn open(path: &Path, from: Start) -> Result<(Self, LogStart), Absent> {
        let mut tail = Self {
            path: path.to_path_buf(),
            open: None,
            told: false,
        };
        match Opened::of(path) {
            Ok(mut opened) => {
                let bytes = opened.file.metadata().map(|m| m.len()).unwrap_or_default();
                let start = match from {
                    Start::Beginning => LogStart::Beginning,
                    Start::End if bytes == 0 => LogStart::Beginning,
                    Start::End => {
                        opened.skip_to(bytes);
                        LogStart::Late {
                            skipped: Some(bytes),
                        }
                    }
                };
                tail.open = Some(opened);
                Ok((tail, start))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok((tail, LogStart::Beginning))
            }
            Err(error) => Err(Absent::new(
                format!("opening the log `{}`: {error}", path.display()),
                "give the right to read it, or another source (`docker`, `command`)",
            )),
        }
    }

    /// What the path was when it was last looked at.
    pub(crate) fn pin(&self) -> LogPin {
        match &self.open {
            Some(opened) => LogPin::File {
                device: opened.device,
                inode: opened.inode,
            },
            None => LogPin::NoFileYet,
        }
    }

    /// Appends what is new to the copy.
    pub(crate) fn look(&mut self, reach: Reach, copy: &mut CopyWriter) {
        match self.advance(reach, copy) {
            Ok(()) => self.told = false,
            Err(error) => self.tell(&error, copy),
        }
    }

    fn tell(&mut self, error: &io::Error, copy: &mut CopyWriter) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let at = copy.bytes();
        copy.note(if error.kind() == io::ErrorKind::NotFound {
            LogIncident::Missing { at }
        } else {
            LogIncident::Unreadable {
                at,
                why: error.to_string(),
            }
        });
    }

    fn advance(&mut self, reach: Reach, copy: &mut CopyWriter) -> io::Result<()> {
        if self.open.is_none() {
            match Opened::of(&self.path) {
                Ok(opened) => self.open = Some(opened),
                // Not there yet is trouble only when somebody asks for a mark.
                Err(error) if error.kind() == io::ErrorKind::NotFound && reach == Reach::Some => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        let Some(opened) = &mut self.open else {
            return Ok(());
        };
        opened.read(reach, copy)?;
        let now = fs::metadata(&self.path)?;
        if (now.dev(), now.ino()) != (opened.device, opened.inode) {
            // What its writer still put there between our last read and the rename belongs before the new file.
            opened.read(Reach::End, copy)?;
            copy.note(LogIncident::Rotated { at: copy.bytes() });
            let mut opened = Opened::of(&self.path)?;
            opened.read(reach, copy)?;
            self.open = Some(opened);
        }
        Ok(())
    }
}

impl Opened {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            file,
            offset: 0,
            tail: Vec::new(),
        })
    }

    fn skip_to(&mut self, offset: u64) {
        let length = offset.min(TAIL as u64);
        let mut tail = vec![0; length as usize];
        if self.file.read_exact_at(&mut tail, offset - length).is_ok() {
            self.tail = tail;
        }
        self.offset = offset;
    }

    fn read(&mut self, reach: Reach, copy: &mut CopyWriter) -> io::Result<()> {
        let bytes = self.file.metadata()?.len();
        if bytes < self.offset || !self.tail_is_there()? {
            copy.note(LogIncident::Truncated { at: copy.bytes() });
            self.offset = 0;
            self.tail.clear();
        }
        // A writer that is faster than we are must not keep us here: the end is where it was when we came.
        let end = match reach {
            Reach::End => bytes,
            Reach::Some => bytes.min(self.offset + 64 * PIECE as u64),
        };
        let mut piece = vec![0; PIECE];
        while self.offset < end {
            let wanted = (end - self.offset).min(PIECE as u64) as usize;
            let read = self.file.read_at(&mut piece[..wanted], self.offset)?;
            if read == 0 {
                break;
            }
            copy.append(&piece[..read]);
            self.remember(&piece[..read]);
            self.offset += read as u64;
        }
        Ok(())
    }

    fn tail_is_there(&self) -> io::Result<bool> {
        let mut now = vec![0; self.tail.len()];
        match self
            .file
            .read_exact_at(&mut now, self.offset - self.tail.len() as u64)
        {
            Ok(()) => Ok(now == self.tail),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn remember(&mut self, read: &[u8]) {
        self.tail
            .extend_from_slice(&read[read.len().saturating_sub(TAIL)..]);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct Scene {
        dir: tempfile::TempDir,
        tail: FileTail,
        copy: CopyWriter,
    }

    impl Scene {
        fn new(content: &str, from: Start) -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("seat.log"), content).unwrap();
            let (tail, _) = FileTail::open(&dir.path().join("seat.log"), from).unwrap();
            let copy = CopyWriter::create(&dir.path().join("copy"), &[]).unwrap();
            Self { dir, tail, copy }
        }

        fn log(&self) -> PathBuf {
            self.dir.path().join("seat.log")
        }

        fn write(&self, text: &str) {
            let mut options = fs::OpenOptions::new();
            let mut file = options.append(true).create(true).open(self.log()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        /// Looks, and gives the whole copy and the new incidents.
        fn look(&mut self) -> (String, Vec<LogIncident>) {
            self.tail.look(Reach::End, &mut self.copy);
            let copy = fs::read_to_string(self.dir.path().join("copy")).unwrap();
            (copy, self.copy.take_fresh())
        }
    }

    #[test]
    fn appended_lines_arrive_once_and_in_order() {
        let mut scene = Scene::new("boot\n", Start::Beginning);
        assert_eq!(scene.look(), ("boot\n".into(), vec![]));
        scene.write("one\n");
        scene.write("two, not ended");
        assert_eq!(scene.look(), ("boot\none\ntwo, not ended".into(), vec![]));
    }

    #[test]
    fn a_late_start_skips_and_says_how_much() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seat.log");
        fs::write(&path, "old\n").unwrap();
        let (_, start) = FileTail::open(&path, Start::End).unwrap();
        assert_eq!(start, LogStart::Late { skipped: Some(4) });
        let mut scene = Scene::new("old\n", Start::End);
        scene.write("new\n");
        assert_eq!(scene.look(), ("new\n".into(), vec![]));
    }

    #[test]
    fn a_rotated_file_is_read_to_its_end_and_told() {
        let mut scene = Scene::new("one\n", Start::Beginning);
        scene.look();
        scene.write("two\n");
        fs::rename(scene.log(), scene.dir.path().join("seat.log.1")).unwrap();
        scene.write("three\n");
        let (copy, incidents) = scene.look();
        assert_eq!(copy, "one\ntwo\nthree\n");
        assert_eq!(incidents, vec![LogIncident::Rotated { at: 8 }]);
    }

    #[test]
    fn a_truncated_file_is_told() {
        let mut scene = Scene::new("one\ntwo\n", Start::Beginning);
        scene.look();
        fs::write(scene.log(), "x\n").unwrap();
        let (copy, incidents) = scene.look();
        assert_eq!(copy, "one\ntwo\nx\n");
        assert_eq!(incidents, vec![LogIncident::Truncated { at: 8 }]);
    }

    #[test]
    fn a_file_cut_and_grown_beyond_our_place_is_told_too() {
        let mut scene = Scene::new("one\ntwo\n", Start::Beginning);
        scene.look();
        // `fs::write` truncates the same inode, as `copytruncate` does.
        fs::write(scene.log(), "three is longer than before\n").unwrap();
        let (copy, incidents) = scene.look();
        assert!(copy.ends_with("\nthree is longer than before\n"));
        assert_eq!(incidents, vec![LogIncident::Truncated { at: 8 }]);
    }

    #[test]
    fn a_removed_file_is_told_once_and_its_successor_is_followed() {
        let mut scene = Scene::new("one\n", Start::Beginning);
        scene.look();
        fs::remove_file(scene.log()).unwrap();
        assert_eq!(scene.look().1, vec![LogIncident::Missing { at: 4 }]);
        assert_eq!(scene.look().1, vec![]);
        scene.write("two\n");
        assert_eq!(
            scene.look(),
            ("one\ntwo\n".into(), vec![LogIncident::Rotated { at: 4 }])
        );
    }

    #[test]
    fn a_file_that_comes_later_is_followed_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seat.log");
        let (mut tail, start) = FileTail::open(&path, Start::End).unwrap();
        let mut copy = CopyWriter::create(&dir.path().join("copy"), &[]).unwrap();
        assert_eq!(
            (start, tail.pin()),
            (LogStart::Beginning, LogPin::NoFileYet)
        );
        tail.look(Reach::Some, &mut copy);
        assert_eq!(copy.take_fresh(), vec![]);
        tail.look(Reach::End, &mut copy);
        assert_eq!(copy.take_fresh(), vec![LogIncident::Missing { at: 0 }]);
        fs::write(&path, "boot\n").unwrap();
        tail.look(Reach::End, &mut copy);
        assert_eq!((copy.bytes(), copy.take_fresh()), (5, vec![]));
        assert!(matches!(tail.pin(), LogPin::File { .. }));
    }

    #[test]
    fn a_folder_is_no_log() {
        let dir = tempfile::tempdir().unwrap();
        let absent = FileTail::open(dir.path(), Start::End).unwrap_err();
        assert!(absent.why.contains("not a regular file"), "{absent}");
    }
}
