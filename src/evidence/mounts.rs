//! The mounts that a process sees, and which of them lie over folders that should come from the image.

use serde::{Deserialize, Serialize};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is mounted, as the process sees it.
    pub target: String,
    /// Which folder of the mounted file system it shows; anything but `/` is a bind mount of a part.
    pub root: String,
    /// The mounted device or share; absent if the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// File system (`ext4`, `overlay`, `tmpfs`).
    pub file_system: String,
    /// Whether it may be written to.
    pub access: Access,
}

/// Whether a mount may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reading only.
    ReadOnly,
    /// Reading and writing.
    ReadWrite,
}

/// Mounts at or below `folder`: what is there does not come from the image (or package) that owns the folder.
pub fn over<'a>(mounts: &'a [Mount], folder: &str) -> Vec<&'a Mount> {
    let folder = folder.trim_end_matches('/');
    mounts
        .iter()
        .filter(|m| {
            m.target
                .strip_prefix(folder)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
        .collect()
}

/// Mounts inside any Python package folder (`site-packages`, `dist-packages`).
pub fn over_packages(mounts: &[Mount]) -> Vec<&Mount> {
    let inside = |m: &&Mount| {
        m.target
            .split('/')
            .any(|part| part == "site-packages" || part == "dist-packages")
    };
    mounts.iter().filter(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(target: &str) -> Mount {
        Mount {
            target: target.into(),
            root: "/srv/plugin".into(),
            source: Some("/dev/vda".into()),
            file_system: "ext4".into(),
            access: Access::ReadOnly,
        }
    }

    #[test]
    fn a_plugin_mounted_over_a_package_is_found() {
        let mounts = [
            mount("/"),
            mount("/usr/lib/python3/dist-packages/vllm_exl3/kernels"),
        ];
        assert_eq!(over_packages(&mounts), [&mounts[1]]);
        assert_eq!(
            over(&mounts, "/usr/lib/python3/dist-packages/"),
            [&mounts[1]]
        );
    }

    #[test]
    fn a_neighbour_with_a_longer_name_is_not_below_a_folder() {
        let mounts = [mount("/models-old"), mount("/models"), mount("/models/a")];
        assert_eq!(over(&mounts, "/models"), [&mounts[1], &mounts[2]]);
    }
}
