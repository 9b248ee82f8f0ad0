//! The files that an image is built from, as a tar archive that is made while it is sent.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ostler_sys::regular_file;
use tokio::sync::mpsc;

use super::ignore::{IGNORE_FILE, IgnoreRules};

/// How many bytes are sent at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// The most bytes of files in a context.
const CONTEXT_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// The most files in a context.
const CONTEXT_FILES: u64 = 100_000;
/// How deep directories are nested.
const DEPTH_MAX: usize = 64;

/// A context that cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum BuildContextError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is larger than it may be.
    #[error(
        "the context has more than {CONTEXT_BYTES} bytes, {CONTEXT_FILES} files or {DEPTH_MAX} \
         levels of directories; {IGNORE_FILE} leaves files out"
    )]
    TooLarge,
    /// The engine does not read it any more: it reports its own error.
    #[error("the engine stopped reading the context")]
    NotRead,
}

/// Writes the archive of a directory; blocks.
///
/// # Errors
/// When a file cannot be read, or there is too much.
pub(super) fn write_archive(
    directory: &Path,
    containerfile: &str,
    chunks: mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), BuildContextError> {
    let mut archive = Archive {
        root: directory,
        rules: read_rules(&directory.join(IGNORE_FILE))?,
        containerfile: Path::new(containerfile),
        builder: tar::Builder::new(ChunkWriter {
            chunks,
            pending: Vec::with_capacity(CHUNK_BYTES),
        }),
        bytes: 0,
        files: 0,
    };
    archive.add_directory(Path::new(""), 0)?;
    let finished = archive.builder.into_inner().and_then(|mut it| it.flush());
    finished.map_err(|_closed| BuildContextError::NotRead)
}

fn read_rules(path: &Path) -> Result<IgnoreRules, BuildContextError> {
    match regular_file::open(path).and_then(io::read_to_string) {
        Ok(text) => Ok(IgnoreRules::parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(IgnoreRules::default()),
        Err(source) => Err(unreadable(path, source)),
    }
}

fn unreadable(path: &Path, source: io::Error) -> BuildContextError {
    BuildContextError::Read {
        path: path.to_owned(),
        source,
    }
}

struct Archive<'a> {
    root: &'a Path,
    rules: IgnoreRules,
    /// Always sent.
    containerfile: &'a Path,
    builder: tar::Builder<ChunkWriter>,
    bytes: u64,
    files: u64,
}

impl Archive<'_> {
    fn add_directory(&mut self, relative: &Path, depth: usize) -> Result<(), BuildContextError> {
        if depth > DEPTH_MAX {
            return Err(BuildContextError::TooLarge);
        }
        let path = self.root.join(relative);
        let failed = |source| unreadable(&path, source);
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name());
        }
        // The same files make the same archive.
        names.sort();
        for name in names {
            self.add(&relative.join(name), depth)?;
        }
        Ok(())
    }

    fn add(&mut self, relative: &Path, depth: usize) -> Result<(), BuildContextError> {
        let path = self.root.join(relative);
        let metadata = fs::symlink_metadata(&path).map_err(|it| unreadable(&path, it))?;
        let is_sent = !self.rules.ignores(relative) || relative == self.containerfile;
        if is_sent {
            self.append(relative, &path, &metadata)?;
        }
        let has_sent_files =
            self.rules.has_exceptions() || self.containerfile.starts_with(relative);
        if metadata.is_dir() && (is_sent || has_sent_files) {
            self.add_directory(relative, depth + 1)?;
        }
        Ok(())
    }

    /// Adds one entry, owned by root as in contexts that other clients send.
    fn append(
        &mut self,
        relative: &Path,
        path: &Path,
        metadata: &fs::Metadata,
    ) -> Result<(), BuildContextError> {
        self.files += 1;
        self.bytes += if metadata.is_file() {
            metadata.len()
        } else {
            0
        };
        if self.files > CONTEXT_FILES || self.bytes > CONTEXT_BYTES {
            return Err(BuildContextError::TooLarge);
        }
        let mut header = tar::Header::new_gnu();
        header.set_metadata_in_mode(metadata, tar::HeaderMode::Complete);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mode(metadata.mode() & 0o7777);
        let appended = if metadata.is_file() {
            let file = regular_file::open(path).map_err(|it| unreadable(path, it))?;
            let content = SizedContent {
                file,
                remaining: metadata.len(),
            };
            self.builder.append_data(&mut header, relative, content)
        } else if metadata.is_symlink() {
            let target = fs::read_link(path).map_err(|it| unreadable(path, it))?;
            header.set_size(0);
            self.builder.append_link(&mut header, relative, target)
        } else if metadata.is_dir() {
            self.builder.append_data(&mut header, relative, io::empty())
        } else {
            // Sockets, pipes and devices are no part of an image.
            return Ok(());
        };
        appended.map_err(|source| {
            if source.kind() == io::ErrorKind::BrokenPipe {
                BuildContextError::NotRead
            } else {
                unreadable(path, source)
            }
        })
    }
}

