//! An engine for one test, and helpers for tests of terminals.

use std::future::Future;
use std::io::{BufRead, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::Failed;
use ostler::model::{ByteString, Caller, Cursor, TermSize};
use ostler::terminal::InputPiece;
use ostler::{
    ClientKind, Engine, ExecutionInfo, Settings, StartRequest, TerminalEvent, TerminalEvents,
    TerminalInput, TerminalPageQuery, WaitEnd, WaitFor, ZygoteConfig,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Timeout of every wait in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Polling interval where there is no notification.
const LOOK: Duration = Duration::from_millis(5);
/// The first argument with which this program runs as an embedder of the engine.
pub(crate) const EMBEDDER_ARGUMENT: &str = "__embedder";

/// Whether sessions outlive the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZygoteMode {
    /// They end with it: threads of this program spawn them.
    No,
    /// They outlive it: this program is the zygote as well.
    Yes,
}

/// Runs one test on its own runtime; cleans up also when the test fails.
pub(crate) fn run<F: Future<Output = ()>>(
    kept: ZygoteMode,
    test: impl FnOnce(EngineFixture) -> F,
) -> Result<(), Failed> {
    let state = TempDir::new()?;
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let test = async { test(EngineFixture::open(state.path(), kept).await).await };
        runtime().block_on(test);
    }));
    let Err(panic) = ended else {
        return Ok(());
    };
    runtime().block_on(async {
        let engine = open(state.path(), kept).await;
        let destroyed = engine.destroy(&engine.caller()).await;
        destroyed.expect("destroyed");
        engine.shutdown().await;
    });
    resume_unwind(panic)
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.expect("a runtime")
}

/// One engine with its own state directory.
pub(crate) struct EngineFixture {
    pub(crate) engine: Engine,
    pub(crate) me: Caller,
    pub(crate) kept: ZygoteMode,
    pub(crate) state: PathBuf,
}

impl EngineFixture {
    /// Opens one over this directory.
    pub(crate) async fn open(state: &Path, kept: ZygoteMode) -> Self {
        let engine = open(state, kept).await;
        Self {
            me: engine.caller(),
            engine,
            kept,
            state: state.to_owned(),
        }
    }

    /// Starts a session of the default size.
    pub(crate) async fn start(&self, words: &[&str]) -> String {
        self.started(request(words)).await
    }

    /// Starts a session from this request.
    pub(crate) async fn started(&self, request: StartRequest) -> String {
        let info = self.engine.start(&self.me, request).await;
        info.expect("it starts").id.to_string()
    }

    /// An interactive shell without user settings; returns when its prompt is shown.
    pub(crate) async fn shell(&self) -> String {
        let mut request = request(&["bash", "--norc", "--noprofile", "-i"]);
        request.options.set_env = vec![("PS1".into(), "ready> ".into())];
        let id = self.started(request).await;
        self.seen(&id, "ready> ").await;
        id
    }

    pub(crate) fn info(&self, id: &str) -> ExecutionInfo {
        self.engine.info(&self.me, id).expect("it is known")
    }

