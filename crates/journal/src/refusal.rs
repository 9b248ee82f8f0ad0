//! A disk that refuses, for tests: what the thread writes to files has so many bytes of room.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};

use rustix::io::Errno;

thread_local! {
    static ROOM: Cell<Option<usize>> = const { Cell::new(None) };
    static CLAIMS: Cell<bool> = const { Cell::new(false) };
}

/// What the disk says when it is asked how many bytes fit; none where it is not played.
pub(crate) fn claimed_room() -> Option<u64> {
    let room = if CLAIMS.get() { None } else { ROOM.get() };
    room.map(|room| room as u64)
}

/// From now on the disk says that everything fits, whatever fits.
pub(crate) fn claim_room(claims: bool) {
    CLAIMS.set(claims);
}

/// From now on so many bytes fit; none is as many as there are.
pub(crate) fn leave_room(bytes: Option<usize>) {
    ROOM.set(bytes);
}

/// What is still to be written of `bytes`; where not all fits, as much as does is written
/// before the refusal.
pub(crate) fn allow<'b>(mut file: &File, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
    match ROOM.get() {
        Some(room) if bytes.len() > room => {
            ROOM.set(Some(0));
            file.write_all(&bytes[..room])?;
            Err(Errno::NOSPC.into())
        }
        Some(room) => {
            ROOM.set(Some(room - bytes.len()));
            Ok(bytes)
        }
        None => Ok(bytes),
    }
}
