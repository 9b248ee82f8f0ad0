//! The question and the answer.

use std::path::Path;

use ostler_model::{Command, ReadyRule, Text};

/// What is to be recognised.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The command.
    pub command: &'a Command,
    /// Its absolute working directory.
    pub cwd: &'a Path,
    /// Its environment, as far as it was asked for: `PORT` is looked up here.
    pub env: &'a [(Text, Text)],
}

/// Reads files of a workspace: `package.json`, `Procfile`.
pub trait Files {
    /// The whole file; none where it is missing, too large or not to be read.
    fn read(&self, path: &Path) -> Option<Vec<u8>>;
}

/// A workspace without files.
#[derive(Debug, Clone, Copy)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _path: &Path) -> Option<Vec<u8>> {
        None
    }
}

/// A command that is a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// The entry of the table.
    pub id: String,
    /// What a service of it is called unless it is given a name.
    pub name: String,
    /// What it is, for people: `Vite development server`.
    pub title: String,
    /// When it is ready, with the port its command line or environment asks for.
    pub ready: ReadyRule,
    /// Variables it is given unless the request sets them (`PYTHONUNBUFFERED=1`).
    pub env: Vec<(Text, Text)>,
    /// Whether it needs a terminal to work at all.
    pub terminal: bool,
    /// Arguments that give it a port, `{port}` standing for the number, appended to the command
    /// as given; empty where `PORT` in its environment does, none where nothing is known to, or
    /// where its command line asks for a port already.
    pub port_arguments: Option<Vec<String>>,
    /// The command it comes down to, after wrappers and scripts: `vite --port 3000`.
    pub normalised: String,
}
