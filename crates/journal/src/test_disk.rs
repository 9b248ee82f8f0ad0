//! A simulated full disk for tests: writes of the thread to files have a limited number of bytes.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};

use rustix::io::Errno;

thread_local! {
    static ROOM: Cell<Option<usize>> = const { Cell::new(None) };
    static CLAIMS: Cell<bool> = const { Cell::new(false) };
}

/// The number of free bytes that the disk reports; none where it is not simulated.
pub(crate) fn claimed_room() -> Option<u64> {
    let room = if CLAIMS.get() { None } else { ROOM.get() };
    room.map(|room| room as u64)
}

/// Makes the disk report that everything fits, whatever fits.
pub(crate) fn claim_room(claims: bool) {
    CLAIMS.set(claims);
}

/// Limits the bytes that fit from now on; none is no limit.
pub(crate) fn leave_room(bytes: Option<usize>) {
    ROOM.set(bytes);
}

/// The bytes still to be written of `bytes`; where not all fit, those that do are written before
/// the refusal.
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
