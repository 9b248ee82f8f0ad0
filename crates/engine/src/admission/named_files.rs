//! The files whose content decides what a start does: the programs and scripts that its command
//! line names. An approval of a start covers their content.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use ostler_backend::PinnedFile;
use ostler_model::{ByteString, Command};
use ostler_policy::{FileRole, FileWords, file_words};
use ostler_sys::regular_file;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::program;

/// The most words of a command line that are examined.
const WORDS: usize = 2_048;
/// The longest word that is taken for a path.
const PATH_BYTES: usize = 4_096;
/// The most files of one start that are tracked.
const FILES: usize = 256;
/// The largest file whose content is read, and the most that is read for one start, in bytes. A
/// larger file is identified by its times, which a write changes.
const READ_BYTES: u64 = 128 * 1024 * 1024;
/// The most directories besides the working one that relative paths are resolved against.
const DIRECTORIES: usize = 16;
/// Bytes read at once.
const CHUNK_BYTES: usize = 128 * 1024;
/// The execute bits of a file mode.
const EXECUTABLE: u32 = 0o111;

/// The files that a start names, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct NamedFiles {
    files: BTreeMap<PathBuf, NamedFile>,
    /// Whether there were more than are tracked.
    truncated: bool,
}

/// The state of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamedFile {
    /// The resolved path.
    pub(crate) resolved: PathBuf,
    dev: u64,
    ino: u64,
    pub(crate) size: u64,
    content: FileContent,
    times: FileTimes,
    /// Whether it was found through the search path or an absolute path, outside the workspace.
    pub(crate) is_program: bool,
}

/// When it was last written and changed, in seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileTimes {
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The identity of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum FileContent {
    Read([u8; 32]),
    /// Too large or unreadable: identified by its times.
    NotRead,
    /// It changed while it was read.
    Changed,
}

impl NamedFile {
    /// Whether both are the same file with the same content.
    fn is_same(&self, other: &Self) -> bool {
        let identity = |it: &Self| (it.dev, it.ino, it.size);
        let content = match (self.content, other.content) {
            (FileContent::Read(one), FileContent::Read(other)) => one == other,
            (FileContent::NotRead, FileContent::NotRead) => self.times == other.times,
            (FileContent::Changed | FileContent::Read(_) | FileContent::NotRead, _) => false,
        };
        identity(self) == identity(other) && self.resolved == other.resolved && content
    }

    /// The beginning of its content's digest, for people; none where it was not read.
    pub(crate) fn digest(&self) -> Option<String> {
        /// The displayed bytes of a digest.
        const SHOWN: usize = 8;
        match self.content {
            FileContent::Read(digest) => Some(ostler_model::lower_hex(&digest[..SHOWN])),
            FileContent::NotRead | FileContent::Changed => None,
        }
    }

    fn pin(&self, path: &Path) -> PinnedFile {
        PinnedFile {
            path: ByteString::from(path),
            dev: self.dev,
            ino: self.ino,
            size: self.size,
            modified: self.times.modified,
            changed: self.times.changed,
        }
    }
}

impl NamedFiles {
    /// The first file, by path, that differs from `before`.
    pub(crate) fn changed_since<'a>(&'a self, before: &'a Self) -> Option<&'a Path> {
        let is_same = |path: &&PathBuf| match (self.files.get(*path), before.files.get(*path)) {
            (Some(now), Some(then)) => now.is_same(then),
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) => true,
        };
        let paths = self.files.keys().chain(before.files.keys());
        paths
            .map(|path| (path, is_same(&path)))
            .find(|(_, same)| !same)
            .map(|(path, _)| path.as_path())
    }

    /// Path and file of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &NamedFile)> {
        self.files.iter().map(|(path, file)| (path.as_path(), file))
    }

    /// Whether there are more than are tracked.
    pub(crate) const fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The files that a launch is pinned to.
    pub(crate) fn pins(&self) -> Vec<PinnedFile> {
        self.iter().map(|(path, file)| file.pin(path)).collect()
    }

    /// Collects the files that `command` names in `cwd`, its programs found in `path`, and
    /// `collect_program`, the one it begins with. Reads at most [`READ_BYTES`]; blocks.
    pub(crate) fn collect(
        command: &Command,
        cwd: &ByteString,
        program: &ByteString,
        path: &ByteString,
    ) -> Self {
        let words = file_words(command);
        let mut collector = NamedFileCollector::new(cwd, path, &words);
        collector.add(
            program.as_path(),
            !command.program().as_bytes().contains(&b'/'),
        );
        collector.collect_words(&words);
        collector.collect_non_utf8(command);
        collector.found
    }

    /// The files below `workspace` that `command` names in `cwd`: all that is known here of a start in
    /// a container, whose other files are its image's. Blocks as [`NamedFiles::collect`] does.
    pub(crate) fn collect_in_workspace(
        command: &Command,
        cwd: &ByteString,
        workspace: &Path,
    ) -> Self {
        let words = file_words(command);
        let no_path = ByteString::default();
        let mut collector = NamedFileCollector::new(cwd, &no_path, &words);
        collector.collect_words(&words);
        collector.collect_non_utf8(command);
        let mut found = collector.found;
        found
            .files
            .retain(|_, file| file.resolved.starts_with(workspace));
        found
    }
}

