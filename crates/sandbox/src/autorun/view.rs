//! [`WorkspaceView`]: reads a workspace and decides which of its entries are new.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ostler_model::FileKind;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};

use crate::openat2::{BeneathRoot, is_absent, join};
use crate::whiteout::is_whiteout;

/// What counts as created or changed.
#[derive(Debug)]
pub(super) enum ChangeFilter<'a> {
    /// Entries with a change time (ctime) at or after this one, in seconds and nanoseconds: only
    /// the kernel sets that time.
    Since((i64, u64)),
    /// Entries of the upper layer.
    Upper,
    /// These paths.
    Paths(&'a BTreeSet<&'a [u8]>),
}

/// A workspace, merged with the upper layer of an overlay where there is one.
#[derive(Debug)]
pub(super) struct WorkspaceView<'a> {
    host: BeneathRoot,
    upper: Option<BeneathRoot>,
    new: ChangeFilter<'a>,
}

/// The names of a directory with their kinds, and whether the listing is complete.
pub(super) type DirListing = (Vec<(Vec<u8>, FileKind)>, bool);

impl<'a> WorkspaceView<'a> {
    pub(super) fn open(
        workspace: &Path,
        upper: Option<&Path>,
        new: ChangeFilter<'a>,
    ) -> io::Result<Self> {
        Ok(Self {
            host: BeneathRoot::open(workspace)?,
            upper: upper.map(BeneathRoot::open).transpose()?,
            new,
        })
    }

    /// Lists a directory: all names, or only those that may be new.
    pub(super) fn list(&self, path: &[u8], all: bool, limit: usize) -> io::Result<DirListing> {
        let Some(upper) = &self.upper else {
            return list_names(&self.host, path, limit);
        };
        let (mut found, mut whole) = match list_names(upper, path, limit) {
            Err(error) if all && is_absent(&error) => (Vec::new(), true),
            other => other?,
        };
        if all {
            let (below, all_below) = match list_names(&self.host, path, limit) {
                Err(error) if is_absent(&error) => (Vec::new(), true),
                other => other?,
            };
            whole = whole && all_below;
            let known: BTreeSet<Vec<u8>> = found.iter().map(|(name, _)| name.clone()).collect();
            found.extend(below.into_iter().filter(|(name, _)| !known.contains(name)));
        }
        Ok((found, whole))
    }

    /// The status of a path.
    pub(super) fn stat(&mut self, path: &[u8]) -> Option<Stat> {
        if let Some(upper) = &mut self.upper
            && let Some(stat) = upper.stat_at(path).ok().flatten()
        {
            return (!is_whiteout(&stat)).then_some(stat);
        }
        self.host.stat_at(path).ok().flatten()
    }

    pub(super) fn kind(&mut self, path: &[u8]) -> Option<FileKind> {
        self.stat(path)
            .map(|stat| kind(FileType::from_raw_mode(stat.st_mode)))
    }

    /// Whether an entry was created or changed.
    pub(super) fn is_new(&mut self, path: &[u8]) -> bool {
        match (&self.new, &mut self.upper) {
            (ChangeFilter::Since(since), _) => {
                let stat = self.host.stat_at(path).ok().flatten();
                stat.is_some_and(|it| (it.st_ctime, it.st_ctime_nsec) >= *since)
            }
            (ChangeFilter::Upper, Some(upper)) => upper.stat_at(path).is_ok_and(|it| it.is_some()),
            (ChangeFilter::Upper, None) => false,
            (ChangeFilter::Paths(paths), _) => paths.contains(path),
        }
    }

    /// Reads a regular file up to `limit` bytes, and one more where it is longer.
    pub(super) fn read(&self, path: &[u8], limit: u64) -> io::Result<Vec<u8>> {
        let upper = self
            .upper
            .as_ref()
            .map(|it| it.open_at(path, OFlags::RDONLY));
        let fd = match upper {
            Some(Ok(fd)) => fd,
            Some(Err(error)) if !is_absent(&error) => return Err(error),
            Some(Err(_)) | None => self.host.open_at(path, OFlags::RDONLY)?,
        };
        let file = File::from(fd);
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

fn list_names(root: &BeneathRoot, path: &[u8], limit: usize) -> io::Result<DirListing> {
    let fd = root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&fd)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if found.len() >= limit {
            return Ok((found, false));
        }
        let mut file_type = entry.file_type();
        if matches!(file_type, FileType::Unknown | FileType::CharacterDevice) {
            match statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if is_whiteout(&stat) => continue,
                Ok(stat) => file_type = FileType::from_raw_mode(stat.st_mode),
                Err(_) => continue,
            }
        }
        found.push((name.to_bytes().to_vec(), kind(file_type)));
    }
    Ok((found, true))
}

fn kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::RegularFile => FileKind::File,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => FileKind::Special,
    }
}

/// Resolves a relative path against a directory, without `.` and `..`; none where it leaves the
/// workspace. Symbolic links are not resolved.
pub(super) fn resolve(workspace: &[u8], from: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let (mut resolved, rest) = if path.starts_with(b"/") {
        let rest = path.strip_prefix(workspace)?;
        if !rest.is_empty() && !rest.starts_with(b"/") {
            return None;
        }
        (Vec::new(), rest)
    } else {
        (from.to_vec(), path)
    };
    for name in rest.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." if resolved.is_empty() => return None,
            b".." => {
                resolved.truncate(resolved.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
            }
            name => resolved = join(&resolved, name),
        }
    }
    Some(resolved)
}
