//! A separate environment for each test.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A timeout in seconds that only a broken build reaches.
const PATIENCE_S: i64 = 30;

/// The directories of a test, and the daemon that serves them.
pub(crate) struct CliEnv {
    root: TempDir,
    runtime: PathBuf,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CliEnv {
    pub(crate) fn new() -> Self {
        Self::with_runtime("run")
    }

    /// An environment whose sockets are below a directory of this name.
    pub(crate) fn with_runtime(name: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let runtime = root.path().join(name);
        std::fs::create_dir_all(&runtime).unwrap();
        Self { root, runtime }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state/ostler")
    }

    /// The binary with these arguments, in a clean environment, not yet started.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        self.command_for(Path::new(env!("CARGO_BIN_EXE_ostler")), args)
    }

    pub(crate) fn command_for<S: AsRef<OsStr>>(&self, program: &Path, args: &[S]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("TZ", "UTC")
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("XDG_RUNTIME_DIR", &self.runtime)
            .env("TMPDIR", self.path())
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn ostler<S: AsRef<OsStr>>(&self, args: &[S]) -> CommandOutput {
        to_output(self.command(args).output().unwrap())
    }

    /// Runs a command that must succeed; returns its output without the last newline.
    pub(crate) fn stdout_of<S: AsRef<OsStr> + std::fmt::Debug>(&self, args: &[S]) -> String {
        let ran = self.ostler(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        ran.out.trim_end_matches('\n').to_owned()
    }

    pub(crate) fn json<S: AsRef<OsStr> + std::fmt::Debug>(&self, args: &[S]) -> Value {
        serde_json::from_str(&self.stdout_of(args)).unwrap()
    }

    /// Starts a script in the background; returns its id.
    pub(crate) fn background(&self, script: &str) -> String {
        self.stdout_of(&["run", "-d", "sh", "-c", script])
    }

    /// The id of the only execution whose command contains `text`.
    pub(crate) fn find_execution(&self, text: &str) -> String {
        let all = self.json(&["ps", "-a", "--json"]);
        let all = all.as_array().unwrap();
        let found = all
            .iter()
            .find(|info| info["command"].as_str().unwrap().contains(text));
        found.unwrap()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn daemon(&self) -> Option<PidHandle> {
        let version = self.json(&["version", "--json"]);
        version["daemon"]["pid"].as_u64().map(PidHandle::open)
    }

    /// Kills the daemon, and waits until it has exited.
    pub(crate) fn kill_daemon(&self) {
        let daemon = self.daemon().unwrap();
        daemon.send(Signal::KILL);
        daemon.wait();
    }
}

impl Drop for CliEnv {
    fn drop(&mut self) {
        let running = self.ostler(&["ps", "-q"]);
        let ids = running.out.lines();
        let stop: Vec<&str> = ["stop", "--force"].into_iter().chain(ids).collect();
        if stop.len() > 2 {
            self.ostler(&stop);
        }
        self.ostler(&["shutdown"]);
    }
}

pub(crate) fn to_output(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A process that is not a child.
pub(crate) struct PidHandle {
    pub(crate) pid: u64,
    fd: OwnedFd,
}

impl PidHandle {
    pub(crate) fn open(pid: u64) -> Self {
        Self::try_open(pid).unwrap()
    }

    /// The process; none where it is gone.
    pub(crate) fn try_open(pid: u64) -> Option<Self> {
        let raw = Pid::from_raw(pid.try_into().unwrap()).unwrap();
        match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(fd) => Some(Self { pid, fd }),
            Err(rustix::io::Errno::SRCH) => None,
            Err(error) => panic!("{pid}: {error}"),
        }
    }

    pub(crate) fn send(&self, signal: Signal) {
        match pidfd_send_signal(&self.fd, signal) {
            // It has exited by itself meanwhile.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => panic!("{signal:?}: {error}"),
        }
    }

    /// Waits for its exit.
    pub(crate) fn wait(&self) {
        wait_readable(&self.fd);
    }
}

/// Waits until a process was stopped by a signal. The kernel notifies only its parent, so this
/// polls; each check is a system call.
pub(crate) fn wait_process_stopped(pid: u64) {
    let end = Instant::now() + Duration::from_secs(PATIENCE_S.unsigned_abs());
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        assert!(Instant::now() < end, "{pid} does not stop");
        std::thread::yield_now();
    }
}

/// Waits until a descriptor is readable or closed.
pub(crate) fn wait_readable(fd: impl std::os::fd::AsFd) {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
    let patience = Timespec {
        tv_sec: PATIENCE_S,
        tv_nsec: 0,
    };
    assert_eq!(
        poll(&mut fds, Some(&patience)),
        Ok(1),
        "nothing came in time"
    );
}

/// A child whose standard output is read line by line.
pub(crate) struct LineChild {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
    pub(crate) is_finished: bool,
}

impl LineChild {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            out,
            is_finished: false,
        }
    }

    /// The next line; empty at the end.
    pub(crate) fn next(&mut self) -> String {
        if self.out.buffer().is_empty() {
            wait_readable(self.out.get_ref().as_fd());
        }
        let mut line = String::new();
        self.is_finished = self.out.read_line(&mut line).unwrap() == 0;
        line.trim_end_matches('\n').to_owned()
    }

    /// Reads up to a line that contains `text`.
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            let line = self.next();
            assert!(!self.is_finished, "'{text}' never came");
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn send(&mut self, signal: Signal) {
        PidHandle::open(self.child.id().into()).send(signal);
    }

    /// Waits for its exit; returns its exit code, -n for signal n.
    pub(crate) fn end(mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        drop(self.stdin.take());
        PidHandle::open(self.child.id().into()).wait();
        let status = self.child.wait().unwrap();
        status
            .code()
            .unwrap_or_else(|| -status.signal().unwrap_or_default())
    }
}

/// An MCP client over standard streams.
pub(crate) struct McpStdioClient {
    pub(crate) lines: LineChild,
    next: u64,
}

impl McpStdioClient {
    /// Starts a proxy and performs the handshake.
    pub(crate) fn start(command: Command) -> Self {
        let mut client = Self {
            lines: LineChild::start(command),
            next: 0,
        };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}
        });
        let answer = client.request("initialize", params);
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let stdin = self.lines.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a request; returns its response.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.next();
            assert!(!line.is_empty(), "no answer to {method}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Calls a tool; returns all its text, and whether it is an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let blocks = result["content"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        let text: Vec<&str> = texts.collect();
        (text.join("\n"), result["isError"] == true)
    }

    /// Calls a tool that must succeed.
    pub(crate) fn call_ok(&mut self, tool: &str, arguments: Value) -> String {
        let (text, error) = self.call(tool, arguments);
        assert!(!error, "{tool}: {text}");
        text
    }
}
