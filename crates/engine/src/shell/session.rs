//! Looking at a shell, typing into it, and telling [`Progress`] what is seen.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ostler_journal::follow::Follower;
use ostler_model::evidence::{Evidence, Foreground};
use ostler_model::{Caller, Cursor, InputId, ShellKind, ShellSession};
use ostler_process::ControlError;
use ostler_process::place::IdempotentInput;
use ostler_terminal::{Mark, Marked, Modes, ShellState};
use tokio::time::Instant;

use super::decide::{Fact, Progress, Seen, Verdict};
use super::output::{self, Before};
use super::run::{ShellEnd, ShellRun};
use super::scan::Scan;
use super::script::{self, INTERRUPT};
use super::{busy, who};
use crate::core::Core;
use crate::driver::{Purpose, prompt};
use crate::engine::{put, put_in};
use crate::entry::{Entry, Watching};
use crate::error::Error;
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
const LOOK_MS: u64 = 2_000;

/// A shell that is listened to.
#[derive(Debug)]
pub(super) struct Session<'a> {
    core: &'a Core,
    entry: Arc<Entry>,
    shell: &'a ShellSession,
    follower: Follower,
    scan: Scan,
    /// The modes in which the script was typed.
    modes: Modes,
    /// What the leader was called when the script was typed.
    leader: Option<String>,
    /// Whether keys were typed at the prompt that is shown: text may stand there.
    is_typed_at: bool,
    /// Where the shell took what was typed from its line editor.
    accepted: Option<u64>,
    /// The question that stands, as the last look saw it.
    question: Option<Prompt>,
    /// The end of output at the last look that found the shell itself waiting, outside its
    /// line editor.
    shell_read_at: Option<u64>,
    _watching: Watching,
}

/// What a follower or a look told.
enum Step {
    Page(ostler_journal::query::BytePage),
    Over,
    Look,
    TimeUp,
}

/// When to look.
#[derive(Debug, Clone, Copy)]
struct Looks {
    pause: Duration,
    due: Instant,
    deadline: Instant,
}

impl Looks {
    fn until(deadline: Instant) -> Self {
        let pause = Duration::from_millis(QUIET_MS);
        Self {
            pause,
            due: Instant::now() + pause,
            deadline,
        }
    }

    /// Something was printed.
    fn anew(&mut self) {
        *self = Self::until(self.deadline);
    }

    /// A look decided nothing.
    fn later(&mut self) {
        self.pause = (self.pause * 2).min(Duration::from_millis(LOOK_MS));
        self.due = Instant::now() + self.pause;
    }
}

impl<'a> Session<'a> {
    /// Listens to a shell from where it stands now, or as it stood at `at`.
    pub(super) fn open(
        core: &'a Core,
        entry: &Arc<Entry>,
        shell: &'a ShellSession,
        at: Option<u64>,
    ) -> Result<Self, Error> {
        let journal = entry.journal()?;
        let end = at.map_or_else(|| journal.end(), Ok)?;
        let scan = Scan::of_tail(&journal, &shell.nonce, end)?;
        Self::following(core, entry, shell, scan)
    }

    /// Listens to a shell from an earlier position on.
    pub(super) fn from(
        core: &'a Core,
        entry: &Arc<Entry>,
        shell: &'a ShellSession,
        from: u64,
    ) -> Result<Self, Error> {
        Self::following(core, entry, shell, Scan::at(from, &shell.nonce))
    }

    fn following(
        core: &'a Core,
        entry: &Arc<Entry>,
        shell: &'a ShellSession,
        scan: Scan,
    ) -> Result<Self, Error> {
        let watching = Watching::new(entry);
        let from = Cursor {
            offset: scan.offset(),
            event: 0,
        };
        let follower = Follower::new(entry.journal()?, from, entry.marks.subscribe());
        Ok(Self {
            core,
            entry: Arc::clone(entry),
            shell,
            follower,
            modes: scan.modes(),
            scan,
            leader: None,
            is_typed_at: false,
            accepted: None,
            question: None,
            shell_read_at: None,
            _watching: watching,
        })
    }

