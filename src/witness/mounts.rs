//! The mounts that a process sees, from `/proc/PID/mountinfo`.

use procfs::process::{MountInfo, Process as ProcEntry};

use super::processes::{pid_i32, unreadable};
use crate::evidence::absence::Sighting;
use crate::evidence::mounts::{Access, Mount};

/// Mounts told of one process; a container has some dozens, a busy host some thousands.
const MOUNT_LIMIT: usize = 10_000;

/// The mounts of process `pid`, in the kernel's order.
pub fn of(pid: u32) -> Sighting<Vec<Mount>> {
    match ProcEntry::new(pid_i32(pid)).and_then(|entry| entry.mountinfo()) {
        Ok(infos) => Sighting::Seen {
            value: infos.into_iter().take(MOUNT_LIMIT).map(mount).collect(),
        },
        Err(error) => Sighting::Absent(unreadable(pid, &error)),
    }
}

fn mount(info: MountInfo) -> Mount {
    Mount {
        target: unescape(&info.mount_point.to_string_lossy()),
        root: unescape(&info.root),
        source: info.mount_source.map(|s| unescape(&s)),
        file_system: info.fs_type,
        access: if info.mount_options.contains_key("ro") {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        },
    }
}

/// The kernel writes blanks, tabs, line ends and backslashes of a path as three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    for (escaped, character) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        plain = plain.replace(escaped, character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_root_is_mounted() {
        let mounts = of(std::process::id()).into_result().unwrap();
        assert!(mounts.iter().any(|m| m.target == "/"));
        assert!(mounts.iter().any(|m| m.file_system == "proc"));
    }

    #[test]
    fn a_bind_mount_is_told_with_the_folder_it_shows() {
        let line = "42 40 8:1 /srv/plugins/my\\040plugin /opt/site-packages/plugin ro,relatime shared:1 - ext4 /dev/sda1 rw";
        let mount = mount(MountInfo::from_line(line).unwrap());
        assert_eq!(mount.root, "/srv/plugins/my plugin");
        assert_eq!(mount.target, "/opt/site-packages/plugin");
        assert_eq!(mount.access, Access::ReadOnly);
    }

    #[test]
    fn a_process_that_is_gone_is_an_absence() {
        assert!(of(u32::MAX).seen().is_none());
    }
}
