//! A server of PostgreSQL for a measurement, with its default settings.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::context::BenchContext;
use crate::setup;
use crate::shell;

/// An unprivileged user: the server refuses to run as root.
const NOBODY: u32 = 65_534;

/// A running server, reached by a socket in a temporary directory.
#[derive(Debug)]
pub(super) struct PostgresServer {
    process: Child,
    dir: tempfile::TempDir,
}

impl PostgresServer {
    pub(super) fn start(bench: &BenchContext) -> Result<Self> {
        let dir = tempfile::tempdir_in(&bench.dir).context("a directory for the server")?;
        if geteuid().is_root() {
            chown(dir.path(), Some(NOBODY), Some(NOBODY))?;
        }
        let programs = programs(&setup::servers(bench.workspace))?;
        let mut initialize = command(&programs.join("initdb"), dir.path());
        initialize.args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]);
        shell::capture(&mut initialize)?;
        let mut process = command(&programs.join("postgres"), dir.path())
            .arg("-k")
            .arg(dir.path())
            .args(["-c", "listen_addresses="])
            .stderr(Stdio::piped())
            .spawn()?;
        let log = process.stderr.take().context("no standard error")?;
        let server = Self { process, dir };
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        let is_ready = lines.any(|line| line.contains("ready to accept connections"));
        ensure!(is_ready, "the server ended");
        std::thread::spawn(move || lines.for_each(drop));
        Ok(server)
    }

    /// The address of its first database.
    pub(super) fn url(&self) -> String {
        let socket = self.dir.path().display();
        format!("postgresql:///postgres?user=postgres&host={socket}")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // It ends its processes; its files go with the directory.
        let pid = Pid::from_child(&self.process);
        let _gone = kill_process(pid, Signal::QUIT).is_err();
        let _reaped = self.process.wait().is_err();
    }
}

fn command(program: &Path, dir: &Path) -> Command {
    let mut command = shell::command(program, dir);
    command.args(["-D", "data"]);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// The directory of the server's programs: of the distribution, or unpacked by the setup.
fn programs(unpacked: &Path) -> Result<PathBuf> {
    let roots = [PathBuf::from("/"), unpacked.join("debian")];
    let versions = roots.iter().flat_map(|root| {
        let versions = root.join("usr/lib/postgresql").read_dir();
        versions.into_iter().flatten().map_while(Result::ok)
    });
    versions
        .map(|version| version.path().join("bin"))
        .find(|bin| bin.join("initdb").exists())
        .context("PostgreSQL is not there; `cargo xtask setup` installs it")
}