    /// Waits until the shell shows its prompt, at most so long as that can take when nothing
    /// runs.
    pub(super) async fn ready(&mut self, deadline: Instant) -> Result<(), Error> {
        let patience = Instant::now() + Duration::from_millis(PROMPT_WAIT_MS);
        let mut looks = Looks::until(deadline.min(patience));
        loop {
            match self.scan.state() {
                ShellState::Prompt { .. } if self.scan.is_prompt_shown() => break,
                ShellState::Running { .. } | ShellState::Incomplete { .. } => {
                    return Err(self.busy().await);
                }
                ShellState::Unknown | ShellState::Ended { .. } | ShellState::Prompt { .. } => {}
            }
            match self.step(&looks).await? {
                Step::Page(page) => {
                    self.scan.take(&page, |_| {});
                    looks.anew();
                }
                Step::Over => return Err(ControlError::Ended.into()),
                Step::TimeUp => return Err(self.busy().await),
                Step::Look => {
                    // The end of its prompt was lost, and it waits.
                    let known = *self.scan.state() != ShellState::Unknown;
                    if known && self.look(false).await? == Seen::AtPrompt {
                        break;
                    }
                    looks.later();
                }
            }
        }
        if self.has_keys_at_prompt() {
            self.keys_are_handled().await?;
        }
        self.is_typed_at = self.has_keys_at_prompt();
        Ok(())
    }

    /// Whether input came after the prompt that is shown.
    fn has_keys_at_prompt(&self) -> bool {
        let typed_at = self.entry.live.borrow().input_at;
        let free_since = self
            .scan
            .free_since()
            .max(self.entry.shell_run.free_since());
        typed_at
            .zip(free_since)
            .is_some_and(|(typed, free)| typed > free)
    }

    /// Waits until the line editor has handled the keys typed last, which a new prompt or some
    /// silence tells: an interrupt discards also what was typed after it.
    async fn keys_are_handled(&mut self) -> Result<(), Error> {
        let mut looks = Looks::until(Instant::now() + Duration::from_millis(GIVE_UP_MS));
        while self.has_keys_at_prompt() || !self.scan.is_prompt_shown() {
            match self.step(&looks).await? {
                Step::Page(page) => {
                    self.scan.take(&page, |_| {});
                    looks.anew();
                }
                Step::Look | Step::TimeUp => break,
                Step::Over => return Err(ControlError::Ended.into()),
            }
        }
        match self.scan.state() {
            ShellState::Running { .. } | ShellState::Incomplete { .. } => Err(self.busy().await),
            ShellState::Unknown | ShellState::Ended { .. } | ShellState::Prompt { .. } => Ok(()),
        }
    }

    /// Types a script at the prompt; what to wait for then.
    pub(super) async fn type_script(
        &mut self,
        caller: &Caller,
        script: &str,
        (lease, once): (Option<&LeaseId>, Option<InputId>),
    ) -> Result<Progress, Error> {
        self.leader = self.observe().await.as_ref().and_then(who::leader);
        if script.contains(['\n', '\t']) {
            self.takes_pastes().await?;
        }
        self.modes = self.scan.modes();
        let mut keys = script::keys(self.shell.kind, script, self.modes);
        // What zsh put aside (push-line) comes back with a prompt nobody typed at.
        if self.is_typed_at || self.shell.kind == ShellKind::Zsh {
            let clearing = script::clearing(self.shell.kind).iter().copied();
            keys.bytes.splice(..0, clearing);
        }
        self.entry.leases.check(self.entry.id, lease)?;
        let (len, at) = (keys.bytes.len() as u64, self.offset());
        let purpose = once.map_or(Purpose::Input, |id| {
            Purpose::Once(IdempotentInput { id, at, len })
        });
        let put = put(&self.entry, caller, (keys.bytes, false), purpose);
        let taken = put.await?.bytes;
        if taken < len {
            return Err(self.busy_with(format!("it took {taken} of {len} bytes typed")));
        }
        Ok(Progress::typed(keys.whole))
    }

    /// What to wait for of a script that was typed where this begins.
    pub(super) fn was_typed(&self, script: &str) -> Progress {
        Progress::typed(script::keys(self.shell.kind, script, self.modes).whole)
    }

