//! Files of a journal that stay open between two calls.
//!
//! A client that reads a journal repeatedly, as in a dialogue with a program, would otherwise list
//! its directory and open the same three files on each call. The open files are compared with the
//! directory each time (fstat(2)), so that segments created, trimmed, cleared or compressed
//! meanwhile are noticed.

use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::error::ReadError;
use crate::files::{self, SegmentListing, TruncationPoint};
use crate::segment::{SegmentError, SharedSegment};

/// A directory that was changed within this many milliseconds before it was listed may be changed
/// again with the same change time: file times advance with the kernel's tick, of at most 10 ms
/// (inode(7)).
const RACY_MS: u64 = 20;

#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<Option<CachedListing>>);

/// A directory listing, and the newest segment.
#[derive(Debug)]
struct CachedListing {
    mtime: DirMtime,
    listing: SegmentListing,
    floor: TruncationPoint,
    last: Option<SharedSegment>,
}

/// The change time of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirMtime {
    seconds: i64,
    nanoseconds: u64,
}

impl DirMtime {
    fn read(dir: &OwnedFd) -> std::io::Result<Self> {
        let stat = rustix::fs::fstat(dir)?;
        Ok(Self {
            seconds: stat.st_mtime,
            nanoseconds: stat.st_mtime_nsec,
        })
    }

    /// Whether a later change would have another change time.
    fn is_settled(self) -> bool {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        let at = Duration::from_secs(seconds) + Duration::from_nanos(self.nanoseconds);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.is_ok_and(|now| now.saturating_sub(at) > Duration::from_millis(RACY_MS))
    }
}

impl OpenFiles {
    pub(crate) fn close(&self) {
        *self.0.lock() = None;
    }

    /// The directory listing, and its newest segment where that is open.
    pub(crate) fn refresh(
        &self,
        dir: &OwnedFd,
    ) -> Result<(SegmentListing, TruncationPoint, Option<SharedSegment>), SegmentError> {
        let to_error = |error| ReadError::io("look at", "the execution's directory", error);
        let mtime = DirMtime::read(dir).map_err(to_error)?;
        let mut cache = self.0.lock();
        if let Some(known) = cache.as_ref().filter(|known| known.mtime == mtime) {
            return Ok((known.listing.clone(), known.floor, known.last.clone()));
        }
        let (listing, floor) = list(dir)?;
        let last = cache.take().and_then(|known| known.last);
        let last = last.filter(|last| listing.has_raw(last.number()));
        if mtime.is_settled() {
            *cache = Some(CachedListing {
                mtime,
                listing: listing.clone(),
                floor,
                last: last.clone(),
            });
        }
        Ok((listing, floor, last))
    }

    /// Keeps a segment open, where the directory listing is known.
    pub(crate) fn cache_segment(&self, last: SharedSegment) {
        if let Some(known) = self.0.lock().as_mut()
            && known.listing.has_raw(last.number())
        {
            known.last = Some(last);
        }
    }
}

pub(crate) fn list(dir: &OwnedFd) -> Result<(SegmentListing, TruncationPoint), SegmentError> {
    use std::os::fd::AsFd;
    let to_error = |error| ReadError::io("list", "the execution's directory", error);
    let listing = files::list(dir.as_fd()).map_err(to_error)?;
    let floor = if listing.has_floor {
        files::read_floor(dir.as_fd()).map_err(to_error)?
    } else {
        TruncationPoint::default()
    };
    Ok((listing, floor))
}
