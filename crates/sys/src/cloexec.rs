//! Close-on-exec (fcntl(2)): keeps open descriptors from being inherited by programs started later.

/// Marks every descriptor of this process from 3 on close-on-exec. A daemon started by an agent's
/// stdio proxy must not hold the pipes that happened to be open there: their readers would wait for
/// its end.
pub fn set_cloexec_on_all() {
    const FIRST: libc::c_uint = 3;
    // SAFETY: with CLOSE_RANGE_CLOEXEC nothing is closed now; flags of descriptors are set,
    // which no Rust object relies on. A kernel without it (before 5.11) refuses, and
    // descriptors that were inherited without the flag keep it unset: harmless.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

    #[test]
    fn an_open_descriptor_is_closed_at_exec() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        fcntl_setfd(reader.as_fd(), FdFlags::empty()).expect("open");
        super::set_cloexec_on_all();
        assert_eq!(fcntl_getfd(reader.as_fd()), Ok(FdFlags::CLOEXEC));
    }
}
