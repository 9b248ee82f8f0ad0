//! The files whose content decides what a start does: the programs and scripts its command
//! line names. Consent to a start is consent to their content (B3).

use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ostler_model::{Command, Text};
use ostler_policy::{FileRole, FileWords, file_words};
use ostler_process::PinnedFile;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::program;

/// Words of a command line that are looked at.
const WORDS: usize = 2_048;
/// The longest word that is taken for a path.
const PATH_BYTES: usize = 4_096;
/// Files of one start that are bound.
const FILES: usize = 256;
/// The largest file whose content is read, and how much is read for one start. What is larger
/// is known by its times, which a write changes.
const READ_BYTES: u64 = 128 * 1024 * 1024;
/// Directories besides the working one that relative paths may begin at.
const DIRECTORIES: usize = 16;
/// Bytes read at once.
const CHUNK_BYTES: usize = 128 * 1024;
/// Bits of a mode that let somebody execute a file.
const EXECUTABLE: u32 = 0o111;

/// The files a start names, by their path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NamedFiles {
    files: BTreeMap<PathBuf, NamedFile>,
    /// Whether there were more than are bound.
    truncated: bool,
}

/// One file as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedFile {
    /// Where its path leads.
    pub(crate) resolved: PathBuf,
    dev: u64,
    ino: u64,
    /// Bytes.
    pub(crate) size: u64,
    content: Content,
    times: Times,
    /// Whether the search path or an absolute path led to it, and not the workspace.
    pub(crate) program: bool,
}

/// When it was last written and changed, in seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What is known of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Its SHA-256.
    Read([u8; 32]),
    /// Too large, or not ours to read: it is known by its times.
    Unread,
    /// It changed while it was read.
    Changing,
}

impl NamedFile {
    /// Whether both are the same file with the same content.
    fn is_same(&self, other: &Self) -> bool {
        let identity = |it: &Self| (it.dev, it.ino, it.size);
        let content = match (self.content, other.content) {
            (Content::Read(one), Content::Read(other)) => one == other,
            (Content::Unread, Content::Unread) => self.times == other.times,
            (Content::Changing | Content::Read(_) | Content::Unread, _) => false,
        };
        identity(self) == identity(other) && self.resolved == other.resolved && content
    }

    /// The beginning of the digest of its content, for people; none where it was not read.
    pub(crate) fn digest(&self) -> Option<String> {
        /// Bytes of a digest that are shown.
        const SHOWN: usize = 8;
        match self.content {
            Content::Read(digest) => Some(ostler_model::lower_hex(&digest[..SHOWN])),
            Content::Unread | Content::Changing => None,
        }
    }

    fn pin(&self, path: &Path) -> PinnedFile {
        PinnedFile {
            path: Text::from(path),
            dev: self.dev,
            ino: self.ino,
            size: self.size,
            modified: self.times.modified,
            changed: self.times.changed,
        }
    }
}

impl NamedFiles {
    /// The first file, by its path, that is not what it was in `before`.
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

    /// Whether there are more than are bound.
    pub(crate) const fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// What a launch is held to.
    pub(crate) fn pins(&self) -> Vec<PinnedFile> {
        self.iter().map(|(path, file)| file.pin(path)).collect()
    }

    /// Looks at the files that `command` names in `cwd`, its programs found in `path`, and at
    /// `program`, the one it begins with. Reads them, at most [`READ_BYTES`]: blocks.
    pub(crate) fn look(command: &Command, cwd: &Text, (program, path): (&Text, &Text)) -> Self {
        let words = file_words(command);
        let mut looker = Looker::new(cwd, path, &words);
        looker.add(
            program.as_path(),
            !command.program().as_bytes().contains(&b'/'),
        );
        looker.take(&words);
        looker.exact(command);
        looker.found
    }
}

/// Finds and reads files.
struct Looker<'a> {
    cwd: &'a Text,
    path: &'a Text,
    directories: Vec<PathBuf>,
    /// Interpreters whose file was found.
    served: Vec<usize>,
    left: u64,
    found: NamedFiles,
}

