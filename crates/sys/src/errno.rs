//! Error numbers (errno(3)).

use std::io;

use rustix::io::Errno;

/// The calling thread's errno.
#[must_use]
pub fn last_errno() -> Errno {
    Errno::from_raw_os_error(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// The error number of an error of the standard library; `IO` where it has none.
#[must_use]
pub fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_number_and_one_without_a_number_is_an_io_error() {
        let absent = std::fs::File::open("/does/not/exist").expect_err("nothing is there");
        assert_eq!(last_errno(), Errno::NOENT);
        assert_eq!(errno_of(&absent), Errno::NOENT);
        assert_eq!(errno_of(&io::ErrorKind::InvalidData.into()), Errno::IO);
    }
}
