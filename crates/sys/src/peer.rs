//! The process at the other end of a unix socket, and its user.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::errno::last_errno;

/// The pid of the process that connected to this socket, or that listened where this end connected
/// (unix(7), `SO_PEERCRED`); none where it has no pid in the caller's pid namespace.
///
/// # Errors
/// As getsockopt(2).
pub fn pid(socket: impl AsFd) -> Result<Option<u32>, Errno> {
    let peer = credential(socket)?;
    Ok(u32::try_from(peer.pid).ok().filter(|pid| *pid > 0))
}

/// The effective user id of that process when it connected or began to listen; the overflow id where
/// it has none in the caller's user namespace.
///
/// # Errors
/// As getsockopt(2).
pub fn uid(socket: impl AsFd) -> Result<u32, Errno> {
    credential(socket).map(|peer| peer.uid)
}

fn credential(socket: impl AsFd) -> Result<libc::ucred, Errno> {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the kernel writes at most `len` bytes into `peer`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            peer.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result < 0 {
        return Err(last_errno());
    }
    // SAFETY: three integers, zero before; every value is valid.
    Ok(unsafe { peer.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (ours, _theirs) = crate::seqpacket::pair().expect("a pair");
        assert_eq!(pid(&ours), Ok(Some(std::process::id())));
        assert_eq!(uid(&ours), Ok(rustix::process::geteuid().as_raw()));
        let (pipe, _) = std::io::pipe().expect("a pipe");
        assert!(pid(&pipe).is_err(), "no socket");
    }
}