impl<'a> Looker<'a> {
    fn new(cwd: &'a Text, path: &'a Text, words: &FileWords) -> Self {
        let own = cwd.as_path().to_owned();
        let others = words.directories.iter().take(DIRECTORIES);
        let others = others
            .map(|directory| own.join(directory))
            .collect::<Vec<_>>();
        Self {
            cwd,
            path,
            directories: std::iter::once(own).chain(others).collect(),
            served: Vec::new(),
            left: READ_BYTES,
            found: NamedFiles::default(),
        }
    }

    fn take(&mut self, words: &FileWords) {
        self.found.truncated |= words.words.len() > WORDS;
        for word in words.words.iter().take(WORDS) {
            match word.role {
                FileRole::Program => self.program(&word.text),
                FileRole::Script => {
                    self.relative(Path::new(&word.text), |_| true);
                }
                FileRole::Operand(call) if !self.served.contains(&call) => {
                    if self.relative(Path::new(&word.text), |_| true) {
                        self.served.push(call);
                    }
                }
                FileRole::Operand(_) | FileRole::Argument => {
                    self.relative(Path::new(&word.text), runs_by_itself);
                }
            }
        }
    }

    /// Arguments that are no text are not among the words.
    fn exact(&mut self, command: &Command) {
        let Command::Argv { program, args } = command else {
            return;
        };
        let no_text = |word: &&Text| std::str::from_utf8(word.as_bytes()).is_err();
        for word in std::iter::once(program).chain(args).filter(no_text) {
            self.relative(word.as_path(), |_| true);
        }
    }

    fn program(&mut self, word: &str) {
        if word.contains('/') {
            self.relative(Path::new(word), |_| true);
        } else if let Some(found) = program::locate(word, self.path, self.cwd) {
            self.add(&found, true);
        }
    }

    /// Binds the files that a path may mean, where `is_meant` says that they run; whether there
    /// was one.
    fn relative(&mut self, path: &Path, is_meant: impl Fn(&Path) -> bool) -> bool {
        if path.as_os_str().is_empty() || path.as_os_str().len() > PATH_BYTES {
            return false;
        }
        let is_file = |path: &PathBuf| path.metadata().is_ok_and(|it| it.is_file());
        let candidates = self
            .directories
            .iter()
            .map(|directory| directory.join(path));
        let found: Vec<PathBuf> = candidates
            .filter(|path| is_file(path) && is_meant(path))
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
        if let Ok(file) = read(path, &mut self.left, program) {
            self.found.files.insert(path.to_owned(), file);
        }
    }
}

/// Whether a program that is given this file may well execute it.
fn runs_by_itself(path: &Path) -> bool {
    let executable = path.metadata().is_ok_and(|it| it.mode() & EXECUTABLE != 0);
    executable || begins_with(path, b"#!").unwrap_or(false)
}

fn begins_with(path: &Path, mark: &[u8; 2]) -> io::Result<bool> {
    let mut beginning = [0; 2];
    open(path)?.read_exact(&mut beginning)?;
    Ok(beginning == *mark)
}

/// A regular file, never waiting for anybody.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("no regular file"))
    }
}

/// The file as it is now. `left` is what may still be read.
fn read(path: &Path, left: &mut u64, program: bool) -> io::Result<NamedFile> {
    let resolved = path.canonicalize()?;
    let (meta, content) = match open(path) {
        Ok(file) => {
            let meta = file.metadata()?;
            let content = content(&file, &meta, left)?;
            (meta, content)
        }
        Err(_) => (path.metadata()?, Content::Unread),
    };
    Ok(NamedFile {
        resolved,
        dev: meta.dev(),
        ino: meta.ino(),
        size: meta.len(),
        content,
        times: times(&meta),
        program,
    })
}

fn content(file: &File, before: &Metadata, left: &mut u64) -> io::Result<Content> {
    if before.len() > *left {
        return Ok(Content::Unread);
    }
    *left -= before.len();
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    while at < before.len() {
        let wanted = usize::try_from(before.len() - at).unwrap_or(usize::MAX);
        let read = file.read_at(&mut chunk[..wanted.min(CHUNK_BYTES)], at)?;
        if read == 0 {
            break;
        }
        hash.update(&chunk[..read]);
        at += read as u64;
    }
    let after = file.metadata()?;
    if times(&after) != times(before) || after.len() != at {
        return Ok(Content::Changing);
    }
    Ok(Content::Read(hash.finalize().into()))
}

