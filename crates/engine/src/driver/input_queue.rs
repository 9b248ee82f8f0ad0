//! Writes to a command's input: one at a time, each awaited.

use std::collections::VecDeque;
use std::time::Duration;

use ostler_backend::{
    ControlCommand, ControlError, INPUT_CHUNK_BYTES, IdempotentInput, InputProgress,
};
use ostler_model::{InputId, ShellKind, ShellSession, Spec, Timestamp};
use tokio::time::Instant;

use crate::execution::{InputWrite, ProgressReply, WriteKind, WriteResult};
use crate::supervisor::SupervisorInput;

use super::event_loop::Driver;

/// The most queued writes; more are refused as busy.
const WRITES: usize = 64;
/// How long a command may leave its full input unread before it counts as not reading, in
/// milliseconds.
const INPUT_STALL_TIMEOUT_MS: u64 = 1_000;
/// The same for fish, which draws a long script again for each of its lines before it reads on.
const FISH_STALL_TIMEOUT_MS: u64 = 5_000;
/// A terminal takes no more at once while its program does not read, in bytes: the size of the
/// kernel's buffer, `N_TTY_BUF_SIZE`.
const TERMINAL_BUFFER_BYTES: usize = 4_096;
/// The first retry of a full input, in milliseconds; doubled while nothing is accepted.
const FIRST_RETRY_MS: u64 = 2;
/// The longest time between two tries, in milliseconds.
const LONGEST_RETRY_MS: u64 = 100;

/// The queued writes; the first one has a command in flight.
#[derive(Debug, Default)]
pub(crate) struct InputQueue {
    queue: VecDeque<InputWrite>,
    /// Bytes of the first write that were sent and not returned.
    sent: usize,
    accepted: u64,
    /// The journal's end when the first write began to be sent.
    sent_offset: u64,
    backoff: Option<InputBackoff>,
    /// Whether it is on record that the first write may stay unfinished.
    may_stay_unfinished: bool,
    /// Whether the progress query of the first write is in flight.
    progress_queried: bool,
    progress: ProgressReply,
}

/// The backoff while the input is full: no notification reports when it accepts bytes again.
#[derive(Debug, Clone, Copy)]
struct InputBackoff {
    retry_at: Instant,
    pause: Duration,
    give_up_at: Instant,
}

impl InputBackoff {
    fn new(stall_timeout: Duration) -> Self {
        let (now, pause) = (Instant::now(), Duration::from_millis(FIRST_RETRY_MS));
        Self {
            retry_at: now + pause,
            pause,
            give_up_at: now + stall_timeout,
        }
    }

    /// Still full: the next retry; none when it counts as not reading.
    fn next_retry(self) -> Option<Self> {
        let pause = (self.pause * 2).min(Duration::from_millis(LONGEST_RETRY_MS));
        let retry_at = Instant::now() + pause;
        (retry_at <= self.give_up_at).then_some(Self {
            retry_at,
            pause,
            ..self
        })
    }
}

impl InputQueue {
    /// When to retry a full input; none while a try is in flight.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        let stalled = self.backoff.filter(|_| !self.is_partial());
        stalled.map(|full| full.retry_at)
    }

    const fn is_partial(&self) -> bool {
        self.accepted < self.sent as u64
    }

    /// The journal's end when the current write began.
    pub(super) const fn sent_offset(&self) -> u64 {
        self.sent_offset
    }

    /// Marks the bytes that were not accepted as still to be sent.
    fn rewind(&mut self) {
        // It is at most what was sent, which is in memory.
        self.sent = usize::try_from(self.accepted).unwrap_or(self.sent);
    }
}

impl Driver {
    pub(super) async fn enqueue_write(&mut self, write: InputWrite) {
        if self.writes.queue.len() >= WRITES {
            return send_reply(write, Err(ControlError::Busy));
        }
        if let Some(seen) = write.only_after
            && !self.is_input_as_seen(seen)
        {
            return send_reply(write, Err(ControlError::Busy));
        }
        self.writes.queue.push_back(write);
        if self.writes.queue.len() == 1 {
            self.send_next_chunk().await;
        }
    }

