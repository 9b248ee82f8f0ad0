//! A session's event stream: output as it arrives, and the end, exactly once.

use std::collections::VecDeque;
use std::sync::Arc;

use ostler_journal::follow::JournalFollower as Reader;
use ostler_journal::{BytePage, ReadError};
use ostler_model::{Cursor, Termination};
use tokio::sync::watch;

use crate::error::Error;
use crate::execution::{ExecutionHandle, LiveState, OutputWatchGuard};
use crate::wait;

/// Bytes read at once for one subscriber.
const LISTEN_BYTES: u64 = 64 * 1024;

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalEvent {
    /// Output.
    Output {
        /// The offset of its first byte.
        offset: u64,
        /// The bytes, unmodified.
        data: Vec<u8>,
    },
    /// Output that was dropped before it could be delivered.
    Gap {
        /// Offset of the first missing byte.
        from: u64,
        /// Offset of the first byte after it.
        to: u64,
    },
    /// It ended; the last event.
    Exit(Termination),
}

/// The events of one session.
#[derive(Debug)]
pub struct TerminalEvents {
    entry: Arc<ExecutionHandle>,
    live: watch::Receiver<LiveState>,
    from: Cursor,
    stage: EventStage,
    /// Events that were read and not delivered yet.
    queued: VecDeque<TerminalEvent>,
    _watch: OutputWatchGuard,
}

#[derive(Debug)]
enum EventStage {
    /// Its journal does not exist yet.
    NotStarted,
    /// There may be more output.
    Output(Reader),
    /// Only the end remains.
    Exit,
    /// Everything was delivered.
    Done,
}

impl TerminalEvents {
    pub(crate) fn new(entry: Arc<ExecutionHandle>, from: Cursor) -> Self {
        Self {
            live: entry.live.subscribe(),
            _watch: OutputWatchGuard::new(&entry),
            entry,
            from,
            stage: EventStage::NotStarted,
            queued: VecDeque::new(),
        }
    }

    /// The next event; none after [`TerminalEvent::Exit`]. Cancel safe.
    ///
    /// # Errors
    /// [`Error::Output`] when the journal cannot be read, [`Error::Closing`] when the engine
    /// ends before the session does.
    pub async fn next(&mut self) -> Result<Option<TerminalEvent>, Error> {
        loop {
            if let Some(event) = self.queued.pop_front() {
                return Ok(Some(event));
            }
            match &mut self.stage {
                EventStage::NotStarted => self.open().await?,
                EventStage::Output(reader) => {
                    let page = tokio::select! {
                        biased;
                        page = reader.next() => page?,
                        () = released(&mut self.live) => return Err(Error::Closing),
                    };
                    self.from = reader.cursor();
                    match page {
                        Some(page) => self.queued.extend(page_events(page)),
                        None => self.stage = EventStage::Exit,
                    }
                }
                EventStage::Exit => return self.exit().await.map(Some),
                EventStage::Done => return Ok(None),
            }
        }
    }

    /// The position at which the next event's output begins, to continue there later.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        match self.queued.front() {
            Some(TerminalEvent::Output { offset, .. }) => Cursor {
                offset: *offset,
                ..self.from
            },
            Some(TerminalEvent::Gap { from, .. }) => Cursor {
                offset: *from,
                ..self.from
            },
            Some(TerminalEvent::Exit(_)) | None => self.from,
        }
    }

    async fn open(&mut self) -> Result<(), Error> {
        match self.entry.journal() {
            Ok(journal) => {
                let marks = self.entry.journal_end.subscribe();
                let reader = Reader::new(journal, self.from, marks).page_bytes(LISTEN_BYTES);
                self.stage = EventStage::Output(reader);
                Ok(())
            }
            Err(Error::Output(ReadError::Missing { .. })) if self.entry.is_finished() => {
                self.stage = EventStage::Exit;
                Ok(())
            }
            Err(Error::Output(ReadError::Missing { .. })) => {
                tokio::select! {
                    biased;
                    () = wait::wait_started(&self.entry) => Ok(()),
                    () = released(&mut self.live) => Err(Error::Closing),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn exit(&mut self) -> Result<TerminalEvent, Error> {
        let is_over = |live: &LiveState| live.state.ending.is_some() || live.driver_done;
        let ended = match self.live.wait_for(is_over).await {
            Ok(live) => live.state.ending.clone(),
            Err(_) => None,
        };
        let ending = ended.ok_or(Error::Closing)?;
        self.stage = EventStage::Done;
        Ok(TerminalEvent::Exit(ending))
    }
}

/// Resolves when the engine shuts down while the execution continues.
async fn released(live: &mut watch::Receiver<LiveState>) {
    let is_released = |live: &LiveState| live.driver_done && !live.state.is_finished();
    if live.wait_for(is_released).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn page_events(page: BytePage) -> impl Iterator<Item = TerminalEvent> {
    let gap = page.gap.map(|gap| TerminalEvent::Gap {
        from: gap.from,
        to: gap.to,
    });
    let output = page.chunks.into_iter().map(|chunk| TerminalEvent::Output {
        offset: chunk.offset,
        data: chunk.bytes,
    });
    gap.into_iter().chain(output)
}