/// Finds and reads files.
struct NamedFileCollector<'a> {
    cwd: &'a ByteString,
    path: &'a ByteString,
    directories: Vec<PathBuf>,
    /// Interpreters whose file was found.
    resolved_operands: Vec<usize>,
    read_budget: u64,
    found: NamedFiles,
}

impl<'a> NamedFileCollector<'a> {
    fn new(cwd: &'a ByteString, path: &'a ByteString, words: &FileWords) -> Self {
        let own = cwd.as_path().to_owned();
        let others = words.directories.iter().take(DIRECTORIES);
        let others = others
            .map(|directory| own.join(directory))
            .collect::<Vec<_>>();
        Self {
            cwd,
            path,
            directories: std::iter::once(own).chain(others).collect(),
            resolved_operands: Vec::new(),
            read_budget: READ_BYTES,
            found: NamedFiles::default(),
        }
    }

    fn collect_words(&mut self, words: &FileWords) {
        self.found.truncated |= words.words.len() > WORDS;
        for word in words.words.iter().take(WORDS) {
            match word.role {
                FileRole::Program => self.collect_program(&word.text),
                FileRole::Script => {
                    self.collect_path(Path::new(&word.text), |_| true);
                }
                FileRole::Operand(call) if !self.resolved_operands.contains(&call) => {
                    if self.collect_path(Path::new(&word.text), |_| true) {
                        self.resolved_operands.push(call);
                    }
                }
                FileRole::Operand(_) | FileRole::Argument => {
                    self.collect_path(Path::new(&word.text), is_likely_executed);
                }
            }
        }
    }

    /// Arguments that are not UTF-8 are not among the words.
    fn collect_non_utf8(&mut self, command: &Command) {
        let Command::Argv { program, args } = command else {
            return;
        };
        let no_text = |word: &&ByteString| std::str::from_utf8(word.as_bytes()).is_err();
        for word in std::iter::once(program).chain(args).filter(no_text) {
            self.collect_path(word.as_path(), |_| true);
        }
    }

    fn collect_program(&mut self, word: &str) {
        if word.contains('/') {
            self.collect_path(Path::new(word), |_| true);
        } else if let Some(found) = program::locate(word, self.path, self.cwd) {
            self.add(&found, true);
        }
    }

    /// Tracks the files that a path may refer to; `is_run` says whether they are executed. Returns
    /// whether there was one.
    fn collect_path(&mut self, path: &Path, is_run: impl Fn(&Path) -> bool) -> bool {
        if path.as_os_str().is_empty() || path.as_os_str().len() > PATH_BYTES {
            return false;
        }
        let is_file = |path: &PathBuf| path.metadata().is_ok_and(|it| it.is_file());
        let candidates = self
            .directories
            .iter()
            .map(|directory| directory.join(path));
        let found: Vec<PathBuf> = candidates
            .filter(|path| is_file(path) && is_run(path))
            .collect();
        for path in &found {
            self.add(path, false);
        }
        !found.is_empty()
    }

    fn add(&mut self, path: &Path, program: bool) {
        if self.found.files.contains_key(path) {
            return;
        }
        if self.found.files.len() >= FILES {
            self.found.truncated = true;
            return;
        }
        if let Ok(file) = read_named_file(path, &mut self.read_budget, program) {
            self.found.files.insert(path.to_owned(), file);
        }
    }
}

/// Whether a program that receives this file is likely to execute it.
fn is_likely_executed(path: &Path) -> bool {
    let executable = path.metadata().is_ok_and(|it| it.mode() & EXECUTABLE != 0);
    executable || begins_with(path, b"#!").unwrap_or(false)
}

fn begins_with(path: &Path, mark: &[u8; 2]) -> io::Result<bool> {
    let mut beginning = [0; 2];
    regular_file::open(path)?.read_exact(&mut beginning)?;
    Ok(beginning == *mark)
}

/// Reads the current state of a file. `read_budget` is the number of bytes that may still be read.
fn read_named_file(path: &Path, read_budget: &mut u64, program: bool) -> io::Result<NamedFile> {
    let resolved = path.canonicalize()?;
    let (meta, content) = match regular_file::open(path) {
        Ok(file) => {
            let meta = file.metadata()?;
            let content = read_content(&file, &meta, read_budget)?;
            (meta, content)
        }
        Err(_) => (path.metadata()?, FileContent::NotRead),
    };
    Ok(NamedFile {
        resolved,
        dev: meta.dev(),
        ino: meta.ino(),
        size: meta.len(),
        content,
        times: file_times(&meta),
        is_program: program,
    })
}

