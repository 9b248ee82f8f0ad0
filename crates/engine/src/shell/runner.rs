//! Observes a shell, types into it, and feeds [`RunProgress`].

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{ControlError, IdempotentInput};
use ostler_journal::follow::JournalFollower;
use ostler_model::snapshot::{ForegroundProcess, TreeSnapshot};
use ostler_model::{Caller, Cursor, InputId, ShellKind, ShellSession};
use ostler_terminal::{ControlEvent, Modes, ShellState};
use tokio::time::Instant;

use super::output_start::{self, OutputPrefix};
use super::run::{ShellEnd, ShellRun};
use super::run_slots::KnownPrompt;
use super::run_state::{RunInput, RunOutcome, RunProgress, ShellInspection};
use super::runner_event::{InspectionSchedule, RunnerEvent, input_from_mark};
use super::script::{self, INTERRUPT};
use super::shell_scanner::ShellScanner;
use super::tty_processes::SessionLeader;
use super::{ShellContext, busy_reason, tty_processes};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{
    ExecutionHandle, OutputWatchGuard, WriteKind, submit_write_after, write_input,
};
use crate::info::Prompt;
use crate::lease::{LeaseId, WriterLeases};
use crate::wait;

/// How long a shell may take to show its first prompt, or the prompt after a command, in
/// milliseconds.
const PROMPT_WAIT_MS: u64 = 10_000;
/// How long a shell may take to discard a rejected text, in milliseconds.
const GIVE_UP_MS: u64 = 1_000;

/// A shell under observation.
#[derive(Debug)]
pub(super) struct ShellRunner<'a> {
    core: &'a EngineInner,
    leases: &'a WriterLeases,
    pub(super) entry: Arc<ExecutionHandle>,
    pub(super) shell: &'a ShellSession,
    /// The prompt as the last script left it.
    prompt: KnownPrompt,
    follower: JournalFollower,
    pub(super) scanner: ShellScanner,
    /// The terminal modes when the script was typed.
    modes: Modes,
    /// The session leader when the script was typed.
    leader: Option<SessionLeader>,
    /// Whether keys were typed at the current prompt: its line may not be empty.
    has_typed_keys: bool,
    /// The finished writes when the prompt was found.
    pub(super) writes_seen: u64,
    /// The offset at which the line editor submitted the typed text.
    accepted_at: Option<u64>,
    /// The current question, as found by the last inspection.
    question: Option<Prompt>,
    /// The end of output at the last inspection that found the shell waiting outside its line
    /// editor.
    shell_read_at: Option<u64>,
    _watch: OutputWatchGuard,
}

impl<'a> ShellRunner<'a> {
    /// Observes a shell from its current state.
    pub(super) async fn open(shell: ShellContext<'a>, prompt: KnownPrompt) -> Result<Self, Error> {
        let end = shell.entry.journal()?.end()?;
        let runner = Self::from_state_at(shell, prompt, end)?;
        if runner.scanner.is_too_short() {
            return Self::from_screen(shell, prompt).await;
        }
        Ok(runner)
    }

    async fn from_screen(shell: ShellContext<'a>, prompt: KnownPrompt) -> Result<Self, Error> {
        let scanner = ShellScanner::from_screen;
        let scanner = shell.screens.with_screen(shell.entry, scanner).await?;
        Self::with_scanner(shell, prompt, scanner)
    }

    /// Observes a shell from its state at an offset.
    pub(super) fn from_state_at(
        shell: ShellContext<'a>,
        prompt: KnownPrompt,
        end: u64,
    ) -> Result<Self, Error> {
        let scanner = ShellScanner::from_tail(&shell.entry.journal()?, &shell.session.nonce, end)?;
        Self::with_scanner(shell, prompt, scanner)
    }

    /// Observes a shell from an earlier offset, or from its current state where the output after
    /// that offset is gone.
    pub(super) async fn from_offset(
        shell: ShellContext<'a>,
        prompt: KnownPrompt,
        from: u64,
    ) -> Result<Self, Error> {
        if from < shell.entry.journal()?.start()? {
            return Self::from_screen(shell, prompt).await;
        }
        let scanner = ShellScanner::starting_at(from, &shell.session.nonce);
        Self::with_scanner(shell, prompt, scanner)
    }

    fn with_scanner(
        ShellContext {
            core,
            leases,
            entry,
            session: shell,
            ..
        }: ShellContext<'a>,
        prompt: KnownPrompt,
        scanner: ShellScanner,
    ) -> Result<Self, Error> {
        let watch = OutputWatchGuard::new(entry);
        let from = Cursor {
            offset: scanner.offset(),
            event: 0,
        };
        let follower = JournalFollower::new(entry.journal()?, from, entry.journal_end.subscribe());
        Ok(Self {
            core,
            leases,
            entry: Arc::clone(entry),
            shell,
            prompt,
            follower,
            modes: scanner.modes(),
            scanner,
            leader: None,
            has_typed_keys: false,
            writes_seen: 0,
            accepted_at: None,
            question: None,
            shell_read_at: None,
            _watch: watch,
        })
    }

