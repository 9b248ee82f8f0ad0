//! The baseline: a program on a pseudo-terminal, read and written directly.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// The size of one read in bytes.
const READ_BYTES: usize = 4_096;

/// A program with a pseudo-terminal as its streams.
#[derive(Debug)]
pub(super) struct RawPty {
    child: Child,
    master: File,
}

impl RawPty {
    /// Starts it; `raw` turns echo and line editing off first.
    pub(super) fn start(command: &mut Command, raw: bool) -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal: OwnedFd = open(name, flags, Mode::empty())?;
        if raw {
            let mut settings = tcgetattr(&terminal)?;
            settings.make_raw();
            tcsetattr(&terminal, OptionalActions::Now, &settings)?;
        }
        command
            .stdin(Stdio::from(terminal.try_clone()?))
            .stdout(Stdio::from(terminal.try_clone()?))
            .stderr(Stdio::from(terminal));
        let child = command.spawn().context("a program on a bare terminal")?;
        // The command holds the other side of the terminal open until it is given other streams.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Self {
            child,
            master: File::from(master),
        })
    }

    /// Types one byte and reads it back, `count` times.
    pub(super) fn echo(&mut self, count: usize) -> Result<Vec<Duration>> {
        let mut took = Vec::with_capacity(count);
        let mut buffer = [0; READ_BYTES];
        for _ in 0..count {
            let begin = Instant::now();
            self.master.write_all(b"x")?;
            let read = self.master.read(&mut buffer)?;
            took.push(begin.elapsed());
            ensure!(&buffer[..read] == b"x", "it echoed {:?}", &buffer[..read]);
        }
        Ok(took)
    }

    pub(super) fn write(&mut self, keys: &[u8]) -> Result<()> {
        self.master.write_all(keys)?;
        Ok(())
    }

    /// Reads the next output; empty once no process holds the other side of the terminal.
    pub(super) fn read(&mut self) -> Result<Vec<u8>> {
        let mut buffer = vec![0; READ_BYTES];
        let read = match self.master.read(&mut buffer) {
            Ok(read) => read,
            // The kernel reports a closed other side by this error.
            Err(error) if error.raw_os_error() == Some(EIO) => 0,
            Err(error) => return Err(error.into()),
        };
        buffer.truncate(read);
        Ok(buffer)
    }

    pub(super) fn end(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

const EIO: i32 = 5;
