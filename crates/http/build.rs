//! Compresses the OpenAPI document, which the daemon serves from its binary, as gzip (RFC 1952).

use std::path::Path;
use std::{env, fs, io};

use miniz_oxide::deflate::compress_to_vec;

/// The document, from the directory of the crate.
const DOCUMENT: &str = "../../docs/openapi.json";
/// The best compression that deflate has.
const LEVEL: u8 = 10;
/// The fixed header: deflate, no flags, no time, best compression, no system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    println!("cargo::rerun-if-changed=build.rs");
    let document = fs::read(DOCUMENT)?;
    let length = u32::try_from(document.len()).map_err(io::Error::other)?;
    let out_dir = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let mut compressed = HEADER.to_vec();
    compressed.extend(compress_to_vec(&document, LEVEL));
    compressed.extend(crc32fast::hash(&document).to_le_bytes());
    compressed.extend(length.to_le_bytes());
    fs::write(Path::new(&out_dir).join("openapi.json.gz"), compressed)
}