    /// The session's status: running, exited or killed.
    pub(crate) fn status(&self, id: &str) -> &'static str {
        self.info(id).status().session
    }

    /// The OS pid of a running session.
    pub(crate) fn pid(&self, id: &str) -> u32 {
        self.info(id).state.pid.expect("it has a process")
    }

    /// All output in the view.
    pub(crate) async fn output(&self, id: &str) -> String {
        let whole = TerminalPageQuery::default();
        let page = self.engine.read_terminal(&self.me, id, whole).await;
        String::from_utf8(page.expect("readable").data).expect("text")
    }

    pub(crate) fn events(&self, id: &str) -> TerminalEvents {
        let events = self.engine.terminal_events(&self.me, id, Cursor::START);
        events.expect("it is known")
    }

    /// Waits until the output, from the start, has this text; returns everything up to there.
    pub(crate) async fn seen(&self, id: &str, text: &str) -> String {
        self.seen_times(id, text, 1).await
    }

    /// As `seen`, for a text that comes several times.
    pub(crate) async fn seen_times(&self, id: &str, text: &str, times: usize) -> String {
        let mut events = self.events(id);
        let mut seen = Vec::new();
        let looking = async {
            while String::from_utf8_lossy(&seen).matches(text).count() < times {
                match events.next().await.expect("readable") {
                    Some(TerminalEvent::Output { data, .. }) => seen.extend(data),
                    Some(TerminalEvent::Gap { .. }) => {}
                    Some(TerminalEvent::Exit(_)) | None => {
                        panic!("no {text:?} in {:?}", String::from_utf8_lossy(&seen))
                    }
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        assert!(
            found.is_ok(),
            "no {text:?} in {:?}",
            String::from_utf8_lossy(&seen)
        );
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// Types pieces; fails unless all are accepted.
    pub(crate) async fn keys(&self, id: &str, pieces: Vec<InputPiece>) {
        let typing = TerminalInput {
            pieces,
            lease: None,
        };
        let typed = self.engine.send_input(&self.me, id, typing).await;
        let typed = typed.expect("it takes input");
        assert_eq!(typed.bytes, typed.accepted);
    }

    /// Types a line.
    pub(crate) async fn line(&self, id: &str, text: &str) {
        self.keys(id, vec![InputPiece::Text(text.to_owned()), key("enter")])
            .await;
    }

    /// Waits for the end of the session.
    pub(crate) async fn ended(&self, id: &str) -> ExecutionInfo {
        let wait = self
            .engine
            .wait(&self.me, id, &WaitFor::Exit, Some(PATIENCE));
        let waited = wait.await.expect("it is known");
        assert_eq!(waited.end, WaitEnd::Exit, "{id} goes on");
        waited.info
    }

    /// Shuts the test's engine down with everything in it.
    pub(crate) async fn close(self) {
        self.engine.destroy(&self.me).await.expect("destroyed");
        self.engine.shutdown().await;
    }
}

/// Opens an engine over a directory.
pub(crate) async fn open(state: &Path, kept: ZygoteMode) -> Engine {
    let keeper = match kept {
        ZygoteMode::No => ZygoteConfig::InProcess,
        ZygoteMode::Yes => ZygoteConfig::Executable(std::env::current_exe().expect("a path")),
    };
    let mut settings = Settings::new(state);
    let path = std::env::var_os("PATH").expect("a PATH");
    settings.base_env = vec![
        ("PATH".into(), path.into()),
        ("HOME".into(), "/nonexistent".into()),
        ("LANG".into(), "C.UTF-8".into()),
    ];
    settings.grace = Duration::from_millis(500);
    Engine::with(settings, keeper).await.expect("an engine")
}

/// A request for a session of 80 by 24 cells.
pub(crate) fn request(words: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(words.iter().copied(), "/tmp");
    request.options.pty = Some(TermSize { cols: 80, rows: 24 });
    request.client_kind = ClientKind::Pty;
    request
}

/// A key by its name.
pub(crate) fn key(name: &str) -> InputPiece {
    InputPiece::Key(name.parse().expect("a key"))
}

/// An environment variable.
pub(crate) fn var(name: &str, value: &str) -> (ByteString, ByteString) {
    (name.into(), value.into())
}

/// Runs the script with node where it is installed, else a shell with the same behaviour.
pub(crate) fn node<'a>(script: &'a str, instead: &'a str) -> Vec<&'a str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::split_paths(&path).any(|dir| dir.join("node").is_file());
    if here {
        vec!["node", "-e", script]
    } else {
        vec!["sh", "-c", instead]
    }
}

/// Polls until the condition holds.
pub(crate) async fn until(what: &str, so: impl Fn() -> bool) {
    let looking = async {
        let mut every = tokio::time::interval(LOOK);
        while !so() {
            every.tick().await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, looking).await;
    assert!(found.is_ok(), "never: {what}");
}

/// Whether the process exists; a zombie does.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Processes with the execution's id in their environment.
pub(crate) fn members(id: &str) -> Vec<u32> {
    let mark = format!("OSTLER_EXECUTION={id}");
    let ours = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            let mut variables = environ.split(|byte| *byte == 0);
            variables.any(|variable| variable == mark.as_bytes())
        })
    };
    let entries = std::fs::read_dir("/proc").expect("a /proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(ours).collect()
}

/// This program run once more, as an embedder with running sessions.
pub(crate) struct Embedder {
    child: Child,
    /// Ids and OS pids of its sessions.
    pub(crate) sessions: Vec<(String, u32)>,
}

impl Embedder {
    /// Starts it over its own state directory and waits until that many sessions run and their
    /// screens were read.
    pub(crate) fn start(state: &Path, kept: ZygoteMode, sessions: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        command
            .args([
                EMBEDDER_ARGUMENT,
                &format!("{kept:?}"),
                &sessions.to_string(),
            ])
            .arg(state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let sessions = lines
            .map(|line| line.expect("readable"))
            .take_while(|line| line != ALL_RUN)
            .map(|line| {
                let (id, pid) = line.split_once(' ').expect("an id and a pid");
                (id.to_owned(), pid.parse().expect("a pid"))
            });
        let sessions = sessions.collect();
        Self { child, sessions }
    }

    /// Its resident memory in kilobytes.
    pub(crate) fn resident_kb(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number
            .and_then(|number| number.parse().ok())
            .expect("a number")
    }

    /// Closes its input: it ends its sessions and exits.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it is ours").success());
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
    }
}

/// What the embedder prints when all its sessions run.
const ALL_RUN: &str = "all run";

/// The embedder: starts its sessions, then sleeps until its input ends or it is killed.
pub(crate) fn embed() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [kept, sessions, state] = arguments.as_slice() else {
        return ExitCode::FAILURE;
    };
    let kept = if kept == "Yes" {
        ZygoteMode::Yes
    } else {
        ZygoteMode::No
    };
    let sessions = sessions.parse().expect("a number");
    let runtime = runtime();
    let engine = runtime.block_on(async {
        let engine = open(Path::new(state), kept).await;
        hold(&engine, sessions).await;
        engine
    });
    let mut nothing = Vec::new();
    let _ended = std::io::stdin().read_to_end(&mut nothing);
    runtime.block_on(async {
        let destroyed = engine.destroy(&engine.caller()).await;
        destroyed.expect("destroyed");
        engine.shutdown().await;
    });
    ExitCode::SUCCESS
}

async fn hold(engine: &Engine, sessions: usize) {
    let me = engine.caller();
    let mut out = std::io::stdout();
    let deaf = "trap '' HUP TERM; echo on; while :; do sleep 300; done";
    let shell: &[&str] = &["bash", "--norc", "--noprofile", "-i"];
    let commands = [shell, &["cat"], &["sh", "-c", deaf]];
    for words in commands.iter().cycle().take(sessions) {
        let info = engine.start(&me, request(words)).await.expect("it starts");
        let pid = info.state.pid.expect("it has a process");
        let screen = engine.screen(&me, &info.id.to_string()).await;
        screen.expect("readable");
        writeln!(out, "{} {pid}", info.id).expect("somebody reads");
    }
    writeln!(out, "{ALL_RUN}").expect("somebody reads");
}
