//! A user at a terminal: a pseudo-terminal that runs the binary, read as a screen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use ostler_model::TermSize;
use ostler_terminal::Screen;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::test_env::{CliEnv, PidHandle};

/// A timeout that only a broken build reaches.
const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) const SIZE: TermSize = TermSize { cols: 80, rows: 24 };

/// A terminal, the program on it, and its user.
pub(crate) struct PtyUser {
    master: File,
    slave: OwnedFd,
    child: Child,
    screen: Screen,
    /// All output so far.
    pub(crate) output: Vec<u8>,
    original_settings: String,
}

impl PtyUser {
    pub(crate) fn new(cli: &CliEnv, args: &[&str]) -> Self {
        Self::with_size(cli, args, SIZE)
    }

    pub(crate) fn with_size(cli: &CliEnv, args: &[&str], size: TermSize) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        tcsetwinsize(&master, winsize(size)).unwrap();
        let before = settings(&slave);
        let program = env!("CARGO_BIN_EXE_ostler");
        let words: Vec<&str> = ["--ctty", program]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        let mut command: Command = cli.command_for("setsid".as_ref(), &words);
        command
            .env("TERM", "xterm-256color")
            .env("PS1", "$ ")
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave.try_clone().unwrap());
        Self {
            child: command.spawn().unwrap(),
            master: File::from(master),
            slave,
            screen: Screen::new(size, None),
            output: Vec::new(),
            original_settings: before,
        }
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&mut self, size: TermSize) {
        self.screen.resize(size);
        tcsetwinsize(&self.master, winsize(size)).unwrap();
    }

    pub(crate) fn send(&self, signal: Signal) {
        PidHandle::open(self.child.id().into()).send(signal);
    }

    /// The text of the screen without trailing blanks.
    pub(crate) fn text(&self) -> String {
        self.screen.snapshot().text().trim_end().to_owned()
    }

    pub(crate) fn view(&self) -> ostler_terminal::ScreenSnapshot {
        self.screen.snapshot()
    }

    /// Waits until the screen meets a condition.
    pub(crate) fn wait_until(&mut self, is_done: impl Fn(&str) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_done(&self.text()) {
            assert!(Instant::now() < end, "it never came:\n{}", self.text());
            self.read_output(end);
        }
    }

    /// Waits until the screen contains a text.
    pub(crate) fn wait_text(&mut self, text: &str) {
        self.wait_until(|screen| screen.contains(text));
    }

    /// Reads the next output; false when the terminal was closed.
    fn read_output(&mut self, end: Instant) {
        let left = end.saturating_duration_since(Instant::now());
        let patience = Timespec::try_from(left).unwrap();
        let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        assert_eq!(
            poll(&mut fds, Some(&patience)),
            Ok(1),
            "nothing came:\n{}",
            self.text()
        );
        let mut buffer = [0; 64 * 1024];
        let read = self.master.read(&mut buffer).unwrap();
        self.screen.feed(&buffer[..read]);
        self.output.extend_from_slice(&buffer[..read]);
    }

    /// Waits for the end of the program; returns its exit code. The terminal must be restored by
    /// then.
    pub(crate) fn end(&mut self) -> i32 {
        let process = PidHandle::open(self.child.id().into());
        process.wait();
        let status = self.child.wait().unwrap();
        self.drain();
        assert_eq!(
            settings(&self.slave),
            self.original_settings,
            "the terminal is not as before"
        );
        status.code().unwrap_or(-1)
    }

    /// Reads all pending output.
    pub(crate) fn drain(&mut self) {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        loop {
            let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
            if poll(&mut fds, Some(&now)) != Ok(1) {
                return;
            }
            self.read_output(Instant::now() + PATIENCE);
        }
    }

    /// Whether the terminal's settings are as they were at the start.
    pub(crate) fn has_original_settings(&self) -> bool {
        settings(&self.slave) == self.original_settings
    }

    pub(crate) fn pid(&self) -> u64 {
        self.child.id().into()
    }
}

impl Drop for PtyUser {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn winsize(size: TermSize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// The output of `stty -a`.
fn settings(terminal: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(terminal).unwrap())
}
