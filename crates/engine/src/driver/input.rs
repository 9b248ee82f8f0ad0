//! Writes to a command's input: one order at a time, each waited for.

use std::collections::VecDeque;
use std::time::Duration;

use ostler_model::{InputId, Principal, Timestamp};
use ostler_process::place::{INPUT_CHUNK_BYTES, IdempotentInput, InputProgress};
use ostler_process::{ControlError, Order};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::supervisor::Input;

use super::run::Driver;

/// Writes that wait for the ones before them; more are refused as busy.
const WRITES: usize = 64;
/// How long a command may leave its full input alone before it counts as not reading, in
/// milliseconds.
const INPUT_PATIENCE_MS: u64 = 1_000;
/// Until a full input is tried again, in milliseconds; doubled while nothing is taken.
const FIRST_RETRY_MS: u64 = 2;
/// The longest time between two tries, in milliseconds.
const LONGEST_RETRY_MS: u64 = 100;

/// Bytes for a command, or the end of its input, or both.
#[derive(Debug)]
pub(crate) struct Write {
    /// From whom.
    pub(crate) by: Principal,
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// Whether the input ends after them.
    pub(crate) close: bool,
    /// What they are.
    pub(crate) purpose: Purpose,
    /// How many were taken.
    pub(crate) answer: oneshot::Sender<Result<Taken, ControlError>>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Bytes the command's input took.
    pub(crate) bytes: u64,
    /// The journal's end when the first of them was handed over: output before it cannot be
    /// the reply.
    pub(crate) sent_at: u64,
    /// What [`Purpose::AskProgress`] asked for.
    pub(crate) progress: ProgressAnswer,
}

/// What the shim says of an input that goes in once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ProgressAnswer {
    /// Nothing: it was not asked, or is of an earlier version that cannot tell.
    #[default]
    Unsupported,
    /// None of it was taken.
    Nothing,
    /// Some of it was taken, or all.
    Some(InputProgress),
}

/// What bytes for a command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Somebody's input.
    Input,
    /// Somebody's input that goes in once, however often it is written.
    Once(IdempotentInput),
    /// None: it is asked how much of such an input was taken.
    AskProgress(InputId),
    /// The answer to a prompt: one line and its end.
    Answer,
    /// What a terminal says by itself; nobody typed it, so it is no event.
    Report,
}

/// Writes under way; the first one has an order out.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    queue: VecDeque<Write>,
    /// Bytes of it that were handed over and not given back.
    sent: usize,
    taken: u64,
    /// The journal's end when the first one began to be handed over.
    sent_at: u64,
    full: Option<Full>,
    /// Whether the question of the first one is out.
    asked: bool,
    progress: ProgressAnswer,
}

/// An input that takes no more just now. Nothing tells when it does again.
#[derive(Debug, Clone, Copy)]
struct Full {
    again_at: Instant,
    pause: Duration,
    give_up_at: Instant,
}

impl Full {
    fn new() -> Self {
        let (now, pause) = (Instant::now(), Duration::from_millis(FIRST_RETRY_MS));
        Self {
            again_at: now + pause,
            pause,
            give_up_at: now + Duration::from_millis(INPUT_PATIENCE_MS),
        }
    }

    /// Still full; none when it counts as not read any more.
    fn still(self) -> Option<Self> {
        let pause = (self.pause * 2).min(Duration::from_millis(LONGEST_RETRY_MS));
        let again_at = Instant::now() + pause;
        (again_at <= self.give_up_at).then_some(Self {
            again_at,
            pause,
            ..self
        })
    }
}

impl Writes {
    /// When a full input is to be tried again; none while a try is out.
    pub(super) fn due(&self) -> Option<Instant> {
        let waits = self.full.filter(|_| !self.is_short());
        waits.map(|full| full.again_at)
    }

    const fn is_short(&self) -> bool {
        self.taken < self.sent as u64
    }

    /// The journal's end when the write under way began.
    pub(super) const fn sent_at(&self) -> u64 {
        self.sent_at
    }

    /// What was not taken is still to be sent.
    fn take_back(&mut self) {
        // It is at most what was sent, which is in memory.
        self.sent = usize::try_from(self.taken).unwrap_or(self.sent);
    }
}

impl Driver {
    pub(super) async fn write(&mut self, write: Write) {
        if self.writes.queue.len() >= WRITES {
            return answer(write, Err(ControlError::Busy));
        }
        self.writes.queue.push_back(write);
        if self.writes.queue.len() == 1 {
            self.next_chunk().await;
        }
    }

