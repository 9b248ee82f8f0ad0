//! The input and the result of detection.

use std::path::Path;

use ostler_model::{ByteString, Command, ReadyRule};

/// The input of detection.
#[derive(Debug, Clone, Copy)]
pub struct DetectionQuery<'a> {
    /// The command.
    pub command: &'a Command,
    /// Its absolute working directory.
    pub cwd: &'a Path,
    /// The variables of the request: `PORT` is looked up here.
    pub env: &'a [(ByteString, ByteString)],
}

/// Reads files of a workspace: `package.json`, `Procfile`.
pub trait WorkspaceFiles {
    /// The whole file; none where it is missing, too large or unreadable.
    fn read(&self, path: &Path) -> Option<Vec<u8>>;
}

/// A workspace without files.
#[derive(Debug, Clone, Copy)]
pub struct NoFiles;

impl WorkspaceFiles for NoFiles {
    fn read(&self, _path: &Path) -> Option<Vec<u8>> {
        None
    }
}

/// A command that was detected as a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedService {
    /// The id of the table's entry.
    pub id: String,
    /// The default name of the service.
    pub name: String,
    /// A title for people: `Vite development server`.
    pub title: String,
    /// The readiness rule, with the port that its command line or environment requests.
    pub ready: ReadyRule,
    /// Variables added to its environment unless the request sets them (`PYTHONUNBUFFERED=1`).
    pub env: Vec<(ByteString, ByteString)>,
    /// Whether it needs a terminal.
    pub terminal: bool,
    /// Arguments that set its port, with `{port}` for the number, to append to the command as
    /// given; empty where the variable `PORT` sets it, none where nothing is known to, or where its
    /// command line requests a port already.
    pub port_arguments: Option<Vec<String>>,
    /// The command after wrappers and scripts are resolved: `vite --port 3000`.
    pub normalised: String,
}
