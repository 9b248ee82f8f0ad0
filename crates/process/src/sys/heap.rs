//! The process's own heap.

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