    /// Whether this many writes are finished, and no other is under way.
    fn is_input_as_seen(&self, finished: u64) -> bool {
        let mut queued = self.writes.queue.iter();
        self.execution.finished_writes() == finished
            && queued.all(|write| write.kind == WriteKind::TerminalReply)
    }

    /// Sends the next chunk of the first write, or finishes writes that have none.
    async fn send_next_chunk(&mut self) {
        while let Some(write) = self.writes.queue.front() {
            let chunk = write.bytes[self.writes.sent..]
                .chunks(INPUT_CHUNK_BYTES)
                .next()
                .map(<[u8]>::to_vec);
            let kind = write.kind;
            // A shim of an earlier version knows no other input.
            let is_omitted = write.is_secret && self.execution.spec.record_input;
            let is_terminal_reply = kind == WriteKind::TerminalReply;
            if let WriteKind::QueryProgress(id) = kind
                && !self.writes.progress_queried
            {
                match self.query_progress(id).await {
                    Ok(()) => return,
                    Err(error) => self.finish_write(Err(error)).await,
                }
                continue;
            }
            let Some(chunk) = chunk else {
                self.finish_write(Ok(())).await;
                continue;
            };
            let may_stay_unfinished = write.bytes.len() >= TERMINAL_BUFFER_BYTES;
            let (from, sent) = (self.writes.sent as u64, chunk.len());
            if may_stay_unfinished {
                self.begin_shell_input();
            }
            if self.writes.sent == 0 && self.writes.accepted == 0 && !is_terminal_reply {
                // Output that exists by now is no reply to it.
                self.refresh_journal_end().await;
                self.writes.sent_offset = self.execution.journal_end.borrow().end;
            }
            let command = match kind {
                _ if is_omitted => ControlCommand::SecretInput(chunk),
                WriteKind::Idempotent(input) => ControlCommand::InputOnce {
                    input,
                    from,
                    bytes: chunk,
                },
                WriteKind::Input
                | WriteKind::QueryProgress(_)
                | WriteKind::PromptReply
                | WriteKind::TerminalReply => ControlCommand::Input(chunk),
            };
            match self.forward(command).await {
                Ok(()) => {
                    self.writes.sent += sent;
                    return;
                }
                Err(error) => self.finish_write(Err(error)).await,
            }
        }
    }

    /// Queries how much of an input was accepted. Shims of an earlier version do not answer that;
    /// they do answer the empty input that follows it.
    async fn query_progress(&mut self, id: InputId) -> Result<(), ControlError> {
        self.writes.progress_queried = true;
        let input = IdempotentInput {
            id,
            output_end: 0,
            len: 0,
        };
        let (from, bytes) = (0, Vec::new());
        self.forward(ControlCommand::InputOnce { input, from, bytes })
            .await?;
        self.forward(ControlCommand::Input(Vec::new())).await
    }

    /// Records that an input of a shell may stay unfinished.
    fn begin_shell_input(&mut self) {
        let is_shell = self.execution.spec.shell.is_some();
        if is_shell && !self.execution.has_unfinished_input() {
            self.execution.begin_input();
            self.writes.may_stay_unfinished = true;
        }
    }

    /// The shim's answer to the query.
    pub(super) fn on_input_progress(&mut self, progress: Option<InputProgress>) {
        self.writes.progress = progress.map_or(ProgressReply::Nothing, ProgressReply::Some);
    }

