//! A server of PostgreSQL for the duration of a test.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::postgres::PostgresSettings;

/// An unprivileged user: the server refuses to run as root.
const NOBODY: u32 = 65_534;

/// A running server, reached by a socket in a temporary directory.
#[derive(Debug)]
pub(crate) struct TestDatabaseServer {
    process: Child,
    dir: tempfile::TempDir,
}

impl TestDatabaseServer {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let as_nobody = geteuid().is_root();
        if as_nobody {
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let programs = programs(dir.path());
        let command = |name: &str| {
            let mut command = Command::new(programs.join(name));
            command.current_dir(dir.path()).arg("-D").arg("data");
            if as_nobody {
                command.uid(NOBODY).gid(NOBODY);
            }
            command
        };
        let initialized = command("initdb")
            .args([
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ])
            .output()
            .unwrap();
        assert!(initialized.status.success(), "{initialized:?}");
        let mut process = command("postgres")
            .arg("-k")
            .arg(dir.path())
            .args(["-c", "listen_addresses=", "-c", "fsync=off"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        let mut lines = log.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("ready to accept connections")));
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, dir }
    }

    /// The settings of a ledger with this name, in its own schema.
    pub(crate) fn settings(&self, name: &str) -> PostgresSettings {
        let socket = self.dir.path().display();
        let url = format!("postgresql:///postgres?user=postgres&host={socket}");
        let schema: String = name.chars().take(60).collect();
        PostgresSettings {
            address: url.parse().unwrap(),
            schema: schema.parse().unwrap(),
            ledger: name.to_owned(),
            password: None,
        }
    }

    /// Executes statements as the owner of the server; returns the first column of the last row.
    pub(crate) fn execute(&self, sql: &str) -> Option<String> {
        self.execute_while(sql, || {})
    }

    /// The same; the connection is open until `action` returns.
    pub(crate) fn execute_while(&self, sql: &str, action: impl FnOnce()) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let settings = self.settings("public");
            let (client, connection) = settings.address.config().connect(NoTls).await.unwrap();
            let connection = runtime.spawn(connection);
            let messages = client.simple_query(sql).await.unwrap();
            action();
            drop(client);
            connection.await.unwrap().unwrap();
            let rows = messages.iter().filter_map(|message| {
                let SimpleQueryMessage::Row(row) = message else {
                    return None;
                };
                row.get(0).map(str::to_owned)
            });
            rows.last()
        })
    }

    /// Stops all processes of the server where they are.
    pub(crate) fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Lets them go on.
    pub(crate) fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, signal: Signal) {
        let leader = self.process.id();
        let children = format!("/proc/{leader}/task/{leader}/children");
        let children = std::fs::read_to_string(children).unwrap();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        let all = children.chain([leader.cast_signed()]);
        for pid in all.filter_map(Pid::from_raw) {
            // One that ended meanwhile needs nothing.
            let _gone = kill_process(pid, signal);
        }
    }
}

impl Drop for TestDatabaseServer {
    fn drop(&mut self) {
        // It ends its processes, and keeps nothing.
        self.resume();
        kill_process(Pid::from_child(&self.process), Signal::QUIT).unwrap();
        self.process.wait().unwrap();
    }
}

/// The directory of the server's programs: of the distribution, or a copy of what the setup
/// unpacked, which may be where the unprivileged user has no access.
fn programs(copies: &Path) -> PathBuf {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/debian");
    if let Some(installed) = programs_below(Path::new("/")) {
        return installed;
    }
    if programs_below(&unpacked).is_some() {
        for part in ["usr/lib", "usr/share"] {
            let to = copies.join(part);
            std::fs::create_dir_all(&to).unwrap();
            let from = unpacked.join(part).join("postgresql");
            let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
            assert!(copied.unwrap().success());
        }
    }
    let found = programs_below(copies);
    found.expect("PostgreSQL is not there; `cargo xtask setup` installs it")
}

fn programs_below(root: &Path) -> Option<PathBuf> {
    let versions = root.join("usr/lib/postgresql").read_dir();
    let versions = versions.into_iter().flatten().map_while(Result::ok);
    versions
        .map(|version| version.path().join("bin"))
        .find(|bin| bin.join("initdb").exists())
}