fn read_content(file: &File, before: &Metadata, read_budget: &mut u64) -> io::Result<FileContent> {
    if before.len() > *read_budget {
        return Ok(FileContent::NotRead);
    }
    *read_budget -= before.len();
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    while at < before.len() {
        let remaining = usize::try_from(before.len() - at).unwrap_or(usize::MAX);
        let read = file.read_at(&mut chunk[..remaining.min(CHUNK_BYTES)], at)?;
        if read == 0 {
            break;
        }
        hash.update(&chunk[..read]);
        at += read as u64;
    }
    let after = file.metadata()?;
    if file_times(&after) != file_times(before) || after.len() != at {
        return Ok(FileContent::Changed);
    }
    Ok(FileContent::Read(hash.finalize().into()))
}

fn file_times(meta: &Metadata) -> FileTimes {
    FileTimes {
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    struct NamedFilesFixture(TempDir);

    impl NamedFilesFixture {
        fn new() -> Self {
            Self(TempDir::new().expect("a directory"))
        }

        fn put(&self, name: &str, text: &str, mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            path
        }

        fn look(&self, words: &[&str]) -> NamedFiles {
            let mut words = words.iter().map(|&word| ByteString::from(word));
            let command = Command::Argv {
                program: words.next().expect("a program"),
                args: words.collect(),
            };
            self.of(&command)
        }

        fn of(&self, command: &Command) -> NamedFiles {
            let cwd = ByteString::from(self.0.path());
            let path = ByteString::from("/usr/bin:/bin");
            let program = program::find(command.program(), &path, &cwd).expect("a program");
            NamedFiles::collect(command, &cwd, &program, &path)
        }

        fn script(&self, text: &str) -> NamedFiles {
            let command = Command::Shell {
                shell: "/bin/sh".into(),
                script: text.into(),
            };
            self.of(&command)
        }
    }

    fn changed(now: &NamedFiles, then: &NamedFiles) -> Option<String> {
        let path = now.changed_since(then)?;
        Some(path.file_name()?.to_string_lossy().into_owned())
    }

    #[test]
    fn a_script_is_bound_by_its_content_however_it_is_named() {
        let fixture = NamedFilesFixture::new();
        fixture.put("x.sh", "echo one", 0o644);
        fs::create_dir(fixture.0.path().join("sub")).expect("made");
        let looks: [&dyn Fn() -> NamedFiles; 5] = [
            &|| fixture.look(&["sh", "x.sh"]),
            &|| fixture.look(&["env", "A=1", "bash", "-x", "./x.sh", "arg"]),
            &|| fixture.script("true && sh < x.sh"),
            &|| fixture.script(". ./x.sh"),
            &|| fixture.script("cd sub; bash ../x.sh"),
        ];
        for look in looks {
            fixture.put("x.sh", "echo one", 0o644);
            let then = look();
            assert_eq!(changed(&look(), &then), None);
            fixture.put("x.sh", "echo two", 0o644);
            assert_eq!(changed(&look(), &then).as_deref(), Some("x.sh"));
            fs::remove_file(fixture.0.path().join("x.sh")).expect("removed");
            assert_eq!(changed(&look(), &then).as_deref(), Some("x.sh"));
        }
    }

    #[test]
    fn another_file_of_the_same_content_and_another_target_are_changes() {
        let fixture = NamedFilesFixture::new();
        let script = fixture.put("x.sh", "echo one", 0o755);
        let then = fixture.look(&["./x.sh"]);
        fixture.put("y.sh", "echo one", 0o755);
        fs::rename(fixture.0.path().join("y.sh"), &script).expect("renamed");
        assert_eq!(
            changed(&fixture.look(&["./x.sh"]), &then).as_deref(),
            Some("x.sh")
        );
        let link = fixture.0.path().join("link");
        symlink("x.sh", &link).expect("linked");
        let then = fixture.look(&["./link"]);
        fixture.put("z.sh", "echo one", 0o755);
        fs::remove_file(&link).expect("removed");
        symlink("z.sh", &link).expect("linked");
        assert_eq!(
            changed(&fixture.look(&["./link"]), &then).as_deref(),
            Some("link")
        );
    }

    #[test]
    fn data_may_change_and_what_could_run_may_not() {
        let fixture = NamedFilesFixture::new();
        fixture.put("app.log", "one", 0o644);
        fixture.put("run", "one", 0o755);
        let look = || fixture.look(&["cat", "app.log", "run"]);
        let then = look();
        fixture.put("app.log", "two", 0o644);
        assert_eq!(changed(&look(), &then), None);
        fixture.put("run", "two", 0o755);
        assert_eq!(changed(&look(), &then).as_deref(), Some("run"));
    }

    #[test]
    fn a_fifo_and_a_directory_block_nothing() {
        let fixture = NamedFilesFixture::new();
        let fifo = fixture.0.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o700),
            0,
        )
        .expect("made");
        let found = fixture.look(&["sh", "fifo", "."]);
        assert!(found.iter().all(|(path, _)| path != fifo));
    }

    #[test]
    fn programs_of_the_search_path_are_bound_and_pinned() {
        let fixture = NamedFilesFixture::new();
        let found = fixture.look(&["sh", "-c", "true"]);
        let pins = found.pins();
        assert!(
            pins.iter().any(|pin| pin.path.as_path().ends_with("sh")),
            "{pins:?}"
        );
        assert!(found.iter().all(|(_, file)| file.digest().is_some()));
    }
}