    /// Sends the next chunk of the first write, or finishes writes that have none.
    async fn next_chunk(&mut self) {
        while let Some(write) = self.writes.queue.front() {
            let chunk = write.bytes[self.writes.sent..]
                .chunks(INPUT_CHUNK_BYTES)
                .next()
                .map(<[u8]>::to_vec);
            let purpose = write.purpose;
            let is_report = purpose == Purpose::Report;
            if let Purpose::AskProgress(id) = purpose
                && !self.writes.asked
            {
                match self.ask_progress(id).await {
                    Ok(()) => return,
                    Err(error) => self.finish_write(Err(error)).await,
                }
                continue;
            }
            let Some(chunk) = chunk else {
                self.finish_write(Ok(())).await;
                continue;
            };
            let (from, sent) = (self.writes.sent as u64, chunk.len());
            if self.writes.sent == 0 && self.writes.taken == 0 && !is_report {
                // What is there by now is no reply to it.
                self.look_at_journal().await;
                self.writes.sent_at = self.entry.marks.borrow().end;
            }
            let order = match purpose {
                Purpose::Once(input) => Order::InputOnce {
                    input,
                    from,
                    bytes: chunk,
                },
                Purpose::Input | Purpose::AskProgress(_) | Purpose::Answer | Purpose::Report => {
                    Order::Input(chunk)
                }
            };
            match self.pass(order).await {
                Ok(()) => {
                    self.writes.sent += sent;
                    return;
                }
                Err(error) => self.finish_write(Err(error)).await,
            }
        }
    }

    /// Asks for what was taken of an input. Shims of an earlier version do not answer that;
    /// they do answer the input of nothing that follows it.
    async fn ask_progress(&mut self, id: InputId) -> Result<(), ControlError> {
        self.writes.asked = true;
        let input = IdempotentInput { id, at: 0, len: 0 };
        let (from, bytes) = (0, Vec::new());
        self.pass(Order::InputOnce { input, from, bytes }).await?;
        self.pass(Order::Input(Vec::new())).await
    }

    /// The shim's answer to it.
    pub(super) fn input_progress(&mut self, answer: Option<InputProgress>) {
        self.writes.progress = answer.map_or(ProgressAnswer::Nothing, ProgressAnswer::Some);
    }

    /// So much of the last chunk was taken.
    pub(super) async fn taken(&mut self, len: u64) {
        if self.writes.queue.is_empty() {
            return;
        }
        self.writes.taken += len;
        if self.writes.is_short() {
            let full = self.writes.full.filter(|_| len == 0);
            self.writes.full = full.map_or_else(|| Some(Full::new()), Full::still);
            if self.writes.full.is_some() {
                return self.writes.take_back();
            }
            // The command does not read: the rest of this write is not for it.
            self.finish_write(Ok(())).await;
        }
        self.writes.full = None;
        self.next_chunk().await;
    }

    /// Tries what did not fit once more.
    pub(super) async fn try_again(&mut self) {
        self.next_chunk().await;
    }

    async fn finish_write(&mut self, outcome: Result<(), ControlError>) {
        let Some(write) = self.writes.queue.pop_front() else {
            return;
        };
        let len = std::mem::take(&mut self.writes.taken);
        let complete = len == write.bytes.len() as u64;
        let progress = std::mem::take(&mut self.writes.progress);
        self.writes.sent = 0;
        self.writes.asked = false;
        self.writes.full = None;
        let mut outcome = if len > 0 { Ok(()) } else { outcome };
        if write.close && complete && outcome.is_ok() {
            outcome = self.pass(Order::CloseInput).await;
        }
        if len > 0 && write.purpose != Purpose::Report {
            let by = write.by.clone();
            self.take_in(Timestamp::now(), Input::InputTaken { by, len })
                .await;
        }
        if write.purpose == Purpose::Answer && complete {
            let by = write.by.clone();
            self.take_in(Timestamp::now(), Input::PromptAnswered { by })
                .await;
        } else if ends_a_line(&write, len) {
            self.core.desk.input_arrived(self.entry.id);
        }
        // Everybody knows of it; whoever typed does not wait for the disk.
        let sent_at = self.writes.sent_at;
        answer(
            write,
            outcome.map(|()| Taken {
                bytes: len,
                sent_at,
                progress,
            }),
        );
        self.leave_record().await;
    }

    /// Nobody will take any more.
    pub(super) fn fail_writes(&mut self) {
        self.writes.full = None;
        let bytes = std::mem::take(&mut self.writes.taken);
        let sent_at = self.writes.sent_at;
        let progress = ProgressAnswer::Unsupported;
        let taken = Taken {
            bytes,
            sent_at,
            progress,
        };
        let mut first = Some(taken).filter(|taken| taken.bytes > 0);
        for write in std::mem::take(&mut self.writes.queue) {
            answer(write, first.take().ok_or(ControlError::Ended));
        }
    }
}

/// Whether what was taken of it is an answer to whatever the command asked.
fn ends_a_line(write: &Write, taken: u64) -> bool {
    let taken = usize::try_from(taken).unwrap_or(usize::MAX);
    let bytes = write.bytes.get(..taken).unwrap_or(&write.bytes);
    let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let is_input = matches!(write.purpose, Purpose::Input | Purpose::Once(_));
    write.close || (is_input && bytes.iter().any(ends))
}

fn answer(write: Write, outcome: Result<Taken, ControlError>) {
    // Whoever asked may have gone; the bytes were written all the same.
    let _gone = write.answer.send(outcome).is_err();
}