    /// Waits until the shell shows its prompt, at most as long as that can take while nothing runs.
    pub(super) async fn wait_for_prompt(&mut self, deadline: Instant) -> Result<(), Error> {
        let limit = Instant::now() + Duration::from_millis(PROMPT_WAIT_MS);
        let mut schedule = InspectionSchedule::new(deadline.min(limit));
        self.writes_seen = self.entry.finished_writes();
        loop {
            match self.scanner.state() {
                ShellState::Prompt { .. } if self.scanner.is_prompt_shown() => break,
                ShellState::Running { .. } | ShellState::Incomplete { .. } => {
                    return Err(self.busy_error().await);
                }
                ShellState::Unknown | ShellState::Ended { .. } | ShellState::Prompt { .. } => {}
            }
            match self.next_event(&schedule).await? {
                RunnerEvent::Page(page) => {
                    self.scanner.feed(&page, |_| {});
                    schedule.reset();
                }
                RunnerEvent::Ended => return Err(ControlError::Ended.into()),
                RunnerEvent::TimedOut => return Err(self.busy_error().await),
                RunnerEvent::Inspect => {
                    // The end of its prompt is missing, and it waits.
                    let is_known = *self.scanner.state() != ShellState::Unknown;
                    if is_known && self.inspect(false).await? == ShellInspection::AtPrompt {
                        break;
                    }
                    schedule.back_off();
                }
            }
        }
        if self.has_keys_at_prompt() {
            self.wait_for_keys().await?;
        }
        self.has_typed_keys = self.has_keys_at_prompt();
        Ok(())
    }

    /// After other input came between the prompt and the script: reads what it does.
    pub(super) async fn observe_other_input(&mut self, deadline: Instant) -> Result<(), Error> {
        match self.next_event(&InspectionSchedule::new(deadline)).await? {
            RunnerEvent::Page(page) => self.scanner.feed(&page, |_| {}),
            RunnerEvent::Inspect => {}
            RunnerEvent::TimedOut => return Err(self.busy_error().await),
            RunnerEvent::Ended => return Err(ControlError::Ended.into()),
        }
        Ok(())
    }

    /// Whether input was sent after the current prompt.
    fn has_keys_at_prompt(&self) -> bool {
        let typed_at = self.entry.live.borrow().last_input_offset;
        let free_since = self.scanner.free_since().max(self.prompt.free_since);
        typed_at
            .zip(free_since)
            .is_some_and(|(typed, free)| typed > free)
    }

    /// Waits until the line editor has handled the last keys, which a new prompt or silence shows:
    /// an interrupt also discards text typed after it.
    async fn wait_for_keys(&mut self) -> Result<(), Error> {
        let mut schedule =
            InspectionSchedule::new(Instant::now() + Duration::from_millis(GIVE_UP_MS));
        while self.has_keys_at_prompt() || !self.scanner.is_prompt_shown() {
            match self.next_event(&schedule).await? {
                RunnerEvent::Page(page) => {
                    self.scanner.feed(&page, |_| {});
                    schedule.reset();
                }
                RunnerEvent::Inspect | RunnerEvent::TimedOut => break,
                RunnerEvent::Ended => return Err(ControlError::Ended.into()),
            }
        }
        match self.scanner.state() {
            ShellState::Running { .. } | ShellState::Incomplete { .. } => {
                Err(self.busy_error().await)
            }
            ShellState::Unknown | ShellState::Ended { .. } | ShellState::Prompt { .. } => Ok(()),
        }
    }

