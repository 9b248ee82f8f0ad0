//! Pages that can be released to the kernel, and memory files.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::ptr;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Zeroed pages, private to this process, resident only where they are used.
#[derive(Debug)]
pub struct Pages {
    start: *mut u8,
    len: usize,
}

// SAFETY: the pages are owned by this value alone, like a boxed slice.
unsafe impl Send for Pages {}

impl Pages {
    /// Maps `len` bytes, a multiple of the page size.
    pub fn map(len: usize) -> Result<Self, Errno> {
        // SAFETY: an anonymous private mapping at an address of the kernel's choice overlaps
        // nothing.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    /// The bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `start..start + len` is mapped readable and writable for the life of self,
        // zero-initialised, and borrowed through self alone.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// One past the last byte, where a downward-growing stack begins.
    pub fn top(&mut self) -> *mut u8 {
        // SAFETY: one past the end of the mapping is a valid address to compute.
        unsafe { self.start.add(self.len) }
    }

    /// Releases touched pages; they read as zeroes afterwards.
    pub fn release_pages(&mut self) {
        // SAFETY: the range is owned, and no reference into it is alive (`&mut self`).
        let _advised = unsafe { madvise(self.start.cast(), self.len, Advice::LinuxDontNeed) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map` and nothing refers to it any more.
        let _unmapped = unsafe { munmap(self.start.cast(), self.len) };
    }
}

/// A memory file holding `bytes`, positioned at its start.
pub fn memfd_with(name: &str, bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Reads a whole memory file of at most `limit` bytes.
pub fn read_memfd(file: OwnedFd, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::from(file);
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
