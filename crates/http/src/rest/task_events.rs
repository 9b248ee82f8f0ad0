//! What happens to a task, as a stream of events: output, questions, its end.
//!
//! Events are produced when the connection can take them: a slow client delays only itself, and
//! reads from the files when it continues.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;

use futures_util::stream::{self, Stream, StreamExt as _};
use ostler_api::{TaskEvent, TaskEventBody};
use ostler_engine::{
    Error, ExecutionInfo, ExecutionWatch, OutputFollower, Prompt, WaitEnd, WaitFor,
};
use ostler_interface::convert::gap_body;
use ostler_interface::output_reader::encoding;
use ostler_journal::{BytePage, Decoder, Encoding, Gap};
use ostler_model::termination::{Termination, TerminationCause};
use ostler_model::{Caller, Cursor, StreamName, Timestamp, duration};

use super::response::RestResult;
use super::state::RestState;

/// The most bytes of output that are read at once: a thousand clients hold as many pages.
const PAGE_BYTES: u64 = 16 * 1024;

/// The events of one task from a position on.
pub(super) struct TaskEvents {
    state: RestState,
    caller: Caller,
    id: String,
    follower: OutputFollower,
    prompts: Pin<Box<dyn Stream<Item = Prompt> + Send>>,
    encoding: Encoding,
    decoders: BTreeMap<StreamName, Decoder>,
    next: Cursor,
    unsent: VecDeque<TaskEventBody>,
    is_over: bool,
}

impl TaskEvents {
    /// Follows the task with this id, which the caller sees.
    ///
    /// # Errors
    /// When it is unknown, or its output cannot be read.
    pub(super) fn open(
        state: RestState,
        caller: Caller,
        id: &str,
        from: Cursor,
    ) -> RestResult<Self> {
        let info = state.engine.info(&caller, id)?;
        let id = info.id.to_string();
        let watch = state.engine.watch(&caller, &id)?;
        let follower = state.engine.follow(&caller, &id, from)?;
        Ok(Self {
            follower: follower.page_bytes(PAGE_BYTES),
            prompts: Box::pin(prompts(state.clone(), caller.clone(), id.clone(), watch)),
            encoding: encoding(&info).unwrap_or(Encoding::UTF_8),
            decoders: BTreeMap::new(),
            next: from,
            unsent: VecDeque::new(),
            is_over: false,
            state,
            caller,
            id,
        })
    }

    /// The next event; none after the last one, and when the daemon ends. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<TaskEventBody> {
        loop {
            if let Some(event) = self.unsent.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                () = self.state.shutdown.cancelled() => self.is_over = true,
                page = self.follower.next() => match page {
                    Ok(Some(page)) => self.add_page(page),
                    Ok(None) => self.end(),
                    Err(error) => self.fail(&error),
                },
                Some(prompt) = self.prompts.next() => self.add(Timestamp::now(), question(prompt)),
            }
        }
    }

    fn add(&mut self, timestamp: Timestamp, event: TaskEvent) {
        self.is_over = event.is_last();
        self.unsent.push_back(TaskEventBody {
            task_id: self.id.clone(),
            timestamp,
            cursor: self.next,
            event,
        });
    }

    fn add_page(&mut self, page: BytePage) {
        if let Some(gap) = page.gap {
            match self.state.engine.info(&self.caller, &self.id) {
                Ok(info) => self.add_gap(&info, gap.from, gap.to),
                Err(error) => return self.fail(&error),
            }
        }
        for chunk in page.chunks {
            let (stream, encoding) = (chunk.stream, self.encoding);
            let decoder = self.decoders.entry(stream);
            let decoder = decoder.or_insert_with(|| Decoder::new(encoding));
            let data = decoder.push(&chunk.bytes);
            self.next.offset = chunk.offset + chunk.bytes.len() as u64;
            if !data.is_empty() {
                self.add(chunk.at, TaskEvent::Output { stream, data });
            }
        }
        self.next = page.next;
    }

    fn add_gap(&mut self, info: &ExecutionInfo, from: u64, to: u64) {
        self.next.offset = to;
        let gap = gap_body(info, Gap { from, to });
        self.add(Timestamp::now(), TaskEvent::Gap { gap });
    }

    /// Adds what the decoders held back, output at the end that no file holds, and the end.
    fn end(&mut self) {
        let info = match self.state.engine.info(&self.caller, &self.id) {
            Ok(info) => info,
            Err(error) => return self.fail(&error),
        };
        let at = info.state.ended_at.unwrap_or_else(Timestamp::now);
        for (stream, mut decoder) in std::mem::take(&mut self.decoders) {
            let data = decoder.finish();
            if !data.is_empty() {
                self.add(at, TaskEvent::Output { stream, data });
            }
        }
        // Beyond the last page, there may be bytes of streams that are not followed.
        self.next = self.follower.cursor();
        if self.next.offset < info.output_end {
            self.add_gap(&info, self.next.offset, info.output_end);
        }
        match last_event(&info) {
            Some(event) => self.add(at, event),
            None => self.is_over = true,
        }
    }

    /// Ends the stream: silently where the daemon ends, and the client is to connect again.
    fn fail(&mut self, error: &Error) {
        if matches!(error, Error::Closing) {
            self.is_over = true;
            return;
        }
        let event = TaskEvent::Error {
            message: error.to_string(),
            code: "OUTPUT_ERROR".to_owned(),
        };
        self.add(Timestamp::now(), event);
    }
}