    /// Types a script at the prompt; returns the state to wait with.
    ///
    /// # Errors
    /// [`ControlError::Busy`] where other input came between: nothing was typed.
    pub(super) async fn type_script(
        &mut self,
        caller: &Caller,
        script: &str,
        lease: Option<&LeaseId>,
        once: Option<InputId>,
        deadline: Instant,
    ) -> Result<RunProgress, Error> {
        self.leader = self
            .snapshot()
            .await
            .as_ref()
            .and_then(tty_processes::session_leader);
        self.leases.check(self.entry.id, lease)?;
        self.discard_unfinished_input(caller, deadline).await?;
        if script.contains(['\n', '\t']) {
            self.wait_for_paste_mode().await?;
        }
        self.modes = self.scanner.modes();
        let mut typed = script::encode_script(self.shell.kind, script, self.modes);
        // Keys that the last command did not read, and replies to its queries of the terminal, are
        // text of the prompt after it.
        let has_writes = self.entry.write_count() != self.prompt.writes;
        // Zsh restores text that was put aside (push-line) at a prompt where nothing was typed.
        if self.has_typed_keys || has_writes || self.shell.kind == ShellKind::Zsh {
            let clearing = script::clear_keys(self.shell.kind).iter().copied();
            typed.bytes.splice(..0, clearing);
        }
        self.leases.check(self.entry.id, lease)?;
        let (len, at) = (typed.bytes.len() as u64, self.offset());
        let purpose = once.map_or(WriteKind::Input, |id| {
            WriteKind::Idempotent(IdempotentInput {
                id,
                output_end: at,
                len,
            })
        });
        let seen = self.writes_seen;
        let write = submit_write_after(&self.entry, caller, typed.bytes, purpose, seen);
        let written = write.await?.accepted;
        if written < len {
            return Err(self.busy_error_with(format!("it took {written} of {len} bytes typed")));
        }
        Ok(RunProgress::after_typing(typed.one_piece))
    }

    /// The state to wait with, for a script that was typed at the current offset.
    pub(super) fn progress_of_typed(&self, script: &str) -> RunProgress {
        RunProgress::after_typing(
            script::encode_script(self.shell.kind, script, self.modes).one_piece,
        )
    }

    /// The offset after the observed output.
    pub(super) fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// Waits for the outcome of the script that was typed at `from_offset`.
    pub(super) async fn wait(
        mut self,
        mut progress: RunProgress,
        from: u64,
        deadline: Instant,
    ) -> Result<(ShellRun, Self, RunProgress), Error> {
        let mut schedule = InspectionSchedule::new(deadline);
        let mut known = None;
        for mark in self.scanner.missed_marks(from) {
            known = known.or(progress.handle(mark));
        }
        let outcome = loop {
            if let Some(outcome) = known {
                break outcome;
            }
            known = match self.next_event(&schedule).await? {
                RunnerEvent::Page(page) => {
                    schedule.reset();
                    self.feed_page(&page, &mut progress)
                }
                RunnerEvent::Ended => progress.handle(RunInput::SessionOver),
                RunnerEvent::TimedOut => progress.handle(RunInput::TimedOut),
                RunnerEvent::Inspect => {
                    let running = progress.output_start().is_some();
                    let inspection = self.inspect(running).await?;
                    schedule.back_off();
                    progress.handle(RunInput::Inspected(inspection))
                }
            };
        };
        let run = self.finish(outcome, &progress, from)?;
        Ok((run, self, progress))
    }

    /// Removes a text that fish rejected and left at its prompt, where it would precede the next
    /// one.
    pub(super) async fn clear(&mut self, caller: &Caller) -> Result<(), Error> {
        write_input(&self.entry, caller, vec![INTERRUPT], false).await?;
        let mut schedule =
            InspectionSchedule::new(Instant::now() + Duration::from_millis(GIVE_UP_MS));
        while !matches!(self.scanner.state(), ShellState::Prompt { .. }) {
            match self.next_event(&schedule).await? {
                RunnerEvent::Page(page) => self.scanner.feed(&page, |_| {}),
                RunnerEvent::Inspect => {
                    // Fish ignores the key while it redraws.
                    write_input(&self.entry, caller, vec![INTERRUPT], false).await?;
                    schedule.back_off();
                }
                RunnerEvent::Ended | RunnerEvent::TimedOut => break,
            }
        }
        Ok(())
    }

    /// The next event.
    pub(super) async fn next_event(
        &mut self,
        schedule: &InspectionSchedule,
    ) -> Result<RunnerEvent, Error> {
        tokio::select! {
            biased;
            page = self.follower.next() => Ok(page?.map_or(RunnerEvent::Ended, RunnerEvent::Page)),
            () = tokio::time::sleep_until(schedule.due.min(schedule.deadline)) => {
                Ok(if schedule.deadline <= schedule.due { RunnerEvent::TimedOut } else { RunnerEvent::Inspect })
            }
        }
    }

    fn feed_page(
        &mut self,
        page: &ostler_journal::query::BytePage,
        progress: &mut RunProgress,
    ) -> Option<RunOutcome> {
        let mut outcome = progress.handle(RunInput::Output);
        let accepted = &mut self.accepted_at;
        let pasted = self.modes.bracketed_paste;
        self.scanner.feed(page, |marked| {
            if let ControlEvent::Modes(modes) = &marked.event {
                let has_left_editor = pasted && !modes.bracketed_paste;
                *accepted = accepted.or(has_left_editor.then_some(marked.to));
            }
            if outcome.is_none()
                && let Some(input) = input_from_mark(marked)
            {
                outcome = progress.handle(input);
            }
        });
        outcome
    }

