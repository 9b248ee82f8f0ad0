//! Heads: how far the ledger reached, recorded apart from it and signed, so that entries cut off its
//! end are missed. The format is described in `docs/design/024-audit-heads.md`.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use ostler_model::{Timestamp, lower_hex};
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::hash_chain::GENESIS;
use crate::atomic_file::{AtomicFile, PRIVATE_MODE};
use crate::error::{ReadError, WriteError};
use crate::regular_file;

/// How many entries are appended between two heads.
pub const HEAD_INTERVAL: u64 = 100;
/// The version in the header line of the file of heads.
pub const HEADS_VERSION: u8 = 1;

const FORMAT: &str = "ostler-ledger-heads";
/// The block size of SHA-256: no longer key adds anything (RFC 2104).
const KEY_BYTES: usize = 64;
const MAC_FIELD: &[u8] = b"{\"mac\":\"";

/// The key that heads are signed with.
#[derive(Clone)]
pub struct HeadKey {
    bytes: [u8; KEY_BYTES],
    /// When its file was written; none where the file system does not say.
    written_at: Option<Timestamp>,
}

impl std::fmt::Debug for HeadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeadKey(..)")
    }
}

impl HeadKey {
    /// Reads the key; none where the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read, others may read or write it, or it is not a key.
    pub fn read(path: &Path) -> Result<Option<Self>, ReadError> {
        let failed = |error| ReadError::io("read", path.display().to_string(), error);
        // A pipe at this path would hold the daemon's start.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let meta = file.metadata().map_err(failed)?;
        if meta.is_file() && meta.mode() & 0o077 != 0 {
            let message = "others may read or write it; allowed is mode 0600";
            return Err(failed(io::Error::new(
                io::ErrorKind::PermissionDenied,
                message,
            )));
        }
        let written_at = meta.modified().ok();
        let mut bytes = Vec::new();
        let longest = KEY_BYTES as u64 + 1;
        file.take(longest).read_to_end(&mut bytes).map_err(failed)?;
        let message = format!("it is not a key, which is {KEY_BYTES} bytes");
        <[u8; KEY_BYTES]>::try_from(bytes)
            .map(|bytes| {
                Some(Self {
                    bytes,
                    written_at: written_at.and_then(|at| Timestamp::try_from(at).ok()),
                })
            })
            .map_err(|_| failed(io::Error::new(io::ErrorKind::InvalidData, message)))
    }

    /// Reads the key, or makes a random one; of several processes that make one at once, all get
    /// the same. Its directory is made where it is missing.
    ///
    /// # Errors
    /// As [`HeadKey::read`], or when it cannot be made.
    pub fn read_or_create(path: &Path) -> Result<Self, ReadError> {
        if let Some(key) = Self::read(path)? {
            return Ok(key);
        }
        let failed = |error| ReadError::io("make", path.display().to_string(), error);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut bytes = [0_u8; KEY_BYTES];
        getrandom(&mut bytes[..], GetRandomFlags::empty()).map_err(|errno| failed(errno.into()))?;
        let mut file = AtomicFile::create_unique(path, PRIVATE_MODE).map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        file.commit_new().map_err(failed)?;
        let missing = || failed(io::Error::from(io::ErrorKind::NotFound));
        Self::read(path)?.ok_or_else(missing)
    }

    /// When its file was written; none where the file system does not say.
    pub(super) const fn written_at(&self) -> Option<Timestamp> {
        self.written_at
    }

    /// The signature of a head after the one whose signature is `previous`, in lowercase
    /// hexadecimal.
    fn sign(&self, previous: &str, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new(&self.bytes.into());
        mac.update(previous.as_bytes());
        mac.update(body);
        lower_hex(&mac.finalize().into_bytes())
    }
}

/// The state of the ledger at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerHead {
    /// When it was recorded.
    pub at: Timestamp,
    /// The number of entries so far, expired ones included.
    pub count: u64,
    /// The hash of the last entry, in lowercase hexadecimal.
    pub hash: String,
}

#[derive(Serialize, Deserialize)]
struct HeadsHeader {
    format: Cow<'static, str>,
    version: u8,
}

#[derive(Deserialize)]
struct HeadLine {
    mac: String,
    #[serde(flatten)]
    head: LedgerHead,
}

