//! Names and primitives of the files in an execution's output directory.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::atomic_file::{AtomicFile, PRIVATE_MODE};
use crate::index::{HEADER_BYTES, IndexHeader, StreamCounters};
use crate::reach;

/// The suffix of segments.
pub(crate) const SEGMENT: &str = "seg";
/// The suffix of indexes.
pub(crate) const INDEX: &str = "idx";
/// The suffix of an index that is being written as a whole, and renamed when complete.
pub(crate) const NEW_INDEX: &str = "idx.new";
/// The suffix of compressed segments.
pub(crate) const COMPRESSED: &str = "seg.zst";
/// The truncation point: everything below it was cleared.
pub(crate) const FLOOR: &str = "output.floor";
const PREFIX: &str = "output.";

/// The name of one file of a segment.
pub(crate) fn segment_file_name(number: u32, suffix: &str) -> String {
    format!("{PREFIX}{number}.{suffix}")
}

/// Formats names without allocation.
pub(crate) struct NameBuffer {
    bytes: [u8; 32],
    len: usize,
}

impl NameBuffer {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; 32],
            len: 0,
        }
    }

    /// The name; empty only for a suffix that is too long for the buffer.
    pub(crate) fn write(&mut self, number: u32, suffix: &str) -> &str {
        self.len = 0;
        if write!(self, "{PREFIX}{number}.{suffix}").is_err() {
            self.len = 0;
        }
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl std::fmt::Write for NameBuffer {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        let target = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        target.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// One segment in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentEntry {
    pub(crate) number: u32,
    pub(crate) has_index: bool,
    pub(crate) has_segment: bool,
    pub(crate) has_compressed: bool,
}

/// The content of an execution's output directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct SegmentListing {
    /// The segments by number.
    pub(crate) segments: Vec<SegmentEntry>,
    /// Whether there is a truncation point.
    pub(crate) has_floor: bool,
    /// Whether there is a memory extent, which records the end of output in memory.
    pub(crate) has_reach: bool,
}

/// Lists the segments in a directory.
pub(crate) fn list(dir: BorrowedFd<'_>) -> io::Result<SegmentListing> {
    let mut listing = SegmentListing::default();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name == FLOOR {
            listing.has_floor = true;
        } else if name == reach::REACH {
            listing.has_reach = true;
        } else if let Some((number, suffix)) = parse(name) {
            listing.add(number, suffix);
        }
    }
    listing.segments.sort_unstable();
    Ok(listing)
}

impl SegmentListing {
    /// Whether it holds this segment uncompressed.
    pub(crate) fn has_raw(&self, number: u32) -> bool {
        let entry = self.segments.iter().find(|entry| entry.number == number);
        entry.is_some_and(|one| one.has_index && one.has_segment && !one.has_compressed)
    }

    fn add(&mut self, number: u32, suffix: &str) {
        let existing = self.segments.iter().position(|one| one.number == number);
        let index = existing.unwrap_or_else(|| {
            self.segments.push(SegmentEntry {
                number,
                has_index: false,
                has_segment: false,
                has_compressed: false,
            });
            self.segments.len() - 1
        });
        let one = &mut self.segments[index];
        one.has_index |= suffix == INDEX;
        one.has_segment |= suffix == SEGMENT;
        one.has_compressed |= suffix == COMPRESSED;
    }
}

/// Parses a number and suffix out of a name, spelled exactly as [`segment_file_name`] does.
fn parse(file: &str) -> Option<(u32, &str)> {
    let (digits, suffix) = file.strip_prefix(PREFIX)?.split_once('.')?;
    let number = digits.parse().ok()?;
    let is_known_suffix = [SEGMENT, INDEX, COMPRESSED].contains(&suffix);
    (is_known_suffix && NameBuffer::new().write(number, suffix) == file).then_some((number, suffix))
}

/// Opens a file of a segment; none where it does not exist any more. What is in the place of one,
/// such as a named pipe, is refused at once.
pub(crate) fn open(
    dir: BorrowedFd<'_>,
    number: u32,
    suffix: &str,
    flags: OFlags,
) -> io::Result<Option<File>> {
    let mut buffer = NameBuffer::new();
    open_named(dir, buffer.write(number, suffix), flags)
}

/// For regular files: the others would wait for somebody, or become the controlling terminal.
const OPEN_FLAGS: OFlags = OFlags::CLOEXEC
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

