//! Random texts that nobody can guess.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::rand::{GetRandomFlags, getrandom};

/// So many random bytes of the kernel, as base64url without padding.
pub(crate) fn random_text<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
