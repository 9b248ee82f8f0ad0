//! Waiting on behalf of a client: no longer than the call may, with progress where it was
//! requested, as a task where the client supports tasks, with questions for the person where the
//! call wants them.

use std::time::Duration;

use ostler_engine::{ExecutionInfo, StartGuard, StartRequest, WaitEnd, WaitFor, WaitOutcome};
use ostler_interface::error::ApiError;
use ostler_model::ExecutionId;
use tokio::time::Instant;

use super::approval::{self, StartOrder};
use super::elicit;
use super::progress::ProgressTarget;
use super::reply::{BecameTask, ToolInterrupt};
use super::tool_call::ToolCall;

/// How a tool waits. A lone `Option<Duration>` converts to a limit without further options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WaitOptions {
    /// The longest wait; none means no limit but the call's own.
    pub(super) timeout: Option<Duration>,
    /// Whether a long wait may become a task, where the client supports tasks: for calls whose
    /// response is the command's end, and that have no limit of their own.
    pub(super) may_be_task: bool,
    /// The handling of a prompt.
    pub(super) on_prompt: OnPrompt,
}

/// The handling of a prompt while a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum OnPrompt {
    /// Prompts are not detected.
    #[default]
    Ignore,
    /// The wait ends with `WaitEnd::Prompt`.
    Return,
    /// The person at the client is asked, and the wait continues with the answer. Where that is not
    /// possible (the client does not support it, a secret, no answer) the wait ends as with
    /// `Return`, and `elicit::pending_prompt` describes what the agent can do.
    Ask,
}

impl From<Option<Duration>> for WaitOptions {
    fn from(timeout: Option<Duration>) -> Self {
        Self {
            timeout,
            ..Self::default()
        }
    }
}

impl WaitOptions {
    /// Prompts are ignored, without a limit.
    pub(super) fn no_wait() -> Self {
        Self::from(Some(Duration::ZERO))
    }

    /// To the end of the execution, as a task where the client supports tasks.
    pub(super) fn until_exit() -> Self {
        Self {
            may_be_task: true,
            ..Self::default()
        }
    }
}

/// Starts and waits for the end; dropped before that, the execution is cancelled. When the wait
/// ends first, the id is published with the answer.
pub(super) async fn run(
    call: ToolCall<'_>,
    request: StartRequest,
    options: impl Into<WaitOptions>,
) -> Result<WaitOutcome, ToolInterrupt> {
    run_until(call, request, &WaitFor::Exit, options).await
}

/// As [`run`], but ends as soon as the `deadline` condition is met.
pub(super) async fn run_until(
    call: ToolCall<'_>,
    start_order: impl Into<StartOrder>,
    until: &WaitFor,
    options: impl Into<WaitOptions>,
) -> Result<WaitOutcome, ToolInterrupt> {
    let options = options.into();
    if let Some(execution) = call.context.resumed_execution() {
        return resume(call, execution, until, options).await;
    }
    let bounds = WaitBounds::new(call, options);
    let start_order = start_order.into().with_queue_timeout(options.timeout);
    let start_guard = approval::start(call, start_order).await?;
    wait_started_within(call, start_guard, until, options, bounds).await
}

/// Waits on what this call started; dropped before the end of the wait, it is cancelled.
pub(super) async fn wait_started(
    call: ToolCall<'_>,
    start_guard: StartGuard,
    until: &WaitFor,
    options: WaitOptions,
) -> Result<WaitOutcome, ToolInterrupt> {
    let bounds = WaitBounds::new(call, options);
    wait_started_within(call, start_guard, until, options, bounds).await
}

async fn wait_started_within(
    call: ToolCall<'_>,
    start_guard: StartGuard,
    until: &WaitFor,
    options: WaitOptions,
    bounds: WaitBounds,
) -> Result<WaitOutcome, ToolInterrupt> {
    let waiting = async {
        match options.on_prompt {
            OnPrompt::Ignore => Ok(start_guard.wait(until, bounds.remaining()).await?),
            OnPrompt::Return | OnPrompt::Ask => {
                let id = start_guard.id().short();
                wait_answering_prompts(call, &id, until, options.on_prompt, bounds).await
            }
        }
    };
    let result = call
        .run_with_progress(ProgressTarget::Id(start_guard.id()), waiting)
        .await;
    let mut waited = match result {
        Ok(waited) => waited,
        // The client polls and resumes it.
        Err(interrupted @ ToolInterrupt::ElicitNeeded(_)) => {
            call.publish_id(start_guard);
            return Err(interrupted);
        }
        Err(interrupted @ ToolInterrupt::BecameTask(_)) => return Err(interrupted),
        Err(ToolInterrupt::Failed(failure)) => {
            let info = call.publish_id(start_guard);
            info.ensure_spawned()?;
            return Ok(failed_wait(call, info, &failure));
        }
    };
    waited.info.ensure_spawned()?;
    if waited.end != WaitEnd::Exit {
        waited.info = call.publish_id(start_guard);
    }
    bounds.finish(waited, options)
}

