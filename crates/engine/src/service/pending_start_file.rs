//! The file of starts that nobody waits for: a daemon that finds them says that the one before ended
//! too early. It does not start them: the environment of their clients is on no disk.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ostler_journal::atomic_file::{self, PRIVATE_MODE};
use ostler_model::{ByteString, Owner, ServicePlan, Timestamp};
use serde::{Deserialize, Serialize};

use super::ServiceInfo;
use super::failed_starts::FailedStart;
use super::locks::ServiceKey;
use super::registry::unstarted_info;
use crate::error::Error;
use crate::json_file;

/// The file within the state directory.
const FILE: &str = "pending-starts.json";
const VERSION: u8 = 1;

/// The file.
#[derive(Debug)]
pub(crate) struct PendingStartFile(PathBuf);

/// A service that a start in the background has not started yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingStart {
    pub(crate) owner: Owner,
    pub(crate) name: String,
    /// The `ostler.toml` of its workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<ByteString>,
    /// When the start began.
    pub(crate) began: Timestamp,
    /// Its program, where no definition lists the service. Its arguments may hold secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<ByteString>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PendingStarts {
    version: u8,
    starts: Vec<PendingStart>,
}

impl PendingStartFile {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self(state_dir.join(FILE))
    }

    /// The starts that ended with an earlier daemon. A damaged file has none.
    ///
    /// # Errors
    /// [`Error::NewerFile`].
    pub(crate) fn read_interrupted(&self) -> Result<Vec<(ServiceKey, FailedStart)>, Error> {
        let path = &self.0;
        let bytes = match json_file::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!(path = %path.display(), %error, "cannot be read");
                }
                return Ok(Vec::new());
            }
        };
        json_file::refuse_newer(path, &bytes, VERSION)?;
        let starts = match serde_json::from_slice::<PendingStarts>(&bytes) {
            Ok(file) => file.starts,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot be read");
                Vec::new()
            }
        };
        Ok(starts.into_iter().map(PendingStart::interrupted).collect())
    }

    /// Replaces it. What cannot be written is reported in the log: the starts go on.
    pub(crate) fn write(&self, starts: Vec<PendingStart>) {
        let path = &self.0;
        let result = if starts.is_empty() {
            match fs::remove_file(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                removed => removed,
            }
        } else {
            let file = PendingStarts {
                version: VERSION,
                starts,
            };
            let bytes = serde_json::to_vec(&file).map_err(std::io::Error::from);
            bytes.and_then(|bytes| atomic_file::replace(path, &bytes, PRIVATE_MODE))
        };
        if let Err(error) = result {
            tracing::warn!(path = %path.display(), %error, "cannot be written: after the end of this daemon, nothing tells of starts that were pending");
        }
    }
}

impl PendingStart {
    fn interrupted(self) -> (ServiceKey, FailedStart) {
        let workspace = self.workspace.as_ref().map(|it| it.as_path().to_owned());
        let key = ServiceKey::of_owner(&self.owner, workspace.clone(), &self.name);
        let unlisted = self.program.map(|program| {
            Box::new(ServiceInfo {
                workspace,
                ..unstarted_info(&self.name, program.to_string(), ServicePlan::default())
            })
        });
        let start = FailedStart {
            owner: self.owner,
            at: self.began,
            problem: "the daemon ended while it was pending; start it again".to_owned(),
            unlisted,
        };
        (key, start)
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::{Caller, Principal, ProjectView, Scope};

    use super::*;
    use crate::service::failed_starts::FailedStarts;
    use crate::service::workspace::NameScope;

    /// As version 1 writes it.
    const FIXTURE: &str = r#"{"version":1,"starts":[
        {"owner":{"principal":"uid:7","session":"s"},"name":"web","workspace":"/w/ostler.toml",
         "began":"2026-11-29T08:00:00Z"},
        {"owner":{"principal":"uid:7"},"name":"own","began":"2026-11-29T08:00:00Z",
         "program":"sleep"}]}"#;

    fn file(bytes: Option<&str>) -> (tempfile::TempDir, PendingStartFile) {
        let dir = tempfile::tempdir().expect("a directory");
        let file = PendingStartFile::new(dir.path());
        if let Some(bytes) = bytes {
            fs::write(&file.0, bytes).expect("written");
        }
        (dir, file)
    }

    #[test]
    fn every_later_version_reads_version_1() {
        let (_dir, file) = file(Some(FIXTURE));
        let found = file.read_interrupted().expect("it is read");
        assert_eq!(found.len(), 2);
        let failed = FailedStarts::default();
        let owner = found[1].1.owner.clone();
        assert_eq!(owner.principal, Principal::unix(7));
        for (key, start) in found {
            failed.insert(key, start);
        }
        let caller = Caller {
            owner,
            scope: Scope::Principal,
            projects: ProjectView::default(),
        };
        let web = ServiceKey::new(&caller, Some(PathBuf::from("/w/ostler.toml")), "web");
        let text = failed.find(&caller, &web, None).expect("it is told");
        assert!(
            text.contains("the daemon ended while it was pending"),
            "{text}"
        );
        let rows = failed.unlisted(&caller, NameScope::Workspace(None));
        let rows: Vec<_> = rows.iter().map(|it| (&*it.name, &*it.command)).collect();
        assert_eq!(rows, [("own", "sleep")]);
    }

    #[test]
    fn what_is_written_is_read_and_nothing_is_no_file() {
        let (_dir, file) = file(None);
        let start = PendingStart {
            owner: serde_json::from_str(r#"{"principal":"uid:7"}"#).expect("an owner"),
            name: "own".to_owned(),
            workspace: Some(ByteString::from(Path::new("/w/ostler.toml"))),
            began: Timestamp::now(),
            program: Some(ByteString::from("sleep")),
        };
        file.write(vec![start.clone()]);
        let stored: PendingStarts =
            serde_json::from_slice(&fs::read(&file.0).expect("a file")).expect("JSON");
        assert_eq!(stored.starts, [start]);
        file.write(Vec::new());
        assert!(!file.0.exists());
        assert!(file.read_interrupted().expect("read").is_empty());
    }

    #[test]
    fn a_damaged_file_holds_no_start_and_a_newer_one_is_refused() {
        let (_dir, damaged) = file(Some("{"));
        assert!(damaged.read_interrupted().expect("read").is_empty());
        let (_dir, newer) = file(Some(r#"{"version":9,"starts":[]}"#));
        assert!(matches!(
            newer.read_interrupted(),
            Err(Error::NewerFile { .. })
        ));
    }
}
