//! Finding the program in the command's own `PATH`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ostler_model::{ByteString, suggestion};
use rustix::fs::{Access, AtFlags, CWD, accessat};

pub use crate::error::ProgramError;

/// The most names of the search path that are compared for a suggestion.
const SUGGESTION_NAMES: usize = 20_000;

enum Candidate {
    Executable,
    Forbidden,
    NotAFile(&'static str),
    Absent,
}

/// The absolute path execve(2) gets: names are looked up in `path` as execvp(3) does, paths
/// are taken from `cwd`.
///
/// # Errors
/// When there is no such program, or it cannot be executed.
pub fn find(
    program: &ByteString,
    path: &ByteString,
    cwd: &ByteString,
) -> Result<ByteString, ProgramError> {
    let name = program.as_path();
    if program.as_bytes().contains(&b'/') {
        return check_path(program, cwd.as_path().join(name));
    }
    let mut forbidden = false;
    for directory in directories(path, cwd) {
        let candidate = directory.join(name);
        match classify(&candidate) {
            Candidate::Executable => return Ok(ByteString::from(candidate)),
            Candidate::Forbidden => forbidden = true,
            Candidate::NotAFile(_) | Candidate::Absent => {}
        }
    }
    let program = program.to_string();
    if forbidden {
        return Err(ProgramError::Permission { program });
    }
    Err(ProgramError::NotFound {
        suggestion: nearest_name(&program, directories(path, cwd)),
        program,
        searched: true,
    })
}

/// The path of a name in the search path, as [`find`] finds it.
pub(crate) fn locate(name: &str, path: &ByteString, cwd: &ByteString) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    directories(path, cwd)
        .map(|directory| directory.join(name))
        .find(|candidate| matches!(classify(candidate), Candidate::Executable))
}

fn check_path(program: &ByteString, absolute: PathBuf) -> Result<ByteString, ProgramError> {
    match classify(&absolute) {
        Candidate::Executable => Ok(ByteString::from(absolute)),
        Candidate::Forbidden => Err(ProgramError::Permission {
            program: program.to_string(),
        }),
        Candidate::NotAFile(problem) => Err(ProgramError::NotAFile {
            program: program.to_string(),
            problem,
        }),
        Candidate::Absent => Err(ProgramError::NotFound {
            program: program.to_string(),
            searched: false,
            suggestion: None,
        }),
    }
}

/// An empty or relative part of a search path means the working directory, as in execvp(3).
fn directories<'a>(
    path: &'a ByteString,
    cwd: &'a ByteString,
) -> impl Iterator<Item = PathBuf> + 'a {
    path.as_bytes()
        .split(|byte| *byte == b':')
        .map(|part| cwd.as_path().join(OsStr::from_bytes(part)))
}

fn classify(path: &Path) -> Candidate {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Candidate::NotAFile("is a directory"),
        Ok(found) if !found.is_file() => Candidate::NotAFile("is not a regular file"),
        Ok(_) if accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_err() => {
            Candidate::Forbidden
        }
        Ok(_) => Candidate::Executable,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Candidate::Forbidden,
        Err(_) => Candidate::Absent,
    }
}

fn nearest_name(program: &str, directories: impl Iterator<Item = PathBuf>) -> Option<String> {
    let names: BTreeSet<String> = directories
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flatten()
        .take(SUGGESTION_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    suggestion::nearest(program, names)
}
