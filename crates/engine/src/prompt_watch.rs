//! [`PromptWatcher`]: turns prompts of commands that nobody waits for into questions.
//!
//! The kernel does not notify when a process begins to read. The resource monitor looks at every
//! living execution anyway; at its samples, those that accept input and have been silent are
//! checked for a prompt. Commands without input cost nothing, and one in which nothing changes is
//! checked ever more rarely.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ostler_model::{Caller, ExecutionId, UsageSample};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::engine_inner::EngineInner;
use crate::execution::{DriverCommand, ExecutionHandle};
use crate::hooks::ExecutionObserver;
use crate::interaction::InteractionService;
use crate::lease::WriterLeases;
use crate::monitor::UsageListener;
use crate::wait;

/// How many executions may wait for their check; the next sample adds one that found no place.
const QUEUED_MAX: usize = 256;
/// The first time between two checks of a command in which nothing changes.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long after its last output or event a command is sampled more often for those who look at
/// questions.
const RECENT_ACTIVITY: Duration = Duration::from_secs(30);

/// Checks commands for prompts.
#[derive(Debug)]
pub(crate) struct PromptWatcher {
    core: OnceLock<Weak<EngineInner>>,
    interactions: Arc<InteractionService>,
    leases: Arc<WriterLeases>,
    queue: mpsc::Sender<ExecutionId>,
    watched: Mutex<HashMap<ExecutionId, WatchedCommand>>,
}

/// The executions to check, in turn.
#[derive(Debug)]
pub(crate) struct PromptQueue(mpsc::Receiver<ExecutionId>);

/// What is kept of one execution that accepts input.
#[derive(Debug, Default, Clone, Copy)]
struct WatchedCommand {
    is_queued: bool,
    last: Option<PromptCheck>,
}

/// A check that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PromptCheck {
    /// The output and the events that there were.
    position: CommandPosition,
    /// When they had last changed.
    changed_at: Instant,
    /// When to look again although nothing has changed.
    due_at: Instant,
    pause: Duration,
}

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommandPosition {
    output_end: u64,
    events: u64,
}

impl PromptCheck {
    /// Whether a command at this position is to be checked.
    fn is_due(&self, now: Instant, position: CommandPosition) -> bool {
        self.position != position || self.due_at <= now
    }

    /// What is kept of the check that follows `last`.
    fn after(last: Option<Self>, now: Instant, position: CommandPosition) -> Self {
        let unchanged = last.filter(|it| it.position == position);
        let pause = unchanged.map_or(FIRST_PAUSE, |it| (it.pause * 2).min(LONGEST_PAUSE));
        Self {
            position,
            changed_at: unchanged.map_or(now, |it| it.changed_at),
            due_at: now + pause,
            pause,
        }
    }
}

impl PromptWatcher {
    pub(crate) fn new(
        interactions: Arc<InteractionService>,
        leases: Arc<WriterLeases>,
    ) -> (Arc<Self>, PromptQueue) {
        let (queue, queued) = mpsc::channel(QUEUED_MAX);
        let watcher = Self {
            core: OnceLock::new(),
            interactions,
            leases,
            queue,
            watched: Mutex::default(),
        };
        (Arc::new(watcher), PromptQueue(queued))
    }

    /// Checks the executions of this engine from now on.
    pub(crate) fn connect(&self, core: &Arc<EngineInner>) {
        // Called once, by whoever opens the engine.
        drop(self.core.set(Arc::downgrade(core)));
    }

    /// Somebody looks at the caller's questions: the commands that have done something of late are
    /// sampled every second for the length of a lease.
    pub(crate) fn sample_often(&self, core: &EngineInner, caller: &Caller) {
        let now = Instant::now();
        let was_active = |id: ExecutionId| {
            let watched = self.watched.lock();
            let last = watched.get(&id).and_then(|it| it.last);
            last.is_none_or(|it| now.duration_since(it.changed_at) < RECENT_ACTIVITY)
        };
        for entry in core.registry.running() {
            let may_ask = wait::has_input(&entry.spec.io) && caller.can_access(&entry.owner());
            if may_ask && was_active(entry.id) {
                core.usage_monitor.watch(entry.id);
            }
        }
    }

    /// Checks what is queued for as long as the engine lives.
    pub(crate) async fn run(self: Arc<Self>, core: Arc<EngineInner>, mut queue: PromptQueue) {
        loop {
            let id = tokio::select! {
                biased;
                () = core.closing.cancelled() => return,
                id = queue.0.recv() => id,
            };
            let Some(id) = id else {
                return;
            };
            if let Some(entry) = core.registry.get(id) {
                tokio::select! {
                    biased;
                    () = core.closing.cancelled() => return,
                    () = self.check(&core, &entry) => {}
                }
            }
            if let Some(watched) = self.watched.lock().get_mut(&id) {
                watched.is_queued = false;
            }
        }
    }

