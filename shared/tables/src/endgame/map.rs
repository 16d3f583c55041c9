//! Mapping files. The only `unsafe` of the crate: a map is as good as nobody changes its file meanwhile.

use memmap2::{Advice, Mmap, MmapMut};
use std::fs::File;
use std::io;

/// Maps a sealed file, read only.
#[expect(unsafe_code, reason = "a database of gigabytes is shared between processes only by mapping it")]
pub(super) fn sealed(file: &File) -> io::Result<Mmap> {
    // SAFETY: a map must not change under its readers. Programs of this workspace write a database under another name, with
    // its lock held, rename it when it is complete, and never open a sealed file for writing: a new one of the name is another
    // file, and this map keeps the old one. A user who overwrites a sealed file in place breaks this as with any mapped program or
    // library; who cuts it short has the process killed by SIGBUS, which workers survive like any other death.
    let map = unsafe { Mmap::map(file) }?;
    // It will be read all over, and soon: in one go is sooner than page by page. Only a hint.
    let _ = map.advise(Advice::WillNeed);
    Ok(map)
}

/// Maps a file that is being built.
#[expect(unsafe_code, reason = "as above; and a database that is filled in place is not in memory twice")]
pub(super) fn unfinished(file: &File) -> io::Result<MmapMut> {
    // SAFETY: the caller holds the database's lock, so no other process of ours has the file open, and it lies under a name
    // that nobody reads. Its blocks are allocated: no write through the map can fail for lack of space.
    unsafe { MmapMut::map_mut(file) }
}
