//! A disk that refuses, for tests: what the thread writes to files has so many bytes of room.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};

use rustix::io::Errno;

thread_local! {
    static ROOM: Cell<Option<usize>> = const { Cell::new(None) };
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