/// The prompts of an execution, each once, until it ends.
fn prompts(
    state: RestState,
    caller: Caller,
    id: String,
    watch: ExecutionWatch,
) -> impl Stream<Item = Prompt> + Send {
    stream::unfold((watch, 0), move |(mut watch, reported)| {
        let (engine, caller, id) = (state.engine.clone(), caller.clone(), id.clone());
        async move {
            loop {
                let waited = engine.wait(&caller, &id, &WaitFor::Prompt, None).await;
                let waited = waited.ok()?;
                let WaitEnd::Prompt(prompt) = waited.end else {
                    return None;
                };
                // The state counts prompts: one that is still open is found again.
                let found = waited.info.state.prompts;
                if found != reported {
                    return Some((prompt, (watch, found)));
                }
                let (now, then) = (watch.refresh(), waited.info);
                if (now.output_end, now.state.events) == (then.output_end, then.state.events) {
                    watch.changed().await;
                }
            }
        }
    })
}

fn question(prompt: Prompt) -> TaskEvent {
    TaskEvent::ConfirmationRequired {
        message: prompt.text,
        options: prompt.options,
        default: prompt.default,
        secret: prompt.secret,
    }
}

/// The last event of an execution; none while it runs.
fn last_event(info: &ExecutionInfo) -> Option<TaskEvent> {
    let ending = info.state.ending.as_ref()?;
    Some(match error_code(ending) {
        Some(code) => TaskEvent::Error {
            message: ending.describe(),
            code: code.to_owned(),
        },
        None => TaskEvent::Completed {
            exit_code: ending.shell_status(),
            duration: duration::as_seconds(info.duration()),
        },
    })
}

/// The code of an end that is an error; a command that failed, or was stopped, completed.
const fn error_code(ending: &Termination) -> Option<&'static str> {
    match ending.cause {
        TerminationCause::TimedOut { .. } => Some("TIMEOUT"),
        TerminationCause::OutOfMemory => Some("OUT_OF_MEMORY"),
        TerminationCause::SpawnFailed { .. } | TerminationCause::Lost { .. } => {
            Some("EXECUTION_ERROR")
        }
        TerminationCause::Exited
        | TerminationCause::Signaled
        | TerminationCause::Stopped { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::termination::{LostReason, TimeoutKind};

    use super::*;

    #[test]
    fn an_end_that_the_command_did_not_choose_is_an_error() {
        let spawn_failed = TerminationCause::SpawnFailed {
            step: "exec".to_owned(),
            errno: None,
            message: String::new(),
        };
        let timed_out = TerminationCause::TimedOut {
            clock: TimeoutKind::Wall,
        };
        let lost = TerminationCause::Lost {
            reason: LostReason::NoRecord,
        };
        for (cause, code) in [
            (TerminationCause::Exited, None),
            (TerminationCause::Signaled, None),
            (TerminationCause::Stopped { reason: None }, None),
            (timed_out, Some("TIMEOUT")),
            (TerminationCause::OutOfMemory, Some("OUT_OF_MEMORY")),
            (spawn_failed, Some("EXECUTION_ERROR")),
            (lost, Some("EXECUTION_ERROR")),
        ] {
            let ending = Termination::without_status(cause);
            assert_eq!(error_code(&ending), code, "{ending:?}");
        }
    }
}
