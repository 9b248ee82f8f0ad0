//! The process's own heap.

/// Free bytes at the end of an arena beyond which they go back to the system at once.
#[cfg(target_env = "gnu")]
const TRIM_BYTES: libc::c_int = 8 * 1024 * 1024;
/// Allocations of this size are mapped apart, and unmapped when they are freed.
#[cfg(target_env = "gnu")]
const MMAP_BYTES: libc::c_int = 1024 * 1024;

/// Lets arenas keep what they free, until [`trim_heap`]. By default the C library gives the end
/// of an arena back as soon as 128 KiB of it are free, so that a server pays for system calls,
/// page faults and zeroing with each request (mallopt(3)). To be called before other threads
/// run.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: mallopt(3) sets a parameter of the allocator; nothing else runs yet.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_BYTES);
            libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_BYTES);
        }
    }
}

/// Gives free memory of the heap back to the system. The C library keeps it otherwise: much was
/// allocated in between, by many threads, and what is still in use keeps the ends of their
/// arenas in place. Takes milliseconds.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: malloc_trim(3) may be called at any time by any thread; it takes the arenas'
        // locks and touches free memory only.
        let _returned = unsafe { libc::malloc_trim(0) };
    }
}