/// The outcome of a wait that failed after the start. What was started goes on, so the answer has its
/// id, with the problem as a note.
pub(super) fn failed_wait(
    call: ToolCall<'_>,
    info: ExecutionInfo,
    failure: &ApiError,
) -> WaitOutcome {
    call.context
        .set_wait_problem(failure.message().into_owned());
    WaitOutcome {
        cursor: info.cursor(),
        end: WaitEnd::Nothing,
        info,
    }
}

/// Waits on a running execution, which continues whatever happens to the request.
pub(super) async fn wait(
    call: ToolCall<'_>,
    id: &str,
    until: &WaitFor,
    options: impl Into<WaitOptions>,
) -> Result<WaitOutcome, ToolInterrupt> {
    let options = options.into();
    let bounds = WaitBounds::new(call, options);
    let on_prompt = apply_resumed_answer(call, options.on_prompt).await?;
    let waiting = wait_answering_prompts(call, id, until, on_prompt, bounds);
    let waited = call
        .run_with_progress(ProgressTarget::Name(id), waiting)
        .await?;
    bounds.finish(waited, options)
}

/// Waits on what an earlier request of this call started.
pub(super) async fn resume(
    call: ToolCall<'_>,
    execution: ExecutionId,
    until: &WaitFor,
    options: WaitOptions,
) -> Result<WaitOutcome, ToolInterrupt> {
    let waited = wait(call, &execution.short(), until, options).await?;
    waited.info.ensure_spawned()?;
    Ok(waited)
}

/// Applies the answer in a repeated call. A person who declined is not asked again, and one whose
/// client may only read is not asked at all: an answer is typed.
async fn apply_resumed_answer(
    call: ToolCall<'_>,
    on_prompt: OnPrompt,
) -> Result<OnPrompt, ToolInterrupt> {
    if call.access.is_read_only() {
        return Ok(match on_prompt {
            OnPrompt::Ask => OnPrompt::Return,
            OnPrompt::Ignore | OnPrompt::Return => on_prompt,
        });
    }
    Ok(match elicit::resume_elicitation(call).await? {
        Some(outcome) if !elicit::lets_command_continue(&outcome) => OnPrompt::Return,
        Some(_) | None => on_prompt,
    })
}

/// Waits, and has prompts answered meanwhile.
async fn wait_answering_prompts(
    call: ToolCall<'_>,
    id: &str,
    until: &WaitFor,
    on_prompt: OnPrompt,
    bounds: WaitBounds,
) -> Result<WaitOutcome, ToolInterrupt> {
    loop {
        let waiting = call.engine.wait(call.caller, id, until, bounds.remaining());
        let waited = match on_prompt {
            OnPrompt::Ignore => return Ok(waiting.await?),
            OnPrompt::Return | OnPrompt::Ask => tokio::select! {
                biased;
                waited = waiting => waited?,
                waited = call.engine.wait(call.caller, id, &WaitFor::Prompt, None) => waited?,
            },
        };
        if let (WaitEnd::Prompt(prompt), OnPrompt::Ask) = (&waited.end, on_prompt)
            && call.access.may_write(waited.info.owner.project.as_deref())
            && elicit::answer_prompt(call, waited.info.id, prompt, bounds.deadline).await?
        {
            continue;
        }
        return Ok(waited);
    }
}

/// The longest duration of one wait, and its consequence.
#[derive(Debug, Clone, Copy)]
struct WaitBounds {
    timeout: Option<Duration>,
    /// The deadline as a point in time.
    deadline: Option<Instant>,
    /// Whether the call then becomes a task.
    becomes_task: bool,
}

impl WaitBounds {
    /// The shortest of the requested time, the maximum of the call, and the time after which a call
    /// becomes a task.
    fn new(call: ToolCall<'_>, options: WaitOptions) -> Self {
        let shortest = |a: Option<Duration>, b: Option<Duration>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let timeout = shortest(options.timeout, call.context.max_wait());
        let task_after = call.state.options().task_after;
        let then_task = options.may_be_task
            && task_after.is_some_and(|after| timeout.is_none_or(|at_most| after < at_most))
            && call.context.supports_tasks();
        let timeout = if then_task { task_after } else { timeout };
        Self {
            timeout,
            deadline: timeout.and_then(|at_most| Instant::now().checked_add(at_most)),
            becomes_task: then_task,
        }
    }

    /// The remaining time.
    fn remaining(self) -> Option<Duration> {
        match self.deadline {
            Some(until) => Some(until.saturating_duration_since(Instant::now())),
            None => self.timeout,
        }
    }

    /// The outcome of the wait.
    fn finish(
        self,
        waited: WaitOutcome,
        options: WaitOptions,
    ) -> Result<WaitOutcome, ToolInterrupt> {
        if !(self.becomes_task && waited.end == WaitEnd::TimedOut) {
            return Ok(waited);
        }
        Err(ToolInterrupt::BecameTask(Box::new(BecameTask {
            info: waited.info,
            asks_person: options.on_prompt == OnPrompt::Ask,
        })))
    }
}
