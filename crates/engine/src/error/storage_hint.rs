//! What to do about a file of the state directory that cannot be read or written: it depends on the
//! cause.

use std::io;
use std::path::Path;

use ostler_journal::{ReadError, WriteError};
use ostler_sys::regular_file::{self, WrongFileType};
use rustix::io::Errno;

/// Where the disk is full or cannot be written.
pub(super) const FREE_SPACE: &str = "remove commands that have ended (`ostler rm --all`; of the \
                                     tools: process with action clean, command_ps_clean), make \
                                     room on that disk, or make the directory writable, and try \
                                     again";

/// The hint for an error of the operating system at this path; none where nothing is known to help.
pub(super) fn for_io(path: &Path, error: &io::Error) -> Option<String> {
    let shown = path.display();
    // The journal has an error of its own for it.
    let is_invalid = error.kind() == io::ErrorKind::InvalidInput;
    if regular_file::is_wrong_type(error) || is_invalid && WrongFileType::at(path).is_some() {
        return Some(format!(
            "something else is in its place: move what is at {shown} to another one, and try again"
        ));
    }
    match Errno::from_io_error(error)? {
        Errno::NOSPC | Errno::DQUOT | Errno::ROFS => Some(FREE_SPACE.to_owned()),
        Errno::ACCESS | Errno::PERM => Some(format!(
            "{shown} must belong to the user of the daemon, who must be able to read and write it \
             (a directory also to enter it), and so must each directory above it: `ls -ld` shows \
             owner and mode"
        )),
        _ => None,
    }
}

/// Where a newer version wrote the file.
pub(super) fn newer_version(path: &Path) -> String {
    format!(
        "use the version of Ostler that wrote {0}, or a later one; without what it holds this one \
         begins anew once {0} is moved to another place",
        path.display()
    )
}

/// The hint for an error of the journal or the ledger in this directory.
pub(super) fn for_journal(dir: &Path, error: &WriteError) -> Option<String> {
    match error {
        WriteError::Io { file, source, .. } => for_io(&dir.join(file), source),
        WriteError::Read(error) => match error.as_ref() {
            ReadError::Io { file, source, .. } => for_io(&dir.join(file), source),
            ReadError::Version { file, .. } => Some(newer_version(&dir.join(file))),
            ReadError::Missing { .. } | ReadError::Budget(_) => None,
        },
        WriteError::Locked { .. } | WriteError::Format { .. } | WriteError::Encode(_) => None,
    }
}
