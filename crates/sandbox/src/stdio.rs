//! Pipes or a terminal between a command and what reads its output.

use std::os::fd::OwnedFd;

use ostler_model::exit_record::STEP_TERMINAL;
use ostler_model::{StreamName, TermSize};
use ostler_sys::errno::errno_of;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::spawn::{SpawnStep, memory};

/// How the standard streams of a command are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio<'a> {
    /// Pipes for standard output and error; standard input is the null device.
    Null,
    /// The same, but standard input is a file with these bytes: where the null device cannot be
    /// opened by the command, or there is input.
    Bytes(&'a [u8]),
    /// Pipes for all three.
    Piped,
    /// A terminal of this size for all three.
    Terminal(TermSize),
}

/// The child's descriptors and ours.
#[derive(Debug)]
pub struct Channels {
    /// The child's descriptors 0, 1 and 2; each of these numbers is 3 or more.
    pub child: [OwnedFd; 3],
    /// The shim's ends that output is read from.
    pub sources: Vec<(StreamName, OwnedFd)>,
    /// Where input is written; none for a terminal, which is written through the descriptor that is
    /// read.
    pub input: Option<OwnedFd>,
    /// Whether the child's descriptors are a terminal.
    pub terminal: bool,
}

impl Channels {
    /// Opens the channels.
    ///
    /// # Errors
    /// As pipe(2), memfd_create(2) and posix_openpt(3).
    pub fn open(stdio: Stdio<'_>) -> Result<Self, Errno> {
        open_channels(stdio)
    }
}

/// The step at which a spawn fails when the channels cannot be opened.
#[must_use]
pub const fn failing_step(stdio: Stdio<'_>) -> &'static str {
    match stdio {
        Stdio::Terminal(_) => STEP_TERMINAL,
        Stdio::Null | Stdio::Bytes(_) | Stdio::Piped => SpawnStep::Stdio.name(),
    }
}

fn open_channels(stdio: Stdio<'_>) -> Result<Channels, Errno> {
    let (stdin, input) = match stdio {
        Stdio::Terminal(size) => return terminal(size),
        Stdio::Null => (dev_null()?, None),
        Stdio::Bytes(bytes) => (stdin_file(bytes)?, None),
        Stdio::Piped => {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&write, true)?;
            (read, Some(write))
        }
    };
    let (out, child_out) = output_pipe()?;
    let (err, child_err) = output_pipe()?;
    Ok(Channels {
        child: [
            above_stdio(stdin)?,
            above_stdio(child_out)?,
            above_stdio(child_err)?,
        ],
        sources: vec![(StreamName::Stdout, out), (StreamName::Stderr, err)],
        input,
        terminal: false,
    })
}

fn stdin_file(bytes: &[u8]) -> Result<OwnedFd, Errno> {
    memory::memfd_with("ostler-stdin", bytes).map_err(|error| errno_of(&error))
}

fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // Reads must not block; the child's end is another open file description and blocks.
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

fn terminal(size: TermSize) -> Result<Channels, Errno> {
    use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    set_size(&master, size)?;
    let slave = above_stdio(ioctl_tiocgptpeer(&master, flags)?)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    let (out, err) = (slave.try_clone(), slave.try_clone());
    let copies = (
        out.map_err(|error| errno_of(&error))?,
        err.map_err(|error| errno_of(&error))?,
    );
    Ok(Channels {
        child: [slave, copies.0, copies.1],
        sources: vec![(StreamName::Pty, master)],
        // Written through the same description as it is read.
        input: None,
        terminal: true,
    })
}

/// Sets the size of a terminal.
///
/// # Errors
/// As tcsetwinsize(3).
pub fn set_size(terminal: &OwnedFd, size: TermSize) -> Result<(), Errno> {
    let size = rustix::termios::Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(terminal, size)
}

fn dev_null() -> Result<OwnedFd, Errno> {
    use rustix::fs::{Mode, OFlags, open};
    open(
        c"/dev/null",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// The same descriptor under a number that the child's dup2(2) cannot overwrite.
fn above_stdio(descriptor: OwnedFd) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    if descriptor.as_raw_fd() > 2 {
        Ok(descriptor)
    } else {
        rustix::io::fcntl_dupfd_cloexec(&descriptor, 3)
    }
}