    /// Zsh and fish ask for pastes just after they showed their prompt: what is typed in
    /// between would be taken line by line.
    async fn takes_pastes(&mut self) -> Result<(), Error> {
        let asks_before = self.shell.kind == ShellKind::Bash;
        let looks = Looks::until(Instant::now() + Duration::from_millis(QUIET_MS));
        while !asks_before && !self.scan.modes().bracketed_paste {
            match self.step(&looks).await? {
                Step::Page(page) => self.scan.take(&page, |_| {}),
                // It was told not to.
                Step::Look | Step::TimeUp => break,
                Step::Over => return Err(ControlError::Ended.into()),
            }
        }
        Ok(())
    }

    /// Where what follows begins.
    pub(super) fn offset(&self) -> u64 {
        self.scan.offset()
    }

    /// Waits for what becomes of the script that was typed at `from`.
    pub(super) async fn wait(
        mut self,
        mut progress: Progress,
        from: u64,
        deadline: Instant,
    ) -> Result<(ShellRun, Self, Progress), Error> {
        let mut looks = Looks::until(deadline);
        let verdict = loop {
            let found = match self.step(&looks).await? {
                Step::Page(page) => {
                    looks.anew();
                    self.tell(&page, &mut progress)
                }
                Step::Over => progress.take(Fact::Over),
                Step::TimeUp => progress.take(Fact::TimeUp),
                Step::Look => {
                    let running = progress.started().is_some();
                    let seen = self.look(running).await?;
                    looks.later();
                    progress.take(Fact::Seen(seen))
                }
            };
            if let Some(verdict) = found {
                break verdict;
            }
        };
        let run = self.outcome(verdict, &progress, from)?;
        Ok((run, self, progress))
    }

    /// Fish leaves a text it refused at its prompt: there it would spoil the next.
    pub(super) async fn clear(&mut self, caller: &Caller) -> Result<(), Error> {
        put_in(&self.entry, caller, vec![INTERRUPT], false).await?;
        let mut looks = Looks::until(Instant::now() + Duration::from_millis(GIVE_UP_MS));
        while !matches!(self.scan.state(), ShellState::Prompt { .. }) {
            match self.step(&looks).await? {
                Step::Page(page) => self.scan.take(&page, |_| {}),
                Step::Look => {
                    // It overhears the key while it paints.
                    put_in(&self.entry, caller, vec![INTERRUPT], false).await?;
                    looks.later();
                }
                Step::Over | Step::TimeUp => break,
            }
        }
        Ok(())
    }

    /// The next thing to take in.
    async fn step(&mut self, looks: &Looks) -> Result<Step, Error> {
        tokio::select! {
            biased;
            page = self.follower.next() => Ok(page?.map_or(Step::Over, Step::Page)),
            () = tokio::time::sleep_until(looks.due.min(looks.deadline)) => {
                Ok(if looks.deadline <= looks.due { Step::TimeUp } else { Step::Look })
            }
        }
    }

    fn tell(
        &mut self,
        page: &ostler_journal::query::BytePage,
        progress: &mut Progress,
    ) -> Option<Verdict> {
        let mut verdict = progress.take(Fact::Printed);
        let accepted = &mut self.accepted;
        let pasted = self.modes.bracketed_paste;
        self.scan.take(page, |marked| {
            if let Mark::Modes(modes) = &marked.mark {
                let taken = pasted && !modes.bracketed_paste;
                *accepted = accepted.or(taken.then_some(marked.to));
            }
            if verdict.is_none()
                && let Some(fact) = fact(marked)
            {
                verdict = progress.take(fact);
            }
        });
        verdict
    }

    fn outcome(
        &mut self,
        verdict: Verdict,
        progress: &Progress,
        typed_at: u64,
    ) -> Result<ShellRun, Error> {
        let end = match verdict {
            Verdict::Finished { status } => {
                let cwd = self.scan.state().cwd().filter(|_| progress.told());
                ShellEnd::Finished {
                    status,
                    cwd: cwd.map(str::to_owned),
                }
            }
            Verdict::Question => match self.question.take() {
                Some(prompt) => ShellEnd::Prompt(prompt),
                None => ShellEnd::Silent,
            },
            Verdict::Incomplete => ShellEnd::Incomplete,
            Verdict::Silent => ShellEnd::Silent,
            Verdict::ShellEnded => ShellEnd::ShellEnded,
            Verdict::AtMost => ShellEnd::AtMost,
        };
        let to = progress.ended().unwrap_or_else(|| self.scan.offset());
        let begun = progress.started().or(self.accepted).unwrap_or(typed_at);
        let from = begun + self.own_bytes(progress, begun..to)?;
        Ok(ShellRun {
            end,
            from: from.min(to),
            to,
            info: self.entry.fresh_info(),
        })
    }