    /// This many bytes of the last chunk were accepted.
    pub(super) async fn on_input_taken(&mut self, len: u64) {
        if self.writes.queue.is_empty() {
            return;
        }
        self.writes.accepted += len;
        if self.writes.is_partial() {
            self.begin_shell_input();
            let first = || Some(InputBackoff::new(stall_timeout(&self.execution.spec)));
            let backoff = self.writes.backoff.filter(|_| len == 0);
            self.writes.backoff = backoff.map_or_else(first, InputBackoff::next_retry);
            if self.writes.backoff.is_some() {
                return self.writes.rewind();
            }
            // The command does not read: the rest of this write is dropped.
            self.finish_write(Ok(())).await;
        }
        self.writes.backoff = None;
        self.send_next_chunk().await;
    }

    /// Sends again what did not fit.
    pub(super) async fn retry_write(&mut self) {
        self.send_next_chunk().await;
    }

    async fn finish_write(&mut self, outcome: Result<(), ControlError>) {
        let Some(write) = self.writes.queue.pop_front() else {
            return;
        };
        let len = std::mem::take(&mut self.writes.accepted);
        let complete = len == write.bytes.len() as u64;
        if std::mem::take(&mut self.writes.may_stay_unfinished) && (complete || len == 0) {
            self.execution.end_input();
        }
        let progress = std::mem::take(&mut self.writes.progress);
        self.writes.sent = 0;
        self.writes.progress_queried = false;
        self.writes.backoff = None;
        let mut outcome = if len > 0 { Ok(()) } else { outcome };
        if write.close && complete && outcome.is_ok() {
            outcome = self.forward(ControlCommand::CloseInput).await;
        }
        if write.kind != WriteKind::TerminalReply {
            self.execution.count_finished_write();
        }
        if len > 0 && write.kind != WriteKind::TerminalReply {
            let by = write.by.clone();
            self.step_without_flush(Timestamp::now(), SupervisorInput::InputTaken { by, len })
                .await;
        }
        if write.kind == WriteKind::PromptReply && complete {
            let by = write.by.clone();
            self.step_without_flush(Timestamp::now(), SupervisorInput::PromptAnswered { by })
                .await;
        } else if ends_a_line(&write, len) {
            let id = self.execution.id;
            self.core.notify(|observer| observer.input_arrived(id));
        }
        // Already published; the writer does not wait for the disk.
        let sent_offset = self.writes.sent_offset;
        send_reply(
            write,
            outcome.map(|()| WriteResult {
                accepted: len,
                sent_offset,
                progress,
            }),
        );
        self.flush_if_needed().await;
    }

    /// Fails every queued write: no more input is accepted.
    pub(super) fn fail_writes(&mut self) {
        self.writes.backoff = None;
        let bytes = std::mem::take(&mut self.writes.accepted);
        let sent_offset = self.writes.sent_offset;
        let progress = ProgressReply::Unsupported;
        let result = WriteResult {
            accepted: bytes,
            sent_offset,
            progress,
        };
        let mut first = Some(result).filter(|taken| taken.accepted > 0);
        for write in std::mem::take(&mut self.writes.queue) {
            send_reply(write, first.take().ok_or(ControlError::Ended));
        }
    }
}

fn stall_timeout(spec: &Spec) -> Duration {
    let is_fish = |shell: &ShellSession| shell.kind == ShellKind::Fish;
    Duration::from_millis(match &spec.shell {
        Some(shell) if is_fish(shell) => FISH_STALL_TIMEOUT_MS,
        Some(_) | None => INPUT_STALL_TIMEOUT_MS,
    })
}

/// Whether the accepted bytes answer a prompt of the command.
fn ends_a_line(write: &InputWrite, accepted: u64) -> bool {
    let accepted = usize::try_from(accepted).unwrap_or(usize::MAX);
    let bytes = write.bytes.get(..accepted).unwrap_or(&write.bytes);
    let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let is_input = matches!(write.kind, WriteKind::Input | WriteKind::Idempotent(_));
    write.close || (is_input && bytes.iter().any(ends))
}

fn send_reply(write: InputWrite, outcome: Result<WriteResult, ControlError>) {
    // The caller may be gone; the bytes were written.
    let _gone = write.reply.send(outcome).is_err();
}
