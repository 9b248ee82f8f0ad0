//! Whose files in a workspace count: a directory above it may be one that everybody writes to.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Whether a file of this user counts for whoever works in `cwd`: it must be root's, that of this
/// process, or that of the owner of `cwd`.
#[must_use]
pub fn is_trusted_owner(owner: u32, cwd: &Path) -> bool {
    let process = rustix::process::geteuid().as_raw();
    is_one_of(owner, process, fs::metadata(cwd).ok().map(|cwd| cwd.uid()))
}

fn is_one_of(owner: u32, process: u32, cwd_owner: Option<u32>) -> bool {
    owner == 0 || owner == process || Some(owner) == cwd_owner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_user_above_the_project_is_not_trusted() {
        assert!(is_one_of(0, 1000, Some(1000)) && is_one_of(1000, 1000, Some(0)));
        assert!(is_one_of(1001, 1000, Some(1001)));
        assert!(!is_one_of(1001, 1000, Some(1000)) && !is_one_of(1001, 0, Some(0)));
        assert!(!is_one_of(1001, 1000, None));
    }
}
