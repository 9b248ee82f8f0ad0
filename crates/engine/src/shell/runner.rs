//! Observes a shell, types into it, and feeds [`RunProgress`].

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{ControlError, IdempotentInput};
use ostler_journal::follow::JournalFollower;
use ostler_model::snapshot::{ForegroundProcess, TreeSnapshot};
use ostler_model::{Caller, Cursor, InputId, ShellKind, ShellSession};
use ostler_terminal::{ControlEvent, LocatedEvent, Modes, ShellState};
use tokio::time::Instant;

use super::output_start::{self, OutputPrefix};
use super::run::{ShellEnd, ShellRun};
use super::run_state::{RunInput, RunOutcome, RunProgress, ShellInspection};
use super::script::{self, INTERRUPT};
use super::shell_scanner::ShellScanner;
use super::{run_lock, tty_processes};
use crate::driver::{WriteKind, prompt_wait};
use crate::engine::{submit_write, write_input};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{ExecutionHandle, OutputWatchGuard};
use crate::info::Prompt;
use crate::terminal::LeaseId;

/// How long a shell may take to its first prompt, or to the one after a command that has
/// ended, in milliseconds.
const PROMPT_WAIT_MS: u64 = 10_000;
/// How long a shell may take to give up a text that it refused, in milliseconds.
const GIVE_UP_MS: u64 = 1_000;
/// Silence after which it is looked who waits for input, in milliseconds.
const QUIET_MS: u64 = 150;
/// The longest time between two looks at a silent shell, in milliseconds; each look that
/// decides nothing doubles it from [`QUIET_MS`].
const INSPECT_MAX_MS: u64 = 2_000;

/// A shell that is listened to.
#[derive(Debug)]
pub(super) struct ShellRunner<'a> {
    core: &'a EngineInner,
    entry: Arc<ExecutionHandle>,
    shell: &'a ShellSession,
    follower: JournalFollower,
    scanner: ShellScanner,
    /// The modes in which the script was typed.
    modes: Modes,
    /// What the leader was called when the script was typed.
    leader: Option<String>,
    /// Whether keys were typed at the prompt that is shown: text may stand there.
    has_typed_keys: bool,
    /// Where the shell took what was typed from its line editor.
    accepted_at: Option<u64>,
    /// The question that stands, as the last look saw it.
    question: Option<Prompt>,
    /// The end of output at the last look that found the shell itself waiting, outside its
    /// line editor.
    shell_read_at: Option<u64>,
    _watch: OutputWatchGuard,
}

/// What a follower or a look told.
enum RunnerEvent {
    Page(ostler_journal::query::BytePage),
    Ended,
    Inspect,
    TimedOut,
}

/// When to look.
#[derive(Debug, Clone, Copy)]
struct InspectionSchedule {
    pause: Duration,
    due: Instant,
    deadline: Instant,
}

impl InspectionSchedule {
    fn new(deadline: Instant) -> Self {
        let pause = Duration::from_millis(QUIET_MS);
        Self {
            pause,
            due: Instant::now() + pause,
            deadline,
        }
    }

    /// Something was printed.
    fn reset(&mut self) {
        *self = Self::new(self.deadline);
    }

    /// A look decided nothing.
    fn back_off(&mut self) {
        self.pause = (self.pause * 2).min(Duration::from_millis(INSPECT_MAX_MS));
        self.due = Instant::now() + self.pause;
    }
}

impl<'a> ShellRunner<'a> {
    /// Listens to a shell from where it stands now, or as it stood at `starting_at`.
    pub(super) fn open(
        core: &'a EngineInner,
        entry: &Arc<ExecutionHandle>,
        shell: &'a ShellSession,
        at: Option<u64>,
    ) -> Result<Self, Error> {
        let journal = entry.journal()?;
        let end = at.map_or_else(|| journal.end(), Ok)?;
        let scanner = ShellScanner::from_tail(&journal, &shell.nonce, end)?;
        Self::with_scanner(core, entry, shell, scanner)
    }

    /// Listens to a shell from an earlier position on.
    pub(super) fn from_offset(
        core: &'a EngineInner,
        entry: &Arc<ExecutionHandle>,
        shell: &'a ShellSession,
        from: u64,
    ) -> Result<Self, Error> {
        Self::with_scanner(
            core,
            entry,
            shell,
            ShellScanner::starting_at(from, &shell.nonce),
        )
    }

