//! Waits for the descriptors of an attempt: with poll(2), and with epoll(7) once they have stayed the
//! same for a while.
//!
//! poll(2) looks at each descriptor at each call, which took a quarter of the time of a shim whose
//! command prints now and then. An epoll descriptor does not pay for a command that ends soon.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// The waits with poll(2) before descriptors that have stayed the same are registered.
const POLL_WAITS: u32 = 16;
/// Shorter waits are left to poll(2), in nanoseconds: epoll_wait(2) counts milliseconds.
const EPOLL_WAIT_MIN_NS: i64 = 20_000_000;
/// The most descriptors of an attempt.
const DESCRIPTORS_MAX: usize = 8;

/// A descriptor, and the events to wait for.
pub(super) type PollTarget<'a> = (BorrowedFd<'a>, PollFlags);

/// Waits for descriptors, the same ones again and again.
#[derive(Debug, Default)]
pub(super) struct Poller {
    /// Those of the last wait.
    targets: Vec<(RawFd, PollFlags)>,
    /// The number of waits for them.
    waits: u32,
    /// They are registered with it, by their positions.
    epoll: Option<OwnedFd>,
}

/// The positions of the descriptors that are ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReadyPositions([bool; DESCRIPTORS_MAX]);

impl ReadyPositions {
    /// Whether the descriptor at this position is ready.
    pub(super) fn contains(self, position: usize) -> bool {
        self.0.get(position).copied().unwrap_or_default()
    }

    fn insert(&mut self, position: usize) {
        if let Some(ready) = self.0.get_mut(position) {
            *ready = true;
        }
    }
}

impl Poller {
    /// Waits until one of them is ready, or the time is up.
    ///
    /// A descriptor that is closed while another file gets its number must be announced by
    /// [`reset`](Self::reset).
    pub(super) fn wait(
        &mut self,
        targets: &[PollTarget<'_>],
        timeout: Option<&Timespec>,
    ) -> ReadyPositions {
        let raw = targets.iter().map(|(fd, flags)| (fd.as_raw_fd(), *flags));
        if !raw.clone().eq(self.targets.iter().copied()) {
            self.reset();
            self.targets.extend(raw);
        }
        self.waits = self.waits.saturating_add(1);
        if self.waits == POLL_WAITS {
            self.epoll = register(targets).ok();
        }
        let is_long = |limit: &Timespec| limit.tv_sec > 0 || limit.tv_nsec >= EPOLL_WAIT_MIN_NS;
        match &self.epoll {
            Some(epoll) if timeout.is_none_or(is_long) => wait_registered(epoll, timeout),
            Some(_) | None => wait_once(targets, timeout),
        }
    }

    /// Forgets the descriptors.
    pub(super) fn reset(&mut self) {
        self.targets.clear();
        self.waits = 0;
        self.epoll = None;
    }
}

fn register(targets: &[PollTarget<'_>]) -> Result<OwnedFd, Errno> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (position, (descriptor, flags)) in (0..).zip(targets) {
        // The numbers of the events are the same.
        let flags = EventFlags::from_bits_retain(u32::from(flags.bits()));
        epoll::add(&epoll, descriptor, EventData::new_u64(position), flags)?;
    }
    Ok(epoll)
}

fn wait_registered(epoll: &OwnedFd, timeout: Option<&Timespec>) -> ReadyPositions {
    let mut events = [epoll::Event {
        flags: EventFlags::empty(),
        data: EventData::new_u64(0),
    }; DESCRIPTORS_MAX];
    let count = epoll::wait(epoll, &mut events, timeout).unwrap_or_default();
    let mut ready = ReadyPositions::default();
    for event in &events[..count] {
        if let Ok(position) = usize::try_from(event.data.u64()) {
            ready.insert(position);
        }
    }
    ready
}

fn wait_once(targets: &[PollTarget<'_>], timeout: Option<&Timespec>) -> ReadyPositions {
    let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(DESCRIPTORS_MAX);
    polled.extend(
        targets
            .iter()
            .map(|(descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags)),
    );
    let mut ready = ReadyPositions::default();
    if rustix::event::poll(&mut polled, timeout).is_err() {
        return ready;
    }
    for (position, descriptor) in polled.iter().enumerate() {
        if !descriptor.revents().is_empty() {
            ready.insert(position);
        }
    }
    ready
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::pipe::pipe;

    use super::*;

    const AT_ONCE: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };

    /// Which of two are ready, whether the wait is short or could be long.
    fn ready(poller: &mut Poller, targets: [&OwnedFd; 2]) -> [bool; 2] {
        let targets = targets.map(|it| (it.as_fd(), PollFlags::IN));
        let is_ready = poller.wait(&targets, Some(&AT_ONCE));
        let found = [0, 1].map(|position| is_ready.contains(position));
        if found != [false; 2] {
            let again = poller.wait(&targets, None);
            assert_eq!(found, [0, 1].map(|position| again.contains(position)));
        }
        found
    }

    #[test]
    fn the_same_are_ready_before_and_after_they_are_registered() {
        let ((first, to_first), (second, to_second)) = (pipe().expect("one"), pipe().expect("two"));
        let mut poller = Poller::default();
        for round in 0..3 * POLL_WAITS {
            assert_eq!(ready(&mut poller, [&first, &second]), [false; 2], "{round}");
            rustix::io::write(&to_first, b"1").expect("room");
            assert_eq!(ready(&mut poller, [&first, &second]), [true, false]);
            rustix::io::write(&to_second, b"2").expect("room");
            assert_eq!(ready(&mut poller, [&first, &second]), [true, true]);
            for descriptor in [&first, &second] {
                rustix::io::read(descriptor, &mut [0_u8; 8]).expect("bytes");
            }
        }
        assert!(poller.epoll.is_some());
        drop(to_first);
        assert_eq!(
            ready(&mut poller, [&first, &second]),
            [true, false],
            "the other end is closed"
        );
    }

    #[test]
    fn other_descriptors_and_other_events_are_registered_anew() {
        let (first, to_first) = pipe().expect("a pipe");
        let (second, _to_second) = pipe().expect("a pipe");
        let mut poller = Poller::default();
        for _ in 0..=POLL_WAITS {
            ready(&mut poller, [&first, &second]);
        }
        rustix::io::write(&to_first, b"1").expect("room");
        assert_eq!(ready(&mut poller, [&second, &first]), [false, true]);
        for _ in 0..POLL_WAITS {
            let target = [(to_first.as_fd(), PollFlags::OUT)];
            let is_ready = poller.wait(&target, None);
            assert!(is_ready.contains(0) && !is_ready.contains(1));
        }
    }

    #[test]
    fn a_file_that_cannot_be_registered_is_polled() {
        let file = tempfile::tempfile().expect("a file");
        let mut poller = Poller::default();
        for _ in 0..2 * POLL_WAITS {
            let is_ready = poller.wait(&[(file.as_fd(), PollFlags::IN)], None);
            assert!(is_ready.contains(0) && poller.epoll.is_none());
        }
    }
}
