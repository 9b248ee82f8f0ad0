//! The input and the result of detection.

use std::path::Path;

use ostler_model::{ByteString, Command, ReadyRule};

/// What is to be recognised.
#[derive(Debug, Clone, Copy)]
pub struct DetectionQuery<'a> {
    /// The command.
    pub command: &'a Command,
    /// Its absolute working directory.
    pub cwd: &'a Path,
    /// Its environment, as far as it was asked for: `PORT` is looked up here.
    pub env: &'a [(ByteString, ByteString)],
}

/// Reads files of a workspace: `detect_package_script.json`, `Procfile`.
pub trait WorkspaceFiles {
    /// The whole file; none where it is missing, too large or not to be read.
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

/// A command that is a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedService {
    /// The entry of the table.
    pub id: String,
    /// What a service of it is called unless it is given a name.
    pub name: String,
    /// What it is, for people: `Vite development server`.
    pub title: String,
    /// When it is ready, with the port its command line or environment asks for.
    pub ready: ReadyRule,
    /// Variables it is given unless the request sets them (`PYTHONUNBUFFERED=1`).
    pub env: Vec<(ByteString, ByteString)>,
    /// Whether it needs a terminal to work at all.
    pub terminal: bool,
    /// Arguments that give it a port, `{find_port}` standing for the number, appended to the command
    /// as given; empty where `PORT` in its environment does, none where nothing is known to, or
    /// where its command line asks for a port already.
    pub port_arguments: Option<Vec<String>>,
    /// The command it comes down to, after wrappers and scripts: `vite --port 3000`.
    pub normalised: String,
}