    fn with_scanner(
        core: &'a EngineInner,
        entry: &Arc<ExecutionHandle>,
        shell: &'a ShellSession,
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
            entry: Arc::clone(entry),
            shell,
            follower,
            modes: scanner.modes(),
            scanner,
            leader: None,
            has_typed_keys: false,
            accepted_at: None,
            question: None,
            shell_read_at: None,
            _watch: watch,
        })
    }

    /// Waits until the shell shows its prompt, at most so long as that can take when nothing
    /// runs.
    pub(super) async fn wait_for_prompt(&mut self, deadline: Instant) -> Result<(), Error> {
        let limit = Instant::now() + Duration::from_millis(PROMPT_WAIT_MS);
        let mut schedule = InspectionSchedule::new(deadline.min(limit));
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
                    // The end of its prompt was lost, and it waits.
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

    /// Whether input came after the prompt that is shown.
    fn has_keys_at_prompt(&self) -> bool {
        let typed_at = self.entry.live.borrow().last_input_offset;
        let free_since = self
            .scanner
            .free_since()
            .max(self.entry.shell_run.free_since());
        typed_at
            .zip(free_since)
            .is_some_and(|(typed, free)| typed > free)
    }

    /// Waits until the line editor has handled the keys typed last, which a new prompt or some
    /// silence tells: an interrupt discards also what was typed after it.
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

    /// Types a script at the prompt; what to wait for then.
    pub(super) async fn type_script(
        &mut self,
        caller: &Caller,
        script: &str,
        (lease, once): (Option<&LeaseId>, Option<InputId>),
    ) -> Result<RunProgress, Error> {
        self.leader = self
            .snapshot()
            .await
            .as_ref()
            .and_then(tty_processes::leader_name);
        if script.contains(['\n', '\t']) {
            self.wait_for_paste_mode().await?;
        }
        self.modes = self.scanner.modes();
        let mut typed = script::encode_script(self.shell.kind, script, self.modes);
        // What zsh put aside (push-line) comes back with a prompt nobody typed at.
        if self.has_typed_keys || self.shell.kind == ShellKind::Zsh {
            let clearing = script::clear_keys(self.shell.kind).iter().copied();
            typed.bytes.splice(..0, clearing);
        }
        self.entry.leases.check(self.entry.id, lease)?;
        let (len, at) = (typed.bytes.len() as u64, self.offset());
        let purpose = once.map_or(WriteKind::Input, |id| {
            WriteKind::Idempotent(IdempotentInput {
                id,
                output_end: at,
                len,
            })
        });
        let write = submit_write(&self.entry, caller, (typed.bytes, false), purpose);
        let written = write.await?.accepted;
        if written < len {
            return Err(self.busy_error_with(format!("it took {written} of {len} bytes typed")));
        }
        Ok(RunProgress::after_typing(typed.one_piece))
    }

    /// What to wait for of a script that was typed where this begins.
    pub(super) fn progress_of_typed(&self, script: &str) -> RunProgress {
        RunProgress::after_typing(
            script::encode_script(self.shell.kind, script, self.modes).one_piece,
        )
    }

    /// Zsh and fish ask for pastes just after they showed their prompt: what is typed in
    /// between would be taken line by line.
    async fn wait_for_paste_mode(&mut self) -> Result<(), Error> {
        let has_paste_mode = self.shell.kind == ShellKind::Bash;
        let schedule = InspectionSchedule::new(Instant::now() + Duration::from_millis(QUIET_MS));
        while !has_paste_mode && !self.scanner.modes().bracketed_paste {
            match self.next_event(&schedule).await? {
                RunnerEvent::Page(page) => self.scanner.feed(&page, |_| {}),
                // It was told not to.
                RunnerEvent::Inspect | RunnerEvent::TimedOut => break,
                RunnerEvent::Ended => return Err(ControlError::Ended.into()),
            }
        }
        Ok(())
    }

    /// Where what follows begins.
    pub(super) fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// Waits for what becomes of the script that was typed at `from_offset`.
    pub(super) async fn wait(
        mut self,
        mut progress: RunProgress,
        from: u64,
        deadline: Instant,
    ) -> Result<(ShellRun, Self, RunProgress), Error> {
        let mut schedule = InspectionSchedule::new(deadline);
        let outcome = loop {
            let result = match self.next_event(&schedule).await? {
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
            if let Some(outcome) = result {
                break outcome;
            }
        };
        let run = self.finish(outcome, &progress, from)?;
        Ok((run, self, progress))
    }

    /// Fish leaves a text it refused at its prompt: there it would spoil the next.
    pub(super) async fn clear(&mut self, caller: &Caller) -> Result<(), Error> {
        write_input(&self.entry, caller, vec![INTERRUPT], false).await?;
        let mut schedule =
            InspectionSchedule::new(Instant::now() + Duration::from_millis(GIVE_UP_MS));
        while !matches!(self.scanner.state(), ShellState::Prompt { .. }) {
            match self.next_event(&schedule).await? {
                RunnerEvent::Page(page) => self.scanner.feed(&page, |_| {}),
                RunnerEvent::Inspect => {
                    // It overhears the key while it paints.
                    write_input(&self.entry, caller, vec![INTERRUPT], false).await?;
                    schedule.back_off();
                }
                RunnerEvent::Ended | RunnerEvent::TimedOut => break,
            }
        }
        Ok(())
    }

    /// The next thing to take in.
    async fn next_event(&mut self, schedule: &InspectionSchedule) -> Result<RunnerEvent, Error> {
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

    /// How many bytes of a range are the shell's own, at its beginning.
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

    /// Who waits for input; `running` where a command is known to have begun.
    async fn inspect(&mut self, running: bool) -> Result<ShellInspection, Error> {
        // What is seen is judged by the output known so far; with more of it to read, that is
        // another state of the shell: the prompt after a command would pass for a question.
        let end = self.follower.cursor().offset;
        let Some(snapshot) = self.snapshot().await else {
            return Ok(ShellInspection::NotWaiting);
        };
        if self.entry.journal_end.borrow().end > end {
            return Ok(ShellInspection::NotWaiting);
        }
        let name = tty_processes::leader_name(&snapshot);
        if self.leader.is_some() && name.is_some() && name != self.leader {
            return Ok(ShellInspection::Replaced);
        }
        let is_waiting = |it: &ForegroundProcess| it.reads.is_some() || it.polls;
        let Some(foreground) = snapshot.foreground.filter(is_waiting) else {
            return Ok(ShellInspection::NotWaiting);
        };
        let is_leader = snapshot.members.first().map(|it| it.pid) == Some(foreground.pid);
        if is_leader && self.is_editing(&foreground, running) {
            return Ok(ShellInspection::AtPrompt);
        }
        // Its prompt may be printed and not recorded yet: only `read` still waits at the next look.
        if is_leader && self.shell_read_at.replace(end) != Some(end) {
            return Ok(ShellInspection::NotWaiting);
        }
        self.question = prompt_wait::find_prompt(self.core, &self.entry, end).await?;
        Ok(if self.question.is_some() {
            ShellInspection::Question
        } else {
            ShellInspection::NotWaiting
        })
    }

    /// Whether a shell that waits does so in its line editor, rather than for `read`. An
    /// editor asks for pastes where it did so before; else it takes single keys and shows them
    /// itself. Fish tells of every command's end: while one runs, it reads for that.
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

    /// What it does instead of showing its prompt.
    async fn busy_error(&self) -> Error {
        let snapshot = self.snapshot().await;
        self.busy_error_with(run_lock::busy_reason(
            self.scanner.state(),
            snapshot.as_ref(),
        ))
    }

    fn busy_error_with(&self, reason: String) -> Error {
        Error::ShellBusy {
            id: self.entry.id,
            reason,
        }
    }
}

/// What a mark tells of the script.
const fn input_from_mark(marked: &LocatedEvent) -> Option<RunInput> {
    match &marked.event {
        ControlEvent::CommandStart { is_trusted: true } => {
            Some(RunInput::CommandStarted { to: marked.to })
        }
        ControlEvent::CommandEnd {
            is_trusted: true,
            status,
        } => Some(RunInput::CommandEnded {
            from: marked.from,
            status: *status,
        }),
        ControlEvent::PromptStart {
            is_trusted: true,
            continuation: false,
        } => Some(RunInput::PromptShown),
        ControlEvent::PromptStart {
            is_trusted: true,
            continuation: true,
        } => Some(RunInput::ContinuationPrompt),
        ControlEvent::Directory(_) => Some(RunInput::DirectoryReported),
        ControlEvent::PromptStart {
            is_trusted: false, ..
        }
        | ControlEvent::PromptEnd { .. }
        | ControlEvent::CommandStart { is_trusted: false }
        | ControlEvent::CommandEnd {
            is_trusted: false, ..
        }
        | ControlEvent::Title(_)
        | ControlEvent::Modes(_) => None,
    }
}