fn times(meta: &Metadata) -> Times {
    Times {
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

    struct Lab(TempDir);

    impl Lab {
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
            let mut words = words.iter().map(|&word| Text::from(word));
            let command = Command::Argv {
                program: words.next().expect("a program"),
                args: words.collect(),
            };
            self.of(&command)
        }

        fn of(&self, command: &Command) -> NamedFiles {
            let cwd = Text::from(self.0.path());
            let path = Text::from("/usr/bin:/bin");
            let program = program::find(command.program(), &path, &cwd).expect("a program");
            NamedFiles::look(command, &cwd, (&program, &path))
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
        let lab = Lab::new();
        lab.put("x.sh", "echo one", 0o644);
        fs::create_dir(lab.0.path().join("sub")).expect("made");
        let looks: [&dyn Fn() -> NamedFiles; 5] = [
            &|| lab.look(&["sh", "x.sh"]),
            &|| lab.look(&["env", "A=1", "bash", "-x", "./x.sh", "arg"]),
            &|| lab.script("true && sh < x.sh"),
            &|| lab.script(". ./x.sh"),
            &|| lab.script("cd sub; bash ../x.sh"),
        ];
        for look in looks {
            lab.put("x.sh", "echo one", 0o644);
            let then = look();
            assert_eq!(changed(&look(), &then), None);
            lab.put("x.sh", "echo two", 0o644);
            assert_eq!(changed(&look(), &then).as_deref(), Some("x.sh"));
            fs::remove_file(lab.0.path().join("x.sh")).expect("removed");
            assert_eq!(changed(&look(), &then).as_deref(), Some("x.sh"));
        }
    }

    #[test]
    fn another_file_of_the_same_content_and_another_target_are_changes() {
        let lab = Lab::new();
        let script = lab.put("x.sh", "echo one", 0o755);
        let then = lab.look(&["./x.sh"]);
        lab.put("y.sh", "echo one", 0o755);
        fs::rename(lab.0.path().join("y.sh"), &script).expect("renamed");
        assert_eq!(
            changed(&lab.look(&["./x.sh"]), &then).as_deref(),
            Some("x.sh")
        );
        let link = lab.0.path().join("link");
        symlink("x.sh", &link).expect("linked");
        let then = lab.look(&["./link"]);
        lab.put("z.sh", "echo one", 0o755);
        fs::remove_file(&link).expect("removed");
        symlink("z.sh", &link).expect("linked");
        assert_eq!(
            changed(&lab.look(&["./link"]), &then).as_deref(),
            Some("link")
        );
    }

    #[test]
    fn data_may_change_and_what_could_run_may_not() {
        let lab = Lab::new();
        lab.put("app.log", "one", 0o644);
        lab.put("run", "one", 0o755);
        let look = || lab.look(&["cat", "app.log", "run"]);
        let then = look();
        lab.put("app.log", "two", 0o644);
        assert_eq!(changed(&look(), &then), None);
        lab.put("run", "two", 0o755);
        assert_eq!(changed(&look(), &then).as_deref(), Some("run"));
    }

    #[test]
    fn a_fifo_and_a_directory_block_nothing() {
        let lab = Lab::new();
        let fifo = lab.0.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o700),
            0,
        )
        .expect("made");
        let found = lab.look(&["sh", "fifo", "."]);
        assert!(found.iter().all(|(path, _)| path != fifo));
    }

    #[test]
    fn programs_of_the_search_path_are_bound_and_pinned() {
        let lab = Lab::new();
        let found = lab.look(&["sh", "-c", "true"]);
        let pins = found.pins();
        assert!(
            pins.iter().any(|pin| pin.path.as_path().ends_with("sh")),
            "{pins:?}"
        );
        assert!(found.iter().all(|(_, file)| file.digest().is_some()));
    }
}
