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
pub struct HeadKey([u8; KEY_BYTES]);

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
        let mut bytes = Vec::new();
        let longest = KEY_BYTES as u64 + 1;
        file.take(longest).read_to_end(&mut bytes).map_err(failed)?;
        let message = format!("it is not a key, which is {KEY_BYTES} bytes");
        <[u8; KEY_BYTES]>::try_from(bytes)
            .map(|key| Some(Self(key)))
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
        if file.commit_new().map_err(failed)? {
            return Ok(Self(bytes));
        }
        let missing = || failed(io::Error::from(io::ErrorKind::NotFound));
        Self::read(path)?.ok_or_else(missing)
    }

    /// The signature of a head after the one whose signature is `previous`, in lowercase
    /// hexadecimal.
    fn sign(&self, previous: &str, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new(&self.0.into());
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
}

impl HeadWriter {
    /// Opens or creates the file; a torn last line is cut.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is of a newer version.
    pub fn open(path: &Path, key: HeadKey) -> Result<Self, WriteError> {
        let failed = |action| {
            let path = path.display().to_string();
            move |error| WriteError::io(action, path, error)
        };
        let mut options = OpenOptions::new();
        options
            .read(true)
            .append(true)
            .create(true)
            .mode(PRIVATE_MODE);
        let mut file = regular_file::open_with(&mut options, path).map_err(failed("open"))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed("read"))?;
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed("cut"))?;
            text.truncate(whole);
        }
        let mut writer = Self {
            path: path.to_owned(),
            key,
            file,
            last_mac: GENESIS.to_owned(),
            covered: None,
        };
        if text.is_empty() {
            let header = HeadsHeader {
                format: FORMAT.into(),
                version: HEADS_VERSION,
            };
            writer.write_line(&serde_json::to_vec(&header)?)?;
            return Ok(writer);
        }
        let mut lines = lines(&text);
        check_header(path, lines.next().unwrap_or_default())?;
        if let Some(last) = lines.next_back().and_then(parse_line) {
            writer.last_mac = last.mac;
            writer.covered = Some(last.head.count);
        }
        Ok(writer)
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
