//! Screens of an engine: parsed from the journals when somebody looks, kept while they are
//! looked at, left as checkpoints after that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ostler_journal::{Journal, ReadError, retention};
use ostler_model::TermSize;
use ostler_model::spec::Io;
use ostler_terminal::Screen;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::seat::{Beginning, Seat};
use crate::core::Core;
use crate::entry::Entry;
use crate::error::Error;

/// How long a parse may take, in milliseconds: output can be made to be slow. The rest is
/// passed over.
pub const SCREEN_CATCH_UP_MS: u64 = 15_000;
/// Screens that are kept in memory, over all executions.
pub const SCREENS_LIVE: usize = 64;
/// The most output a screen is parsed from at once, in bytes; what lies further back is passed
/// over, and the screen says so.
pub const SCREEN_CATCH_UP_BYTES: u64 = 128 * 1024 * 1024;
/// The same before output is dropped while a command runs, when nobody may be kept waiting.
pub const SCREEN_UPKEEP_BYTES: u64 = 16 * 1024 * 1024;
/// Output up to so many bytes is parsed in place; more on a thread of its own.
const INLINE_BYTES: u64 = 256 * 1024;
/// Output that is parsed before anybody looks whether it is still wanted.
const SLICE_BYTES: u64 = 1024 * 1024;
/// Output a checkpoint is worth at shutdown.
const WORTH_BYTES: u64 = 256 * 1024;

/// Which screens are in memory, the one looked at last at the end.
#[derive(Debug, Default)]
pub(crate) struct Screens(Mutex<VecDeque<Weak<Entry>>>);

impl Screens {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<Entry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it was looked at; answers those that must go.
    fn used(&self, entry: &Arc<Entry>) -> Vec<Arc<Entry>> {
        let mut live = self.lock();
        live.retain(|it| it.strong_count() > 0 && it.as_ptr() != Arc::as_ptr(entry));
        live.push_back(Arc::downgrade(entry));
        let beyond = live.len().saturating_sub(SCREENS_LIVE);
        live.drain(..beyond).filter_map(|it| it.upgrade()).collect()
    }

    fn all(&self) -> Vec<Arc<Entry>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// How far a screen is brought.
#[derive(Debug, Clone, Copy)]
struct Goal {
    /// From at most so many bytes.
    within: u64,
    /// To this offset, or the end of what there is.
    until: u64,
}

impl Goal {
    const fn now() -> Self {
        Self {
            within: SCREEN_CATCH_UP_BYTES,
            until: u64::MAX,
        }
    }

    const fn back_to(until: u64) -> Self {
        Self {
            until,
            ..Self::now()
        }
    }
}

/// A screen that nobody else looks at.
type Held = OwnedMutexGuard<Option<Box<Seat>>>;

impl Core {
    /// Lets `look` see the screen as it is now. Those who look at one screen at the same time
    /// share the parse.
    pub(crate) async fn look_at_screen<T>(
        &self,
        entry: &Arc<Entry>,
        look: impl FnOnce(&Screen) -> T,
    ) -> Result<T, Error> {
        for old in self.screens.used(entry) {
            put_away(&old);
        }
        let held = Arc::clone(&entry.screen).lock_owned().await;
        let held = self.bring_up(entry, held, Goal::now()).await?;
        match held.as_ref() {
            Some(seat) => Ok(look(&seat.screen)),
            None => Err(Error::Closing),
        }
    }

    /// Lets `look` see the screen as it was at `end`, and not later; none where that cannot be
    /// told any more. A screen that was looked at since is parsed once more, beside it.
    pub(crate) async fn look_back_at_screen<T>(
        &self,
        entry: &Arc<Entry>,
        end: u64,
        look: impl FnOnce(&Screen) -> T,
    ) -> Result<Option<T>, Error> {
        for old in self.screens.used(entry) {
            put_away(&old);
        }
        let mut held = Arc::clone(&entry.screen).lock_owned().await;
        if held.as_ref().is_some_and(|seat| seat.offset() > end) {
            held = Arc::new(tokio::sync::Mutex::new(None)).lock_owned().await;
        }
        let held = self.bring_up(entry, held, Goal::back_to(end)).await?;
        let seat = held.as_ref().filter(|seat| seat.offset() == end);
        Ok(seat.map(|seat| look(&seat.screen)))
    }

