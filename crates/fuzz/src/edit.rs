//! Random mutations of seeds.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;

/// The most mutations of one input.
const EDITS: usize = 8;
/// The most bytes that one mutation inserts, removes or copies.
const EDIT_BYTES: usize = 64;
/// Bytes with a meaning in most formats: ends of ranges, lengths, separators.
const INTERESTING_BYTES: [u8; 14] = [
    0x00, 0x01, 0x7f, 0x80, 0xff, b'\n', b'\r', 0x1b, b'"', b'\\', b'{', b'[', b'(', b'$',
];

#[derive(Debug, Clone)]
enum Edit {
    /// Flips one bit.
    Flip(Index, u8),
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// Inserts bytes from one position at another.
    Copy(Index, usize, Index),
    /// Replaces the rest by the end of another seed.
    Splice(Index, Index, Index),
    /// Truncates.
    Cut(Index),
}

/// Seeds with mutations.
pub(crate) fn inputs(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let seeds = Arc::new(seeds);
    let edits = proptest::collection::vec(edit(), 0..EDITS);
    (any::<Index>(), edits).prop_map(move |(seed, edits)| {
        let mut bytes = seed.get(&seeds).clone();
        for edit in &edits {
            apply(&mut bytes, edit, &seeds);
        }
        bytes
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    let byte = || {
        prop_oneof![
            any::<u8>(),
            proptest::sample::select(&INTERESTING_BYTES[..])
        ]
    };
    let length = || 1..=EDIT_BYTES;
    let bytes = proptest::collection::vec(byte(), length());
    let index = any::<Index>;
    prop_oneof![
        (index(), 0..8u8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        (index(), byte()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        (index(), bytes).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        (index(), length()).prop_map(|(at, length)| Edit::Remove(at, length)),
        (index(), length(), index()).prop_map(|(at, length, to)| Edit::Copy(at, length, to)),
        (index(), index(), index()).prop_map(|(at, seed, from)| Edit::Splice(at, seed, from)),
        index().prop_map(Edit::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit, seeds: &[Vec<u8>]) {
    let length = bytes.len();
    let position = |at: &Index| at.index(length + 1);
    let span = |at: usize, count: usize| at..(at + count).min(length);
    match edit {
        Edit::Flip(at, bit) => {
            if let Some(byte) = bytes.get_mut(position(at)) {
                *byte ^= 1 << bit;
            }
        }
        Edit::Set(at, value) => {
            if let Some(byte) = bytes.get_mut(position(at)) {
                *byte = *value;
            }
        }
        Edit::Insert(at, inserted) => {
            let at = position(at);
            bytes.splice(at..at, inserted.iter().copied());
        }
        Edit::Remove(at, count) => {
            let span = span(position(at), *count);
            bytes.drain(span);
        }
        Edit::Copy(at, count, to) => {
            let to = position(to);
            let copied = bytes[span(position(at), *count)].to_vec();
            bytes.splice(to..to, copied);
        }
        Edit::Splice(at, seed, from) => {
            let at = position(at);
            let seed = seed.get(seeds);
            bytes.truncate(at);
            bytes.extend_from_slice(&seed[from.index(seed.len() + 1)..]);
        }
        Edit::Cut(at) => bytes.truncate(position(at)),
    }
}
