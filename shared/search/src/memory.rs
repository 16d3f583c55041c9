//! How the system backs and the processor fetches the memory of large tables that are read at random.

/// Asks for huge pages behind memory that nothing was put into yet: most look-ups in a large table miss the processor's table of pages
/// otherwise. A wish, no more: nothing depends on it.
pub(crate) fn want_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 1 << 12;
        let bytes = memory.as_mut_ptr().cast::<u8>();
        let skipped = bytes.align_offset(PAGE);
        let length = size_of_val(memory).saturating_sub(skipped) / PAGE * PAGE;
        if length > 0 {
            // Refused by a kernel without huge pages: small ones do.
            // SAFETY: the range lies in `memory`, and the advice changes neither what is in it nor who may use it.
            let _ = unsafe {
                rustix::mm::madvise(
                    bytes.wrapping_add(skipped).cast(),
                    length,
                    rustix::mm::Advice::LinuxHugepage,
                )
            };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Begins to load the cache line of a value that is read soon, so that several of them are on their way at the same time.
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and it reads nothing that the program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
