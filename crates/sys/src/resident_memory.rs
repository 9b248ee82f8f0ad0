//! The resident memory of the process: its heap, and its program's pages.

/// Free bytes at the end of an arena beyond which they are returned to the system at once.
#[cfg(target_env = "gnu")]
const TRIM_BYTES: libc::c_int = 8 * 1024 * 1024;
/// Allocations of this size are mapped separately, and unmapped when they are freed.
#[cfg(target_env = "gnu")]
const MMAP_BYTES: libc::c_int = 1024 * 1024;

/// Makes arenas keep freed memory until [`trim_heap`]. By default the C library returns the end of
/// an arena as soon as 128 KiB of it are free, so that a server pays for system calls, page faults
/// and zeroing with each request (mallopt(3)). To be called before other threads run.
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

/// Returns free memory of the heap to the system. The C library keeps it otherwise: allocations of
/// many threads that are still in use prevent their arenas from shrinking. Takes milliseconds.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: malloc_trim(3) may be called at any time by any thread; it takes the arenas'
        // locks and touches free memory only.
        let _returned = unsafe { libc::malloc_trim(0) };
    }
}

/// Unmaps the pages of our own program. What only the start needed is not resident any more; what
/// is called again is mapped again, from the page cache.
pub fn unmap_program() {
    if let Some((begin, bytes)) = program_text() {
        let begin = std::ptr::with_exposed_provenance_mut(begin);
        // SAFETY: the range is the executable mapping of our own file, private and never written
        // to (position-independent code has no relocations there): its pages are those of the
        // file, and the kernel maps them again when they are touched.
        let _kept = unsafe { rustix::mm::madvise(begin, bytes, rustix::mm::Advice::LinuxDontNeed) };
    }
}

/// The executable mapping that contains this function: its address and size in bytes.
fn program_text() -> Option<(usize, usize)> {
    let own = program_text as fn() -> Option<(usize, usize)> as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (begin, end) = fields.next()?.split_once('-')?;
        let begin = usize::from_str_radix(begin, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let is_text = fields.next() == Some("r-xp") && (begin..end).contains(&own);
        is_text.then_some((begin, end - begin))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_pages_were_let_go_of_goes_on() {
        let (begin, bytes) = program_text().expect("we run");
        assert!(begin > 0 && bytes > 0);
        unmap_program();
        assert_eq!(program_text(), Some((begin, bytes)));
    }
}
