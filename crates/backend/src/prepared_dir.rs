//! A directory that is ready to become an execution's: made with its files while its owner (a
//! shim) is idle, renamed when a plan comes. Creating an inode costs 3 to 10 us, and 300 us and more on
//! an ext4 without journal after many files were removed there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ostler_journal::{EVENTS_FILE, OutputWriter};
use ostler_model::ExecutionId;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::execution_dir::{self, EXIT_FILE, temporary_name, write_file};
use crate::spec_file::SPEC_FILE;

/// The prefix of the names of prepared directories.
pub const PREPARED_PREFIX: &str = ".ready-";
/// The number of names that are tried for a directory.
const NAMES_TRIED: usize = 4;
/// How many steps it takes to create all files of a directory.
const STEPS: usize = 4;
/// The step that reserves space for the exit record.
const RESERVE_STEP: usize = 1;
/// How many attempts fail between two executions before the shim stops trying.
const FAILURES_MAX: u32 = 3;
/// Creating a directory that takes longer shows a slow file system, in microseconds.
const SLOW_CREATE_US: u64 = 150;
/// How long the daemon must be silent before a directory is prepared on a quick file system, in
/// milliseconds.
const QUIET_MS: u64 = 10;

/// Makes the directories of one process distinct.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The directory of a shim's next execution, as far as there was time to make it.
#[derive(Debug)]
pub struct DirPreparation {
    /// The process that prepares them, unique on the machine; part of their names.
    owner: String,
    next: Option<PreparedDir>,
    /// The last directory took long to create.
    slow: bool,
    /// How many attempts failed since the last execution.
    failures: u32,
}

impl DirPreparation {
    /// Nothing prepared yet. `owner` names the process, for example by pid and start time; it
    /// becomes a part of file names.
    #[must_use]
    pub const fn new(owner: String) -> Self {
        Self {
            owner,
            next: None,
            slow: false,
            failures: 0,
        }
    }

    /// How long the daemon has to be silent before the next step; none when all is prepared, or
    /// cannot be. Where creating is quick, a shim that is called again at once does better to
    /// leave the processor to others.
    pub fn idle_delay(&self) -> Option<Duration> {
        match &self.next {
            Some(prepared) if prepared.is_complete() => None,
            _ if self.failures >= FAILURES_MAX => None,
            None if !self.slow => Some(Duration::from_millis(QUIET_MS)),
            Some(_) | None => Some(Duration::ZERO),
        }
    }

    /// Creates the next missing file. What cannot be created now is created, or the failure
    /// reported, when it is needed.
    pub fn advance(&mut self, executions: BorrowedFd<'_>) {
        let done = match &mut self.next {
            Some(prepared) => prepared.advance(),
            None => self.create(executions).map(|prepared| {
                self.next = Some(prepared);
            }),
        };
        if done.is_err() {
            self.failures += 1;
            self.discard(executions);
        }
    }

    /// A directory for an execution, and whether it was made before.
    ///
    /// # Errors
    /// As mkdirat(2) and openat(2).
    pub fn acquire(&mut self, executions: BorrowedFd<'_>) -> Result<(PreparedDir, bool), Errno> {
        self.failures = 0;
        match self.next.take() {
            Some(prepared) => Ok((prepared, true)),
            None => Ok((self.create(executions)?, false)),
        }
    }

    /// Takes back one that could not be used.
    pub fn put_back(&mut self, prepared: PreparedDir) {
        self.next = Some(prepared);
    }

    /// Removes the prepared directories.
    pub fn discard(&mut self, executions: BorrowedFd<'_>) {
        if let Some(prepared) = self.next.take() {
            prepared.discard(executions);
        }
    }

    fn create(&mut self, executions: BorrowedFd<'_>) -> Result<PreparedDir, Errno> {
        let started = Instant::now();
        let prepared = PreparedDir::create(executions, &self.owner)?;
        self.slow = started.elapsed() > Duration::from_micros(SLOW_CREATE_US);
        Ok(prepared)
    }
}

/// A directory that is not published yet. Missing files are created when they are needed.
#[derive(Debug)]
pub struct PreparedDir {
    name: String,
    dir: OwnedFd,
    steps: usize,
}

impl PreparedDir {
    /// Makes an empty one.
    fn create(executions: BorrowedFd<'_>, owner: &str) -> Result<Self, Errno> {
        let mut last = Errno::EXIST;
        for _ in 0..NAMES_TRIED {
            let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREPARED_PREFIX}{owner}.{number}");
            match mkdirat(executions, &name, Mode::RWXU) {
                Ok(()) => return Self::open(executions, name),
                // Left by a process of another pid namespace.
                Err(Errno::EXIST) => {}
                Err(errno) => {
                    last = errno;
                    break;
                }
            }
        }
        Err(last)
    }

    fn open(executions: BorrowedFd<'_>, name: String) -> Result<Self, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY | OFlags::NOFOLLOW;
        match openat(executions, &name, flags, Mode::empty()) {
            Ok(dir) => Ok(Self {
                name,
                dir,
                steps: 0,
            }),
            Err(errno) => {
                let _removed = unlinkat(executions, &name, AtFlags::REMOVEDIR);
                Err(errno)
            }
        }
    }

    /// Whether all its files exist.
    const fn is_complete(&self) -> bool {
        self.steps == STEPS
    }

    /// Whether the room for the exit record is reserved in it.
    pub(crate) const fn has_reserve(&self) -> bool {
        self.steps > RESERVE_STEP
    }

    /// Creates its files, including the one that reserves space for the exit record.
    pub(crate) fn reserve(&mut self) -> Result<(), Errno> {
        while !self.has_reserve() {
            self.advance()?;
        }
        Ok(())
    }

    /// Creates the next of its files.
    fn advance(&mut self) -> Result<(), Errno> {
        let dir = self.dir.as_fd();
        match self.steps {
            0 => write_file(dir, SPEC_FILE, b"")?,
            RESERVE_STEP => execution_dir::reserve(dir)?,
            2 => OutputWriter::prepare(dir).map_err(|_| Errno::IO)?,
            3 => write_file(dir, EVENTS_FILE, b"")?,
            _ => return Ok(()),
        }
        self.steps += 1;
        Ok(())
    }

    /// Renames it to the directory of an execution, which appears with its spec or not at all.
    ///
    /// # Errors
    /// As write(2) and renameat(2), with the directory, which can be used again.
    pub fn publish(
        self,
        executions: BorrowedFd<'_>,
        id: ExecutionId,
        spec: &[u8],
    ) -> Result<OwnedFd, (Errno, Self)> {
        let renamed = write_file(self.dir.as_fd(), SPEC_FILE, spec)
            .and_then(|()| renameat(executions, &self.name, executions, id.to_string()));
        match renamed {
            Ok(()) => Ok(self.dir),
            Err(errno) => Err((errno, self)),
        }
    }

    /// Removes it with its files.
    pub fn discard(self, executions: BorrowedFd<'_>) {
        let [segment, index] = OutputWriter::prepared_files();
        let exit = temporary_name(EXIT_FILE);
        for file in [SPEC_FILE, &segment, &index, &exit, EVENTS_FILE] {
            let _absent = unlinkat(&self.dir, file, AtFlags::empty());
        }
        let _removed = unlinkat(executions, &self.name, AtFlags::REMOVEDIR);
    }
}