/// The file of heads, opened by the ledger's writer.
#[derive(Debug)]
pub struct HeadWriter {
    path: PathBuf,
    key: HeadKey,
    file: File,
    last_mac: String,
    /// The entries that the last head covers; none before the first head.
    covered: Option<u64>,
    /// Where a damaged file of this name was moved to.
    set_aside: Option<PathBuf>,
}

impl HeadWriter {
    /// Opens or creates the file. A torn last line is cut; a file that does not begin with a valid
    /// header is kept under another name, and a new one begins.
    ///
    /// # Errors
    /// When the file cannot be read, written or renamed, or is of a newer version.
    pub fn open(path: &Path, key: HeadKey) -> Result<Self, WriteError> {
        let mut file = open_heads(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .map_err(|error| write_failed("read", path, error))?;
        let mut set_aside = None;
        let whole = match find_damage(path, &text)? {
            Damage::None => text.len(),
            Damage::Torn { whole } => {
                file.set_len(whole as u64)
                    .map_err(|error| write_failed("cut", path, error))?;
                whole
            }
            Damage::NoHeads => {
                set_aside = Some(move_aside(path)?);
                file = open_heads(path)?;
                0
            }
        };
        text.truncate(whole);
        let mut writer = Self {
            path: path.to_owned(),
            key,
            file,
            last_mac: GENESIS.to_owned(),
            covered: None,
            set_aside,
        };
        if text.is_empty() {
            writer.write_line(&header_line()?)?;
        } else if let Some(last) = lines(&text).skip(1).last().and_then(parse_line) {
            writer.last_mac = last.mac;
            writer.covered = Some(last.head.count);
        }
        Ok(writer)
    }

    /// The error for people where the file was damaged when it was opened; none where it was not.
    pub(super) fn damage(&self) -> Option<WriteError> {
        let kept = self.set_aside.as_deref()?;
        let message = format!(
            "it does not begin as a file of heads does: it is kept as {}, and a new one begins",
            kept.display()
        );
        let error = io::Error::new(io::ErrorKind::InvalidData, message);
        Some(write_failed("read", &self.path, error))
    }

    /// Whether a head is due when the ledger has `count` entries.
    pub(super) fn is_due(&self, count: u64) -> bool {
        self.covered
            .is_none_or(|covered| count / HEAD_INTERVAL > covered / HEAD_INTERVAL)
    }

    /// Whether entries were appended or cut since the last head.
    pub(super) fn is_behind(&self, count: u64) -> bool {
        self.covered != Some(count)
    }

    /// Appends a head.
    ///
    /// # Errors
    /// When the file system refuses; then it was not appended.
    pub(super) fn append(&mut self, head: &LedgerHead) -> Result<(), WriteError> {
        let body = serde_json::to_vec(head)?;
        let mac = self.key.sign(&self.last_mac, &body);
        let mut line = Vec::with_capacity(MAC_FIELD.len() + mac.len() + body.len() + 4);
        line.extend_from_slice(MAC_FIELD);
        line.extend_from_slice(mac.as_bytes());
        line.extend_from_slice(b"\",");
        line.extend_from_slice(&body[1..]);
        self.write_line(&line)?;
        self.last_mac = mac;
        self.covered = Some(head.count);
        Ok(())
    }

    fn write_line(&mut self, line: &[u8]) -> Result<(), WriteError> {
        let failed = |error| WriteError::io("append to", self.path.display().to_string(), error);
        let before = self.file.metadata().map_err(failed)?.len();
        let line = [line, b"\n"].concat();
        let written = self.file.write_all(&line);
        written.map_err(|error| {
            // If that fails too, the next writer cuts it.
            drop(self.file.set_len(before));
            failed(error)
        })
    }
}

fn write_failed(action: &'static str, path: &Path, error: io::Error) -> WriteError {
    WriteError::io(action, path.display().to_string(), error)
}

fn open_heads(path: &Path) -> Result<File, WriteError> {
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).create(true);
    regular_file::open_with(options.mode(PRIVATE_MODE), path)
        .map_err(|error| write_failed("open", path, error))
}

fn header_line() -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&HeadsHeader {
        format: FORMAT.into(),
        version: HEADS_VERSION,
    })
}