    /// How many bytes of a range are the shell's own, at its beginning.
    fn own_bytes(&self, progress: &Progress, range: Range<u64>) -> Result<u64, Error> {
        let kind = self.shell.kind;
        let before = if progress.started().is_some() {
            Before::Mark
        } else if self.accepted.is_some() {
            Before::LineEnd
        } else {
            return Ok(0);
        };
        output::own_bytes(&self.entry.journal()?, kind, before, range)
    }

    /// Who waits for input; `running` where a command is known to have begun.
    async fn look(&mut self, running: bool) -> Result<Seen, Error> {
        // What is seen is judged by the output known so far; with more of it to read, that is
        // another state of the shell: the prompt after a command would pass for a question.
        let end = self.follower.cursor().offset;
        let Some(evidence) = self.observe().await else {
            return Ok(Seen::Nobody);
        };
        if self.entry.marks.borrow().end > end {
            return Ok(Seen::Nobody);
        }
        let name = who::leader(&evidence);
        if self.leader.is_some() && name.is_some() && name != self.leader {
            return Ok(Seen::Replaced);
        }
        let waits = |it: &Foreground| it.reads.is_some() || it.polls;
        let Some(foreground) = evidence.foreground.filter(waits) else {
            return Ok(Seen::Nobody);
        };
        let is_leader = evidence.members.first().map(|it| it.pid) == Some(foreground.pid);
        if is_leader && self.is_editing(&foreground, running) {
            return Ok(Seen::AtPrompt);
        }
        // Its prompt may be printed and not recorded yet: only `read` still waits at the next look.
        if is_leader && self.shell_read_at.replace(end) != Some(end) {
            return Ok(Seen::Nobody);
        }
        self.question = prompt::look(self.core, &self.entry, end).await?;
        Ok(if self.question.is_some() {
            Seen::Question
        } else {
            Seen::Nobody
        })
    }

    /// Whether a shell that waits does so in its line editor, rather than for `read`. An
    /// editor asks for pastes where it did so before; else it takes single keys and shows them
    /// itself. Fish tells of every command's end: while one runs, it reads for that.
    fn is_editing(&self, foreground: &Foreground, running: bool) -> bool {
        if running && self.shell.kind == ShellKind::Fish && !self.scan.is_prompt_shown() {
            return false;
        }
        if self.modes.bracketed_paste {
            return self.scan.modes().bracketed_paste;
        }
        foreground.lines == Some(false) && foreground.echo == Some(false)
    }

    async fn observe(&self) -> Option<Evidence> {
        who::observe(self.core, &self.entry).await
    }

    /// What it does instead of showing its prompt.
    async fn busy(&self) -> Error {
        let evidence = self.observe().await;
        self.busy_with(busy::reason(self.scan.state(), evidence.as_ref()))
    }

    fn busy_with(&self, reason: String) -> Error {
        Error::ShellBusy {
            id: self.entry.id,
            reason,
        }
    }
}

/// What a mark tells of the script.
const fn fact(marked: &Marked) -> Option<Fact> {
    match &marked.mark {
        Mark::CommandStart { believed: true } => Some(Fact::Started { to: marked.to }),
        Mark::CommandEnd {
            believed: true,
            status,
        } => Some(Fact::Ended {
            from: marked.from,
            status: *status,
        }),
        Mark::PromptStart {
            believed: true,
            continuation: false,
        } => Some(Fact::Asked),
        Mark::PromptStart {
            believed: true,
            continuation: true,
        } => Some(Fact::WantsMore),
        Mark::Directory(_) => Some(Fact::Told),
        Mark::PromptStart {
            believed: false, ..
        }
        | Mark::PromptEnd { .. }
        | Mark::CommandStart { believed: false }
        | Mark::CommandEnd {
            believed: false, ..
        }
        | Mark::Title(_)
        | Mark::Modes(_) => None,
    }
}
