//! Writes to a command's input: one order at a time, each waited for.

use std::collections::VecDeque;

use ostler_model::Principal;
use ostler_process::place::INPUT_CHUNK_BYTES;
use ostler_process::{ControlError, Order};
use tokio::sync::oneshot;

use crate::supervisor::Input;

use super::run::Driver;

/// Writes that wait for the ones before them; more are refused as busy.
const WRITES: usize = 64;

/// Bytes for a command, or the end of its input, or both.
#[derive(Debug)]
pub(crate) struct Write {
    /// From whom.
    pub(crate) by: Principal,
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// Whether the input ends after them.
    pub(crate) close: bool,
    /// How many were taken.
    pub(crate) answer: oneshot::Sender<Result<u64, ControlError>>,
}

/// Writes under way; the first one has an order out.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    queue: VecDeque<Write>,
    sent: usize,
    taken: u64,
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
            let Some(chunk) = chunk else {
                self.finish_write(Ok(())).await;
                continue;
            };
            let len = chunk.len();
            match self.pass(Order::Input(chunk)).await {
                Ok(()) => {
                    self.writes.sent += len;
                    return;
                }
                Err(error) => self.finish_write(Err(error)).await,
            }
        }
    }

    /// So much of the last chunk was taken.
    pub(super) async fn taken(&mut self, len: u64) {
        if self.writes.queue.is_empty() {
            return;
        }
        self.writes.taken += len;
        if self.writes.taken < self.writes.sent as u64 {
            // The command does not read: the rest of this write is not for it.
            self.finish_write(Ok(())).await;
        }
        self.next_chunk().await;
    }

    async fn finish_write(&mut self, outcome: Result<(), ControlError>) {
        let Some(write) = self.writes.queue.pop_front() else {
            return;
        };
        let len = std::mem::take(&mut self.writes.taken);
        let complete = len == write.bytes.len() as u64;
        self.writes.sent = 0;
        let mut outcome = if len > 0 { Ok(()) } else { outcome };
        if write.close && complete && outcome.is_ok() {
            outcome = self.pass(Order::CloseInput).await;
        }
        if len > 0 {
            let by = write.by.clone();
            self.feed(Input::InputTaken { by, len }).await;
        }
        answer(write, outcome.map(|()| len));
    }

    /// Nobody will take any more.
    pub(super) fn fail_writes(&mut self) {
        let taken = std::mem::take(&mut self.writes.taken);
        let mut first = Some(taken).filter(|taken| *taken > 0);
        for write in std::mem::take(&mut self.writes.queue) {
            answer(write, first.take().ok_or(ControlError::Ended));
        }
    }
}

fn answer(write: Write, outcome: Result<u64, ControlError>) {
    // Whoever asked may have gone; the bytes were written all the same.
    let _gone = write.answer.send(outcome).is_err();
}
