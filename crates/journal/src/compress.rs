//! Compression of sealed segments, in the seekable Zstandard format: `zstd -d` and `zstdgrep` can
//! read them, and reading the end of one decompresses one frame only.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use crate::files;
use crate::little_endian::u32_at;

/// The size of a frame before compression, in bytes.
const FRAME_BYTES: usize = 256 * 1024;
/// The Zstandard compression level.
const LEVEL: i32 = 3;
const TABLE_MAGIC: u32 = 0x184D_2A5E;
const FOOTER_MAGIC: u32 = 0x8F92_EAB1;
const FOOTER_BYTES: usize = 9;
const ENTRY_BYTES: usize = 8;
/// The most frames in a seek table; a segment has at most 4096.
const FRAMES_MAX: usize = 64 * 1024;

/// A compressed segment, opened for reading.
#[derive(Debug)]
pub(crate) struct FrameReader {
    file: File,
    frames: Vec<Frame>,
    /// The number and content of the frame decoded last.
    decoded: RefCell<Option<(usize, Vec<u8>)>>,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    /// The offset of the frame in the file.
    at: u64,
    compressed_len: usize,
    /// The offset of the frame's content in the segment.
    from: u64,
    len: usize,
}

impl FrameReader {
    pub(crate) fn open(file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let mut footer = [0; FOOTER_BYTES];
        let footer_at = size
            .checked_sub(FOOTER_BYTES as u64)
            .ok_or_else(invalid_data)?;
        file.read_exact_at(&mut footer, footer_at)?;
        let count = u32_at(&footer, 0) as usize;
        if u32_at(&footer, 5) != FOOTER_MAGIC || count > FRAMES_MAX {
            return Err(invalid_data());
        }
        let mut table = vec![0; count * ENTRY_BYTES];
        let table_at = footer_at.checked_sub(table.len() as u64);
        file.read_exact_at(&mut table, table_at.ok_or_else(invalid_data)?)?;
        Ok(Self {
            file,
            frames: parse_frames(&table),
            decoded: RefCell::new(None),
        })
    }

    /// Reads from offset `at` on, as much of `buffer` as there is.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = at + filled as u64;
            let number = self
                .frames
                .partition_point(|one| one.from + one.len as u64 <= at);
            let Some(frame) = self.frames.get(number) else {
                break;
            };
            let mut decoded = self.decoded.borrow_mut();
            if decoded.as_ref().is_none_or(|(known, _)| *known != number) {
                *decoded = Some((number, self.decode(frame)?));
            }
            let bytes = decoded.as_ref().map_or(&[][..], |(_, bytes)| bytes);
            let skip = usize::try_from(at - frame.from).unwrap_or(usize::MAX);
            let bytes = bytes.get(skip..).unwrap_or_default();
            let count = bytes.len().min(buffer.len() - filled);
            if count == 0 {
                break;
            }
            buffer[filled..filled + count].copy_from_slice(&bytes[..count]);
            filled += count;
        }
        Ok(filled)
    }

    fn decode(&self, frame: &Frame) -> io::Result<Vec<u8>> {
        let mut packed = vec![0; frame.compressed_len];
        self.file.read_exact_at(&mut packed, frame.at)?;
        zstd::bulk::decompress(&packed, frame.len)
    }
}

fn parse_frames(table: &[u8]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::with_capacity(table.len() / ENTRY_BYTES);
    for entry in table.chunks_exact(ENTRY_BYTES) {
        let (at, from) = frames.last().map_or((0, 0), |last| {
            (
                last.at + last.compressed_len as u64,
                last.from + last.len as u64,
            )
        });
        frames.push(Frame {
            at,
            compressed_len: (u32_at(entry, 0) as usize).min(2 * FRAME_BYTES),
            from,
            len: (u32_at(entry, 4) as usize).min(FRAME_BYTES),
        });
    }
    frames
}

/// Writes `segment` compressed to `out`.
pub(crate) fn compress_segment(segment: &File, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Vec::new();
    let mut buffer = vec![0; FRAME_BYTES];
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let mut at = 0;
    loop {
        let filled = files::read_at(segment, &mut buffer, at)?;
        if filled == 0 {
            break;
        }
        let packed = compressor.compress(&buffer[..filled])?;
        out.write_all(&packed)?;
        table.extend_from_slice(&encode_len(packed.len())?);
        table.extend_from_slice(&encode_len(filled)?);
        at += filled as u64;
    }
    let count = encode_len(table.len() / ENTRY_BYTES)?;
    out.write_all(&TABLE_MAGIC.to_le_bytes())?;
    out.write_all(&encode_len(table.len() + FOOTER_BYTES)?)?;
    out.write_all(&table)?;
    out.write_all(&count)?;
    out.write_all(&[0])?;
    out.write_all(&FOOTER_MAGIC.to_le_bytes())
}

fn encode_len(len: usize) -> io::Result<[u8; 4]> {
    u32::try_from(len)
        .map(u32::to_le_bytes)
        .map_err(|_| invalid_data())
}

fn invalid_data() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no compressed segment")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    #[test]
    fn every_offset_reads_as_before() {
        let bytes: Vec<u8> = (0..700_000u32).map(|n| (n % 251) as u8).collect();
        let mut plain = tempfile::tempfile().unwrap();
        plain.write_all(&bytes).unwrap();
        plain.rewind().unwrap();
        let mut packed = tempfile::tempfile().unwrap();
        compress_segment(&plain, &mut packed).unwrap();
        let frames = FrameReader::open(packed).unwrap();
        for (at, len) in [
            (0, 10),
            (262_140, 10),
            (262_144, 300_000),
            (699_990, 100),
            (700_000, 1),
        ] {
            let mut buffer = vec![0; len];
            let filled = frames.read_at(&mut buffer, at as u64).unwrap();
            assert_eq!(buffer[..filled], bytes[at..(at + len).min(bytes.len())]);
        }
    }
}
