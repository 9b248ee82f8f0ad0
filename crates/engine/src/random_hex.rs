//! Unpredictable texts.

use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::Error;

/// As many random bytes as 32 lower-case hexadecimal digits hold.
///
/// # Errors
/// [`Error::Storage`] where getrandom(2) fails.
pub(crate) fn random_hex() -> Result<String, Error> {
    Ok(ostler_model::lower_hex(&random_bytes::<16>()?))
}

/// Random bytes.
///
/// # Errors
/// As [`random_hex`].
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0_u8; N];
    let filled = getrandom(&mut bytes[..], GetRandomFlags::empty());
    filled.map_err(|error| Error::Storage {
        what: "cannot read random bytes from",
        path: "/dev/urandom".into(),
        source: error.into(),
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_letters_and_digits_and_differ() {
        let (one, other) = (random_hex().expect("random"), random_hex().expect("random"));
        assert_eq!(one.len(), 32);
        assert!(one.chars().all(|c| c.is_ascii_alphanumeric()));
        assert_ne!(one, other);
    }
}
