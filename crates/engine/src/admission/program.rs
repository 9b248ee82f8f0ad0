//! Finding the program in the command's own `PATH`.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ostler_model::ByteString;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use thiserror::Error;

use super::arguments::SUGGESTION_LIKENESS;

/// The most names of the search path that are compared for a suggestion.
const SUGGESTION_NAMES: usize = 20_000;

/// Why a program cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// In none of the directories, or no such path.
    #[error("{program}: {}", if *searched { "command not found" } else { "no such file" })]
    NotFound {
        /// The program as given.
        program: String,
        /// Whether it was looked up in `PATH`.
        searched: bool,
        /// An existing program with a similar name.
        suggestion: Option<String>,
    },
    /// It exists and is not an executable file.
    #[error("{program}: {problem}")]
    NotAFile {
        /// The program as given.
        program: String,
        /// What it is instead.
        problem: &'static str,
    },
    /// It exists without execute permission.
    #[error("{program}: permission denied")]
    Permission {
        /// The program as given.
        program: String,
    },
}

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
    directories
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flatten()
        .take(SUGGESTION_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| (strsim::normalized_damerau_levenshtein(&name, program), name))
        .filter(|(likeness, _)| *likeness >= SUGGESTION_LIKENESS)
        .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))
        .map(|(_, name)| name)
}
