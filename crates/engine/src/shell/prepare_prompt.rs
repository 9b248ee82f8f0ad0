//! What a shell's prompt needs before a script is typed: no part of an earlier one, and its paste mode.

use std::time::Duration;

use ostler_backend::ControlError;
use ostler_model::{Caller, ShellKind};
use tokio::time::Instant;

use super::run_state::ShellInspection;
use super::runner::ShellRunner;
use super::runner_event::{InspectionSchedule, QUIET_MS, RunnerEvent};
use super::script::{self, INTERRUPT};
use crate::error::Error;
use crate::execution::{WriteKind, submit_write_after};

/// How long a shell may take to discard a part of a paste, in milliseconds: fish draws all of it first.
const DISCARD_WAIT_MS: u64 = 30_000;

impl ShellRunner<'_> {
    /// Discards the beginning of an input whose rest was not written, and waits for the prompt after
    /// it: the keys that clear a line would be part of an unfinished paste.
    ///
    /// # Errors
    /// [`ControlError::Busy`] while another writes, whose input is not to be interrupted.
    pub(super) async fn discard_unfinished_input(
        &mut self,
        caller: &Caller,
        deadline: Instant,
    ) -> Result<(), Error> {
        if !self.entry.has_unfinished_input() {
            return Ok(());
        }
        let from = self.offset();
        let mut keys = script::end_paste_keys(self.shell.kind);
        let limit = Instant::now() + Duration::from_millis(DISCARD_WAIT_MS);
        let mut schedule = InspectionSchedule::new(deadline.min(limit));
        while !self.scanner.is_prompt_shown_after(from) {
            match self.next_event(&schedule).await? {
                RunnerEvent::Page(page) => {
                    self.scanner.feed(&page, |_| {});
                    schedule.reset();
                }
                RunnerEvent::Inspect => {
                    // Once it waits for more, it has read all that was written: an interrupt drops only
                    // what is in the terminal's first buffer, and a second one would interrupt what is
                    // typed next. Fish ignores the key while it redraws.
                    if self.inspect(false).await? == ShellInspection::AtPrompt {
                        self.press_discard_keys(caller, keys).await?;
                        keys = &[INTERRUPT];
                    }
                    schedule.back_off();
                }
                RunnerEvent::Ended => return Err(ControlError::Ended.into()),
                RunnerEvent::TimedOut => {
                    let reason = "it still holds a part of an earlier input; interrupt it";
                    return Err(self.busy_error_with(reason.to_owned()));
                }
            }
        }
        self.entry.end_input();
        Ok(())
    }

    /// Writes keys where no other input came since the prompt was found.
    async fn press_discard_keys(&mut self, caller: &Caller, keys: &[u8]) -> Result<(), Error> {
        let (kind, seen) = (WriteKind::Input, self.writes_seen);
        submit_write_after(&self.entry, caller, keys.to_vec(), kind, seen).await?;
        self.writes_seen += 1;
        Ok(())
    }

    /// Zsh and fish enable bracketed paste just after showing their prompt: text typed before that
    /// would be read line by line.
    pub(super) async fn wait_for_paste_mode(&mut self) -> Result<(), Error> {
        let has_paste_mode = self.shell.kind == ShellKind::Bash;
        let schedule = InspectionSchedule::new(Instant::now() + Duration::from_millis(QUIET_MS));
        while !has_paste_mode && !self.scanner.modes().bracketed_paste {
            match self.next_event(&schedule).await? {
                RunnerEvent::Page(page) => self.scanner.feed(&page, |_| {}),
                // Bracketed paste is disabled.
                RunnerEvent::Inspect | RunnerEvent::TimedOut => break,
                RunnerEvent::Ended => return Err(ControlError::Ended.into()),
            }
        }
        Ok(())
    }
}