/// What is wrong with a file of heads that is opened for writing.
enum Damage {
    None,
    /// Its last line is incomplete.
    Torn {
        /// The bytes before that line.
        whole: usize,
    },
    /// It does not begin with a valid header.
    NoHeads,
}

/// # Errors
/// When the file is of a newer version.
fn find_damage(path: &Path, text: &[u8]) -> Result<Damage, WriteError> {
    let Some(end) = memchr::memchr(b'\n', text) else {
        let is_torn_header = header_line()?.starts_with(text);
        return Ok(if text.is_empty() {
            Damage::None
        } else if is_torn_header {
            Damage::Torn { whole: 0 }
        } else {
            Damage::NoHeads
        });
    };
    if !check_header(path, &text[..end])? {
        return Ok(Damage::NoHeads);
    }
    let whole = memchr::memrchr(b'\n', text).map_or(0, |end| end + 1);
    Ok(if whole < text.len() {
        Damage::Torn { whole }
    } else {
        Damage::None
    })
}

/// Renames the file to the first free of `<name>.damaged-0`, `-1`, …; returns that path. Only the
/// holder of the state directory makes such names.
fn move_aside(path: &Path) -> Result<PathBuf, WriteError> {
    let named = |number: u64| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{number}"));
        PathBuf::from(name)
    };
    let mut number = 0;
    while named(number).symlink_metadata().is_ok() {
        number += 1;
    }
    let kept = named(number);
    std::fs::rename(path, &kept).map_err(|error| write_failed("rename", path, error))?;
    Ok(kept)
}

/// The heads of a file, and which of its lines are no valid heads.
#[derive(Debug, Default)]
pub(super) struct Heads {
    pub(super) valid: Vec<LedgerHead>,
    /// The numbers of lines, from 1, that were changed, moved, or signed with another key.
    pub(super) invalid_lines: Vec<u64>,
}

/// Reads and checks the heads; none where the file does not exist.
///
/// # Errors
/// When the file cannot be read, or is of a newer version.
pub(super) fn read_heads(path: &Path, key: &HeadKey) -> Result<Option<Heads>, ReadError> {
    let text = match regular_file::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ReadError::io("read", path.display().to_string(), error)),
    };
    let mut heads = Heads::default();
    let mut previous = GENESIS.to_owned();
    for (number, line) in (1..).zip(lines(&text)) {
        if number == 1 {
            if !check_header(path, line)? {
                heads.invalid_lines.push(number);
            }
            continue;
        }
        let parsed = parse_line(line);
        match parsed {
            Some(parsed) if is_signed(key, &previous, line, &parsed.mac) => {
                heads.valid.push(parsed.head);
                previous = parsed.mac;
            }
            Some(parsed) => {
                heads.invalid_lines.push(number);
                previous = parsed.mac;
            }
            None => heads.invalid_lines.push(number),
        }
    }
    Ok(Some(heads))
}

/// The whole lines of the text, without their ends.
fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    let whole = memchr::memrchr(b'\n', text).unwrap_or(0);
    text[..whole].split(|byte| *byte == b'\n')
}

fn parse_line(line: &[u8]) -> Option<HeadLine> {
    serde_json::from_slice(line).ok()
}

/// Whether the first line is the header of a file of heads that this program can read.
fn check_header(path: &Path, line: &[u8]) -> Result<bool, ReadError> {
    let header = serde_json::from_slice::<HeadsHeader>(line).ok();
    let Some(header) = header.filter(|header| header.format == FORMAT) else {
        return Ok(false);
    };
    if header.version > HEADS_VERSION {
        return Err(ReadError::Version {
            file: path.display().to_string(),
            found: header.version,
            known: HEADS_VERSION,
        });
    }
    Ok(header.version > 0)
}

/// Whether the line was written with this key after the one that ends with `previous`.
fn is_signed(key: &HeadKey, previous: &str, line: &[u8], mac: &str) -> bool {
    let rest = line
        .strip_prefix(MAC_FIELD)
        .and_then(|rest| rest.strip_prefix(mac.as_bytes()))
        .and_then(|rest| rest.strip_prefix(b"\","));
    rest.is_some_and(|rest| {
        let body = [b"{", rest].concat();
        // Whoever can try signatures here can read the key.
        key.sign(previous, &body) == mac
    })
}