    fn finish(
        &mut self,
        outcome: RunOutcome,
        progress: &RunProgress,
        typed_at: u64,
    ) -> Result<ShellRun, Error> {
        let end = match outcome {
            RunOutcome::Finished { status } => {
                let cwd = self
                    .scanner
                    .state()
                    .cwd()
                    .filter(|_| progress.has_directory());
                ShellEnd::Finished {
                    status,
                    cwd: cwd.map(str::to_owned),
                }
            }
            RunOutcome::Question => match self.question.take() {
                Some(prompt) => ShellEnd::Prompt(prompt),
                None => ShellEnd::NoMarker,
            },
            RunOutcome::Incomplete => ShellEnd::Incomplete,
            RunOutcome::NoMarker => ShellEnd::NoMarker,
            RunOutcome::ShellEnded => ShellEnd::ShellEnded,
            RunOutcome::TimedOut => ShellEnd::TimedOut,
        };
        let to = progress
            .output_end()
            .unwrap_or_else(|| self.scanner.offset());
        let start = progress
            .output_start()
            .or(self.accepted_at)
            .unwrap_or(typed_at);
        let from = start + self.shell_prefix_len(progress, start..to)?;
        Ok(ShellRun {
            end,
            from: from.min(to),
            to,
            info: self.entry.fresh_info(),
        })
    }

    /// The number of bytes at the beginning of a range that the shell itself printed.
    fn shell_prefix_len(&self, progress: &RunProgress, range: Range<u64>) -> Result<u64, Error> {
        let kind = self.shell.kind;
        let prefix = if progress.output_start().is_some() {
            OutputPrefix::Mark
        } else if self.accepted_at.is_some() {
            OutputPrefix::LineEnd
        } else {
            return Ok(0);
        };
        output_start::shell_prefix_len(&self.entry.journal()?, kind, prefix, range)
    }

    /// Inspects which process waits for input; `running` where a command is known to have begun.
    pub(super) async fn inspect(&mut self, running: bool) -> Result<ShellInspection, Error> {
        // The inspection is interpreted by the output read so far. With unread output the shell is
        // in another state: its prompt after a command would be taken for a question.
        let end = self.follower.cursor().offset;
        let Some(snapshot) = self.snapshot().await else {
            return Ok(ShellInspection::NotWaiting);
        };
        if self.entry.journal_end.borrow().end > end {
            return Ok(ShellInspection::NotWaiting);
        }
        if let (Some(known), Some(now)) = (&self.leader, tty_processes::session_leader(&snapshot)) {
            if now.pid != known.pid {
                // The shell has ended, and what it left is being ended: the end of the session follows.
                return Ok(ShellInspection::NotWaiting);
            }
            if now.name != known.name {
                return Ok(ShellInspection::Replaced);
            }
        }
        let is_waiting = |it: &ForegroundProcess| it.reads.is_some() || it.polls;
        let Some(foreground) = snapshot.foreground.filter(is_waiting) else {
            return Ok(ShellInspection::NotWaiting);
        };
        let is_leader = snapshot.members.first().map(|it| it.pid) == Some(foreground.pid);
        if is_leader && self.is_editing(&foreground, running) {
            return Ok(ShellInspection::AtPrompt);
        }
        // Its prompt may be printed and not recorded yet: only `read` still waits at the next
        // inspection.
        if is_leader && self.shell_read_at.replace(end) != Some(end) {
            return Ok(ShellInspection::NotWaiting);
        }
        self.question = wait::find_prompt(self.core, &self.entry, end).await?;
        Ok(if self.question.is_some() {
            ShellInspection::Question
        } else {
            ShellInspection::NotWaiting
        })
    }

    /// Whether a waiting shell is in its line editor rather than in `read`. An editor enables
    /// bracketed paste if it did so before; otherwise it reads single keys and echoes them itself.
    /// Fish reports the end of every command: while one runs, it waits in `read`.
    fn is_editing(&self, foreground: &ForegroundProcess, running: bool) -> bool {
        if running && self.shell.kind == ShellKind::Fish && !self.scanner.is_prompt_shown() {
            return false;
        }
        if self.modes.bracketed_paste {
            return self.scanner.modes().bracketed_paste;
        }
        foreground.lines == Some(false) && foreground.echo == Some(false)
    }

    async fn snapshot(&self) -> Option<TreeSnapshot> {
        tty_processes::snapshot(self.core, &self.entry).await
    }

    /// The error that names what the shell does instead of showing its prompt.
    async fn busy_error(&self) -> Error {
        let snapshot = self.snapshot().await;
        self.busy_error_with(busy_reason::busy_reason(
            self.scanner.state(),
            snapshot.as_ref(),
        ))
    }

    pub(super) fn busy_error_with(&self, reason: String) -> Error {
        Error::ShellBusy {
            id: self.entry.id,
            reason,
        }
    }
}
