//! Finds the program of a launch among the container's files.

use std::path::{Path, PathBuf};

use ostler_model::ByteString;
use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, stat};
use rustix::io::Errno;

/// What is searched where there is no `PATH`, as in execvp(3).
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file that a program's name stands for: itself where it has a slash, relative to `cwd`,
/// otherwise the first executable of that name in a directory of `path`.
///
/// # Errors
/// `NOENT` where there is none; `ACCESS` where one was found and may not be executed.
pub(crate) fn find(
    program: &ByteString,
    path: Option<&ByteString>,
    cwd: &Path,
) -> Result<PathBuf, Errno> {
    let name = program.as_path();
    if program.as_bytes().contains(&b'/') {
        let file = cwd.join(name);
        return check(&file).map(|()| file);
    }
    if program.is_empty() {
        return Err(Errno::NOENT);
    }
    let path = path.map_or(DEFAULT_PATH.as_bytes(), ByteString::as_bytes);
    let mut problem = Errno::NOENT;
    for directory in path.split(|byte| *byte == b':') {
        let directory = ByteString::from(directory);
        let file = cwd.join(directory.as_path()).join(name);
        match check(&file) {
            Ok(()) => return Ok(file),
            Err(Errno::ACCESS) => problem = Errno::ACCESS,
            Err(_) => {}
        }
    }
    Err(problem)
}

/// Whether this is a regular file that may be executed.
fn check(file: &Path) -> Result<(), Errno> {
    let found = stat(file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn executable(file: &Path) {
        std::fs::write(file, "").expect("written");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file, mode).expect("its own");
    }

    #[test]
    fn the_first_executable_in_the_path_is_found() {
        let root = tempfile::TempDir::new().expect("a directory");
        for name in ["a", "b"] {
            std::fs::create_dir(root.path().join(name)).expect("room");
        }
        std::fs::write(root.path().join("a/tool"), "").expect("written");
        executable(&root.path().join("b/tool"));
        let path = format!("{0}/a:{0}/b", root.path().display());
        let path = ByteString::from(path);
        let found = find(&"tool".into(), Some(&path), Path::new("/"));
        assert_eq!(
            found,
            Ok(root.path().join("b/tool")),
            "a/tool is no program"
        );
        let absent = find(&"other".into(), Some(&path), Path::new("/"));
        assert_eq!(absent, Err(Errno::NOENT));
        let relative = find(&"b/tool".into(), Some(&path), root.path());
        assert_eq!(relative, Ok(root.path().join("b/tool")));
        assert_eq!(find(&"".into(), None, Path::new("/")), Err(Errno::NOENT));
        assert_eq!(find(&"/".into(), None, Path::new("/")), Err(Errno::ACCESS));
    }
}
