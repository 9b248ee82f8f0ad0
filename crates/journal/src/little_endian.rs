//! Numbers in little-endian order at a position of a file's bytes; 0 where the bytes end before.

pub(crate) fn u32_at(raw: &[u8], at: usize) -> u32 {
    raw.get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

pub(crate) fn u64_at(raw: &[u8], at: usize) -> u64 {
    raw.get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}