    /// Output is about to be dropped: brings the screen up and leaves a checkpoint, from at
    /// most `within` bytes.
    pub(crate) async fn keep_screen(&self, entry: &Arc<Entry>, within: u64) {
        if terminal_size(entry).is_none() {
            return;
        }
        let held = Arc::clone(&entry.screen).lock_owned().await;
        let was_live = held.is_some();
        let goal = Goal {
            within,
            ..Goal::now()
        };
        match self.bring_up(entry, held, goal).await {
            Ok(mut held) => {
                if let Some(seat) = held.as_mut() {
                    seat.store();
                }
                if !was_live {
                    *held = None;
                }
            }
            Err(error) => tracing::warn!(id = %entry.id, %error, "its screen is not kept"),
        }
    }

    /// As [`Core::keep_screen`], where retention is about to drop output.
    pub(crate) async fn keep_screen_of_excess(&self, entry: &Arc<Entry>, within: u64) {
        if terminal_size(entry).is_none() {
            return;
        }
        let (dir, policy) = (entry.dir.clone(), self.settings.output);
        let excess = tokio::task::spawn_blocking(move || retention::excess(&dir, policy)).await;
        if matches!(excess, Ok(Ok(Some(_)))) {
            self.keep_screen(entry, within).await;
        }
    }

    /// The engine ends: what took long to parse is left for the next one.
    pub(crate) fn store_screens(&self) {
        for entry in self.screens.all() {
            if let Ok(mut held) = entry.screen.try_lock()
                && let Some(seat) = held.as_mut()
                && seat.unstored_bytes() >= WORTH_BYTES
            {
                seat.store();
            }
        }
    }

    async fn bring_up(
        &self,
        entry: &Arc<Entry>,
        mut held: Held,
        goal: Goal,
    ) -> Result<Held, Error> {
        if held.is_none() {
            held = open(entry, held).await?;
        }
        let Some(journal) = journal(entry)? else {
            return Ok(held);
        };
        let end = journal.end()?.min(goal.until);
        if let Some(seat) = held.as_mut() {
            seat.hear(&entry.turns);
            if end - seat.offset().min(end) > goal.within {
                seat.jump(end - goal.within);
            }
            if end - seat.offset().min(end) <= INLINE_BYTES {
                while seat.advance(&journal, end, INLINE_BYTES)? {}
                return Ok(held);
            }
        }
        let give_up_at = Instant::now() + Duration::from_millis(SCREEN_CATCH_UP_MS);
        let mut more = true;
        while more {
            if self.closing.is_cancelled() {
                return Err(Error::Closing);
            }
            if let Some(seat) = held.as_mut().filter(|_| Instant::now() > give_up_at) {
                seat.jump(end.saturating_sub(INLINE_BYTES));
            }
            (held, more) = slice(journal.clone(), held, end).await?;
        }
        Ok(held)
    }
}

/// The size a terminal began with; none where there is no terminal.
pub(super) fn terminal_size(entry: &Entry) -> Option<TermSize> {
    match entry.spec.io {
        Io::Pty { size } => Some(size),
        Io::Pipes { .. } => None,
    }
}

async fn open(entry: &Arc<Entry>, mut held: Held) -> Result<Held, Error> {
    let size = terminal_size(entry).ok_or(Error::NoTerminal { id: entry.id })?;
    let entry = Arc::clone(entry);
    // Whoever asked may go; what was begun is not lost.
    let opened = tokio::task::spawn_blocking(move || {
        let shell = entry.spec.shell.as_ref();
        let beginning = Beginning {
            dir: entry.dir.clone(),
            size,
            nonce: shell.map(|shell| shell.nonce.clone()),
        };
        *held = Some(Box::new(Seat::open(beginning, &entry.turns)?));
        Ok(held)
    });
    opened.await.map_err(|_| Error::Closing)?
}

/// None while it is not born, or where it never was.
fn journal(entry: &Entry) -> Result<Option<Journal>, Error> {
    match entry.journal() {
        Ok(journal) => Ok(Some(journal)),
        Err(Error::Output(ReadError::Missing { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses about [`SLICE_BYTES`] on a thread of its own.
async fn slice(journal: Journal, mut held: Held, end: u64) -> Result<(Held, bool), Error> {
    let parsed = tokio::task::spawn_blocking(move || {
        let more = match held.as_mut() {
            Some(seat) => seat.advance(&journal, end, SLICE_BYTES)?,
            None => false,
        };
        Ok((held, more))
    });
    parsed.await.map_err(|_| Error::Closing)?
}

/// A screen nobody looked at for longest: its checkpoint stays. One that somebody looks at
/// right now comes back by itself.
fn put_away(entry: &Entry) {
    if let Ok(mut held) = entry.screen.try_lock()
        && let Some(mut seat) = held.take()
    {
        seat.store();
    }
}
