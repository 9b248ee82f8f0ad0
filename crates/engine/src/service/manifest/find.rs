//! Finds and reads the `ostler.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ostler_sys::regular_file::{self, WrongFileType};

use super::parse;
use super::parse::FILE_BYTES;
use crate::file_owner::is_trusted_owner;
use crate::service::ServiceError;
use crate::service::definition::ServiceDefinition;

/// The name of the file.
pub const FILE_NAME: &str = "ostler.toml";

/// The parsed file of one workspace.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    /// The path of the file, without symbolic links.
    pub(crate) path: PathBuf,
    /// The services by name.
    pub(crate) services: BTreeMap<String, ServiceDefinition>,
}

impl Manifest {
    /// Finds and parses the nearest file from `cwd` upwards. `home` and `/` are searched only where
    /// `cwd` is that directory.
    ///
    /// # Errors
    /// [`ServiceError::Manifest`] for an invalid or untrusted file.
    pub(crate) fn find(cwd: &Path, home: Option<&Path>) -> Result<Option<Self>, ServiceError> {
        match locate(cwd, home) {
            Some(path) => {
                check_trusted(&path, cwd)?;
                Self::read(&path).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Parses the file at `path`.
    ///
    /// # Errors
    /// [`ServiceError::Manifest`], with the line where one is known.
    pub(crate) fn read(path: &Path) -> Result<Self, ServiceError> {
        Self::load(path).map_err(|problem| manifest_error(path, problem))
    }

    /// As [`Manifest::parse`].
    ///
    /// # Errors
    /// The message, without the path.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        let text = read_limited(path).map_err(|error| format!("cannot be read: {error}"))?;
        let dir = path.parent().unwrap_or(Path::new("/"));
        let services = parse(&text, dir).map_err(|error| error.to_string())?;
        Ok(Self {
            path: path.to_owned(),
            services,
        })
    }

    /// The fingerprints of the definitions, by name.
    pub(crate) fn fingerprints(&self) -> BTreeMap<String, String> {
        let each = self.services.iter();
        each.map(|(name, it)| (name.clone(), it.fingerprint()))
            .collect()
    }
}

fn manifest_error(path: &Path, problem: String) -> ServiceError {
    let file = path.display().to_string();
    ServiceError::Manifest { file, problem }
}

/// The path of the nearest file, without symbolic links.
pub(crate) fn locate(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    locate_or(cwd, home, |_| false)
}

/// As [`locate`]; a missing file also counts where `is_known`.
pub(crate) fn locate_or(
    cwd: &Path,
    home: Option<&Path>,
    is_known: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let here = fs::canonicalize(cwd).ok()?;
    let home = home.and_then(|home| fs::canonicalize(home).ok());
    for dir in here.ancestors() {
        let is_end = home.as_deref() == Some(dir) || dir == Path::new("/");
        if is_end && dir != here {
            return None;
        }
        let file = dir.join(FILE_NAME);
        if file.is_file() {
            return fs::canonicalize(file).ok();
        }
        if is_known(&file) {
            return Some(file);
        }
        if is_end {
            return None;
        }
    }
    None
}

/// What has the name of the file, in the nearest directory from `cwd` upwards, and is none; for people.
/// As far as [`locate`] searches.
pub(crate) fn find_wrong_type(cwd: &Path, home: Option<&Path>) -> Option<String> {
    let is_searched = |dir: &&Path| *dir == cwd || home != Some(*dir);
    let dirs = cwd.ancestors().take_while(is_searched);
    let files = dirs.map(|dir| dir.join(FILE_NAME));
    let mut wrong = files.filter_map(|file| Some((WrongFileType::at(&file)?, file)));
    let (what, file) = wrong.next()?;
    Some(format!("{} is {what}", file.display()))
}

/// A file above the workspace may belong to another user (`/tmp/ostler.toml`): it counts only when
/// it belongs to root, to this user, or to the owner of the caller's working directory.
fn check_trusted(path: &Path, cwd: &Path) -> Result<(), ServiceError> {
    let unreadable = |error| manifest_error(path, format!("cannot be read: {error}"));
    let uid = fs::metadata(path).map_err(unreadable)?.uid();
    if is_trusted_owner(uid, cwd) {
        return Ok(());
    }
    let problem = format!(
        "belongs to user {uid}, who neither runs this engine nor owns {}",
        cwd.display()
    );
    Err(manifest_error(path, problem))
}

fn read_limited(path: &Path) -> io::Result<String> {
    let bytes = regular_file::read(path, FILE_BYTES as u64)?;
    if bytes.len() > FILE_BYTES {
        // It may end within a character; the parser refuses it.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(io::Error::other)
}
