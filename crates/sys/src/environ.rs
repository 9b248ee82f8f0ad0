//! Removes secret variables from this process's environment, where other processes can read them.

use std::ffi::CStr;
use std::{fs, io, ptr};

/// Removes the variables that `is_secret` names from this process's environment and overwrites them
/// where the kernel exposes it (`/proc/PID/environ`). Programs started later do not inherit them.
///
/// # Errors
/// When this process has other threads, which may be reading them: nothing is changed then.
pub fn scrub_variables(is_secret: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("there are other threads"));
    }
    // SAFETY: this is the only thread, and the standard library hands out copies of variables
    // only, so that nobody holds a pointer into them. Each string is overwritten within its
    // length and leaves the array; the array stays ended by a null pointer.
    unsafe {
        let mut from = libc::environ;
        let mut to = from;
        while !from.is_null() && !(*from).is_null() {
            let text = *from;
            let bytes = CStr::from_ptr(text).to_bytes();
            let name = bytes.split(|&byte| byte == b'=').next();
            if is_secret(name.unwrap_or_default()) {
                ptr::write_bytes(text, 0, bytes.len());
            } else {
                *to = text;
                to = to.add(1);
            }
            from = from.add(1);
        }
        if !to.is_null() {
            *to = ptr::null_mut();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn with_other_threads_nothing_is_removed() {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|threads| {
            threads.spawn(move || held.recv());
            assert!(super::scrub_variables(|_| true).is_err());
            drop(hold);
        });
        assert!(std::env::vars_os().next().is_some());
    }
}
