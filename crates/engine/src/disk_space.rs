//! Free space of the state directory's file system, as text.

use std::path::Path;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;

/// One clause about the free space of the state directory's file system, for a refused write.
pub(crate) fn describe(state_dir: &Path) -> String {
    let shown = state_dir.display();
    if let Err(error) = state_dir.metadata() {
        return format!(
            "the state directory {shown} is not there any more ({error}): end the daemon, and \
             the next one makes it anew"
        );
    }
    match statvfs(state_dir) {
        Ok(disk) if disk.f_flag.contains(StatVfsMountFlags::RDONLY) => {
            format!("the state directory {shown} is on a file system that is mounted read-only")
        }
        Ok(disk) => {
            let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
            let files = match disk.f_files {
                0 => String::new(),
                _ => format!(" and {} inodes", disk.f_favail),
            };
            format!("the state directory {shown} has {bytes} bytes{files} free")
        }
        Err(error) => unmeasurable(&shown.to_string(), error),
    }
}

fn unmeasurable(shown: &str, error: Errno) -> String {
    format!("the disk of the state directory {shown} cannot be measured: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_the_directory_and_what_is_free() {
        let dir = tempfile::tempdir().expect("a directory");
        let said = describe(dir.path());
        assert!(said.contains(&dir.path().display().to_string()), "{said}");
        assert!(said.contains("bytes"), "{said}");
        let gone = describe(&dir.path().join("gone"));
        assert!(gone.contains("not there any more"), "{gone}");
    }
}