    async fn check(&self, core: &EngineInner, entry: &Arc<ExecutionHandle>) {
        let Some(position) = position(entry) else {
            return;
        };
        let last = self.watched.lock().get(&entry.id).and_then(|it| it.last);
        let is_due = last.is_none_or(|it| it.is_due(Instant::now(), position));
        // Who types in the terminal sees its prompts there.
        if !is_due || self.leases.holder(entry.id).is_some() {
            return;
        }
        let found = wait::find_quiet_prompt(core, entry, position.output_end).await;
        let Ok(found) = found else {
            return;
        };
        // The prompt itself is an event.
        let Some(after) = self::position(entry) else {
            return;
        };
        if after.output_end != position.output_end {
            // It went on during the check: the next sample is the next chance.
            return;
        }
        match &found {
            None => self.check_prompt_gone(core, entry).await,
            // One that asks has ended the question of an earlier one.
            Some(prompt) if !prompt.is_question => {
                self.interactions.other_prompt_found(entry.id, prompt);
            }
            Some(_) => {}
        }
        let check = PromptCheck::after(last, Instant::now(), after);
        if let Some(watched) = self.watched.lock().get_mut(&entry.id) {
            watched.last = Some(check);
        }
    }

    /// Ends the prompt of a command, and the question about it, where it has gone on without input.
    async fn check_prompt_gone(&self, core: &EngineInner, entry: &Arc<ExecutionHandle>) {
        let (has_prompt, prompts) = {
            let state = &entry.live.borrow().state;
            (state.prompt.is_some(), state.prompts)
        };
        let question = self.interactions.open_prompt(entry.id);
        if (!has_prompt && question.is_none()) || wait::waits_at_prompt(core, entry, |_| true).await
        {
            return;
        }
        // By now the command may wait at another prompt: both name the one that was looked at.
        if has_prompt {
            // Where its driver has ended, so has the command.
            let command = DriverCommand::PromptGone { prompts };
            drop(entry.send_command(command).await);
        }
        if let Some(question) = question {
            self.interactions.prompt_gone(entry.id, question);
        }
    }
}

/// How far a living command has come; none where its output cannot be read.
fn position(entry: &ExecutionHandle) -> Option<CommandPosition> {
    let output_end = entry.journal().ok()?.end().ok()?;
    let live = entry.live.borrow();
    (!live.state.is_finished()).then_some(CommandPosition {
        output_end,
        events: live.state.events,
    })
}

impl UsageListener for PromptWatcher {
    fn observed(&self, execution: ExecutionId, _sample: &UsageSample) {
        let Some(core) = self.core.get().and_then(Weak::upgrade) else {
            return;
        };
        let entry = core.registry.get(execution);
        let Some(entry) = entry.filter(|it| wait::has_input(&it.spec.io)) else {
            return;
        };
        let mut all = self.watched.lock();
        if entry.is_finished() {
            all.remove(&execution);
            return;
        }
        let watched = all.entry(execution).or_default();
        if !watched.is_queued {
            watched.is_queued = self.queue.try_send(execution).is_ok();
        }
    }
}

impl ExecutionObserver for PromptWatcher {
    fn ended(&self, id: ExecutionId) {
        self.watched.lock().remove(&id);
    }

    fn removed(&self, id: ExecutionId) {
        self.watched.lock().remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_change_is_checked_ever_more_rarely() {
        let at = |output_end| CommandPosition {
            output_end,
            events: 3,
        };
        let start = Instant::now();
        let mut last = PromptCheck::after(None, start, at(5));
        let mut gaps = Vec::new();
        let mut now = start;
        for _ in 0..6 {
            assert!(!last.is_due(now, at(5)));
            assert!(last.is_due(now, at(6)), "output");
            gaps.push((last.due_at - now).as_secs());
            now = last.due_at;
            assert!(last.is_due(now, at(5)));
            last = PromptCheck::after(Some(last), now, at(5));
            assert_eq!(last.changed_at, start);
        }
        assert_eq!(gaps, [1, 2, 4, 8, 10, 10]);
        let changed = PromptCheck::after(Some(last), now, at(6));
        assert_eq!((changed.changed_at, changed.pause), (now, FIRST_PAUSE));
    }
}
