//! Parses git's configuration files (git-config(1)) and knows which keys run no program and refer
//! to no other place.

use super::view::WorkspaceView;

/// Keys that run nothing and refer to no other place, whatever their value.
const HARMLESS: &[&str] = &[
    "branch.*.description",
    "branch.*.merge",
    "branch.*.pushremote",
    "branch.*.rebase",
    "branch.*.remote",
    "branch.*.vscode-merge-base",
    "commit.gpgsign",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.splitindex",
    "core.symlinks",
    "core.untrackedcache",
    "extensions.compatobjectformat",
    "extensions.noop",
    "extensions.objectformat",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "fetch.prune",
    "gc.auto",
    "index.sparse",
    "index.version",
    "init.defaultbranch",
    "lfs.repositoryformatversion",
    "maintenance.auto",
    "merge.conflictstyle",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "receive.denycurrentbranch",
    "remote.*.fetch",
    "remote.*.gh-resolved",
    "remote.*.mirror",
    "remote.*.partialclonefilter",
    "remote.*.promisor",
    "remote.*.prune",
    "remote.*.push",
    "remote.*.tagopt",
    "rerere.enabled",
    "submodule.*.active",
    "submodule.*.branch",
    "submodule.*.fetchrecursesubmodules",
    "submodule.*.ignore",
    "submodule.active",
    "submodule.recurse",
    "user.email",
    "user.name",
    "user.useconfigonly",
];
/// Keys that hold a URL, harmless unless a program is configured with it.
const URLS: &[&str] = &["remote.*.url", "remote.*.pushurl", "submodule.*.url"];
/// Values of `submodule.*.update` that run no command.
const UPDATES: [&[u8]; 4] = [b"checkout", b"rebase", b"merge", b"none"];

/// The largest configuration that is read, in bytes.
const READ_BYTES: u64 = 64 * 1024;

/// All keys of a file; none where it is too large, or cannot be read or parsed.
pub(super) fn read_config(view: &WorkspaceView<'_>, path: &[u8]) -> Option<Vec<GitConfigEntry>> {
    let bytes = view.read(path, READ_BYTES).ok()?;
    if bytes.len() as u64 > READ_BYTES {
        return None;
    }
    parse(&bytes)
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitConfigEntry {
    /// The section, the quoted subsection, and the name; lower case except the subsection.
    section: String,
    subsection: Option<Vec<u8>>,
    name: String,
    pub(super) value: Vec<u8>,
}

impl GitConfigEntry {
    /// The key as git prints it, without the subsection.
    pub(super) fn key(&self) -> String {
        match self.subsection {
            None => format!("{}.{}", self.section, self.name),
            Some(_) => format!("{}.*.{}", self.section, self.name),
        }
    }

    pub(super) fn is_harmless(&self) -> bool {
        let key = self.key();
        let value = self.value.as_slice();
        match key.as_str() {
            "submodule.*.update" => UPDATES.contains(&value),
            key if URLS.contains(&key) => !value.windows(2).any(|it| it == b"::"),
            key => HARMLESS.contains(&key),
        }
    }

    /// Whether it includes another file.
    pub(super) fn is_include(&self) -> bool {
        self.name == "path" && ["include", "includeif"].contains(&self.section.as_str())
    }

    /// Whether it names a submodule's working tree, relative to its repository.
    pub(super) fn is_worktree(&self) -> bool {
        self.subsection.is_none() && self.section == "core" && self.name == "worktree"
    }
}

/// All keys; none where git or this parser would not accept the file.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<GitConfigEntry>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = GitConfigReader { bytes, at: 0 };
    let mut entries = Vec::new();
    let mut section: Option<(String, Option<Vec<u8>>)> = None;
    while let Some(byte) = reader.peek() {
        match byte {
            b'#' | b';' => reader.skip_line(),
            byte if byte.is_ascii_whitespace() => reader.at += 1,
            b'[' => section = Some(reader.read_section()?),
            byte if byte.is_ascii_alphabetic() => {
                let (section, part) = section.clone()?;
                let (name, value) = reader.read_entry()?;
                entries.push(GitConfigEntry {
                    section,
                    subsection: part,
                    name,
                    value,
                });
            }
            _ => return None,
        }
    }
    Some(entries)
}

struct GitConfigReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl GitConfigReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Reads `[section]`, `[section "subsection"]` or `[section.subsection]`.
    fn read_section(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        self.next()?;
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => {
                    let dotted = name.split_once('.');
                    let part = dotted.map(|(_, part)| part.as_bytes().to_vec());
                    let first = dotted.map_or(name.as_str(), |(first, _)| first);
                    return Some((first.to_owned(), part));
                }
                byte if byte.is_ascii_alphanumeric() || b"-.".contains(&byte) => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                b' ' | b'\t' => {
                    self.skip_blanks();
                    let part = self.read_subsection()?;
                    return (self.next()? == b']').then_some((name, Some(part)));
                }
                _ => return None,
            }
        }
    }

    fn read_subsection(&mut self) -> Option<Vec<u8>> {
        if self.next()? != b'"' {
            return None;
        }
        let mut part = Vec::new();
        loop {
            match self.next()? {
                b'"' => return Some(part),
                b'\n' => return None,
                b'\\' => part.push(self.next()?),
                byte => part.push(byte),
            }
        }
    }

    fn read_entry(&mut self) -> Option<(String, Vec<u8>)> {
        let mut name = String::new();
        while let Some(byte) = self.peek()
            && (byte.is_ascii_alphanumeric() || byte == b'-')
        {
            name.push(char::from(byte.to_ascii_lowercase()));
            self.at += 1;
        }
        self.skip_blanks();
        match self.peek() {
            None | Some(b'\n') => Some((name, b"true".to_vec())),
            Some(b'#' | b';') => {
                self.skip_line();
                Some((name, b"true".to_vec()))
            }
            Some(b'=') => {
                self.at += 1;
                self.skip_blanks();
                Some((name, self.read_value()?))
            }
            Some(_) => None,
        }
    }

    fn read_value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let mut trimmed_len = 0;
        let mut quoted = false;
        loop {
            match self.next() {
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'"') => quoted = !quoted,
                Some(b'\\') => {
                    value.extend(self.read_escape()?);
                    trimmed_len = value.len();
                }
                Some(byte) => {
                    value.push(byte);
                    if quoted || !byte.is_ascii_whitespace() {
                        trimmed_len = value.len();
                    }
                }
            }
        }
        value.truncate(trimmed_len);
        (!quoted).then_some(value)
    }

    /// The character an escape sequence stands for; nothing for an escaped end of line.
    fn read_escape(&mut self) -> Option<Option<u8>> {
        match self.next()? {
            b'\n' => Some(None),
            b'\r' if self.peek() == Some(b'\n') => {
                self.at += 1;
                Some(None)
            }
            b'n' => Some(Some(b'\n')),
            b't' => Some(Some(b'\t')),
            b'b' => Some(Some(8)),
            byte @ (b'"' | b'\\') => Some(Some(byte)),
            _ => None,
        }
    }
}
