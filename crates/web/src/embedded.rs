//! The table of files, which the build script writes.

/// A file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedFile {
    /// Its path below the directory of the page, with `/`.
    pub path: &'static str,
    /// Its content as gzip.
    pub gzip: &'static [u8],
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));