fn open_named(dir: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<Option<File>> {
    let file = match rustix::fs::openat(dir, name, flags | OPEN_FLAGS, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        // A directory, a pipe that nobody reads or a socket, a link that leads to itself.
        Err(Errno::ISDIR | Errno::NXIO | Errno::LOOP) => return Err(not_a_file()),
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.is_file() {
        Ok(Some(file))
    } else {
        Err(not_a_file())
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Writes all of `bytes` at the end of the file.
pub(crate) fn write(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    #[cfg(test)]
    let bytes = crate::test_disk::allow(file, bytes)?;
    file.write_all(bytes)
}

/// Renames a file of a segment to another suffix, and replaces the file of that name.
pub(crate) fn rename(dir: BorrowedFd<'_>, number: u32, from: &str, to: &str) -> io::Result<()> {
    let (mut old, mut new) = (NameBuffer::new(), NameBuffer::new());
    rustix::fs::renameat(dir, old.write(number, from), dir, new.write(number, to))?;
    Ok(())
}

/// Reads from offset `at` on, as much of `buffer` as the file has.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut filled = 0;
    // Offsets out of damaged records may exceed the maximum of files.
    let reachable =
        i64::try_from(at).is_ok_and(|at| at.checked_add_unsigned(buffer.len() as u64).is_some());
    while reachable && filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads from offset `at` on with one system call: as much of `buffer` as the file has, or less where
/// the call returns early (read(2)). For readers that read on later.
pub(crate) fn read_once_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The truncation point: the offset below which everything was cleared, and the counters of each
/// stream there. Encoded like the header of a segment that begins at that offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TruncationPoint {
    pub(crate) offset: u64,
    pub(crate) tallies: StreamCounters,
}

/// Reads the truncation point; at 0 where nothing was cleared, or where the file is invalid.
///
/// # Errors
/// When it cannot be read. Where something else is in its place, the error names it: callers read it
/// with the rest of the directory.
pub(crate) fn read_floor(dir: BorrowedFd<'_>) -> io::Result<TruncationPoint> {
    let opened = open_named(dir, FLOOR, OFlags::RDONLY);
    let Some(file) = opened.map_err(name_floor)? else {
        return Ok(TruncationPoint::default());
    };
    let mut raw = [0; HEADER_BYTES];
    let filled = read_at(&file, &mut raw, 0)?;
    let header = IndexHeader::decode(&raw[..filled]);
    Ok(
        header.map_or(TruncationPoint::default(), |header| TruncationPoint {
            offset: header.base,
            tallies: header.counters,
        }),
    )
}

fn name_floor(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::InvalidInput {
        let message = format!("{FLOOR} is not a regular file");
        return io::Error::new(io::ErrorKind::InvalidInput, message);
    }
    error
}

/// A truncation point that is to replace another one: it has its inode already.
pub(crate) struct NewFloor<'a>(AtomicFile<'a>);

impl<'a> NewFloor<'a> {
    /// # Errors
    /// As openat(2).
    pub(crate) fn create(dir: BorrowedFd<'a>) -> io::Result<Self> {
        AtomicFile::create_at(dir, FLOOR, PRIVATE_MODE).map(Self)
    }

    /// Gives it its content, of which no part is there before; may be tried again.
    pub(crate) fn write(&self, floor: TruncationPoint) -> io::Result<()> {
        write_at_start(self.0.file(), &encode(floor))
    }

    /// Replaces the truncation point atomically.
    pub(crate) fn commit(self) -> io::Result<()> {
        self.0.commit()
    }
}

/// Writes a truncation point over the one that there is, which takes no space on most file systems.
/// A reader who sees it half written takes it for none, for as long as the write(2) lasts.
///
/// # Errors
/// When there is none yet, or as pwrite(2).
pub(crate) fn overwrite_floor(dir: BorrowedFd<'_>, floor: TruncationPoint) -> io::Result<()> {
    let file = open_named(dir, FLOOR, OFlags::WRONLY)?;
    let file = file.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    write_at_start(&file, &encode(floor))
}

fn write_at_start(file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    file.write_all_at(bytes, 0)
}

fn encode(floor: TruncationPoint) -> [u8; HEADER_BYTES] {
    let header = IndexHeader {
        number: 0,
        base: floor.offset,
        counters: floor.tallies,
    };
    header.encode()
}

/// Opens a directory for the functions of this module.
pub(crate) fn open_dir(dir: &std::path::Path) -> io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(dir, flags, Mode::empty())?)
}

/// Removes a file of a segment, which may not exist any more.
pub(crate) fn remove(dir: BorrowedFd<'_>, number: u32, suffix: &str) -> io::Result<bool> {
    match rustix::fs::unlinkat(
        dir.as_fd(),
        segment_file_name(number, suffix),
        rustix::fs::AtFlags::empty(),
    ) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