/// Exactly as many bytes of a file as its header says, also where it changes meanwhile: what is
/// missing is zero.
struct SizedContent {
    file: File,
    remaining: u64,
}

impl Read for SizedContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let wanted = most.min(buffer.len());
        let part = &mut buffer[..wanted];
        if part.is_empty() {
            return Ok(0);
        }
        let mut count = self.file.read(part)?;
        if count == 0 {
            part.fill(0);
            count = part.len();
        }
        self.remaining -= count as u64;
        Ok(count)
    }
}

/// Collects what is written into chunks, and waits while they are not read.
struct ChunkWriter {
    chunks: mpsc::Sender<io::Result<Bytes>>,
    pending: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pending.len() + bytes.len() > CHUNK_BYTES {
            self.flush()?;
        }
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.pending, Vec::with_capacity(CHUNK_BYTES));
        let sent = self.chunks.blocking_send(Ok(Bytes::from(chunk)));
        sent.map_err(|_closed| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn archive(directory: &Path, containerfile: &str) -> Result<Vec<u8>, BuildContextError> {
        let (sender, mut receiver) = mpsc::channel::<io::Result<Bytes>>(4);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            while let Some(chunk) = receiver.blocking_recv() {
                all.extend_from_slice(&chunk.expect("no error"));
            }
            all
        });
        let written = write_archive(directory, containerfile, sender);
        let all = reader.join().expect("read");
        written.map(|()| all)
    }

    #[test]
    fn an_archive_has_the_files_that_are_not_ignored() {
        let root = tempfile::tempdir().expect("a directory");
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("docker")).expect("made");
        fs::create_dir_all(path("target/deep")).expect("made");
        fs::write(path("docker/Containerfile"), "FROM a").expect("written");
        fs::write(path("run.sh"), vec![b'x'; 200_000]).expect("written");
        fs::set_permissions(path("run.sh"), fs::Permissions::from_mode(0o755)).expect("set");
        fs::write(path("target/deep/x"), "x").expect("written");
        symlink("run.sh", path("link")).expect("linked");
        fs::write(path(IGNORE_FILE), "target\ndocker\n").expect("written");
        let bytes = archive(root.path(), "docker/Containerfile").expect("made");
        let mut entries = BTreeMap::new();
        for entry in tar::Archive::new(&bytes[..]).entries().expect("valid") {
            let mut entry = entry.expect("valid");
            let name = entry.path().expect("text").display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("whole");
            let header = entry.header();
            let owner = header.uid().expect("set");
            entries.insert(name, (content.len(), header.mode().expect("set"), owner));
        }
        let names: Vec<_> = entries.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [IGNORE_FILE, "docker/Containerfile", "link", "run.sh"]
        );
        assert_eq!(entries["run.sh"], (200_000, 0o755, 0));
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = archive(Path::new("/does/not/exist"), "Containerfile").expect_err("absent");
        assert!(error.to_string().contains("/does/not/exist"), "{error}");
    }

    #[test]
    fn a_file_that_shrinks_is_filled_up() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("x"), "ab").expect("written");
        let mut content = SizedContent {
            file: File::open(dir.path().join("x")).expect("opened"),
            remaining: 4,
        };
        let mut all = Vec::new();
        content.read_to_end(&mut all).expect("read");
        assert_eq!(all, b"ab\0\0");
    }
}
