//! Waiting on behalf of a client: never beyond its patience (F4), with progress where it asked
//! for it, as a task where it knows them, with questions for the person where the call wants
//! them asked.

use std::time::Duration;

use ostler_engine::{Begun, StartRequest, WaitEnd, WaitFor, Waited};
use ostler_model::ExecutionId;
use tokio::time::Instant;

use super::consent::{self, Order};
use super::context::Call;
use super::elicit;
use super::progress::Of;
use super::reply::{Interrupted, Tasked};

/// How a tool wants to wait. `Option<Duration>` alone converts: only a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Options {
    /// The longest; none: as long as it takes, within the client's patience.
    pub(super) at_most: Option<Duration>,
    /// Whether a wait that takes long may become a task, where the client knows tasks. For
    /// calls whose answer is the command's end, and that named no limit of their own.
    pub(super) may_be_task: bool,
    /// What becomes of a prompt.
    pub(super) on_prompt: OnPrompt,
}

/// What becomes of a prompt while a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum OnPrompt {
    /// Nobody looks for it.
    #[default]
    Ignore,
    /// The wait is over, with `WaitEnd::Prompt`.
    Tell,
    /// The person at the client is asked, and the wait goes on with their answer. Where that
    /// cannot be (no such client, a secret, no answer) it is over as with `Tell`, and
    /// `elicit::pending` says in words what the agent can do.
    Ask,
}

impl From<Option<Duration>> for Options {
    fn from(at_most: Option<Duration>) -> Self {
        Self {
            at_most,
            ..Self::default()
        }
    }
}

impl Options {
    /// Not at all.
    pub(super) fn at_once() -> Self {
        Self::from(Some(Duration::ZERO))
    }

    /// To the end, as a task where that is known.
    pub(super) fn to_end() -> Self {
        Self {
            may_be_task: true,
            ..Self::default()
        }
    }
}

/// Starts and waits for the end; dropped before that, it is cancelled (F7). When the wait is
/// over before the end, the id is given out with the answer.
pub(super) async fn run(
    call: Call<'_>,
    request: StartRequest,
    options: impl Into<Options>,
) -> Result<Waited, Interrupted> {
    run_until(call, request, &WaitFor::Exit, options).await
}

/// As [`run`], and over as soon as `until` is so.
pub(super) async fn run_until(
    call: Call<'_>,
    order: impl Into<Order>,
    until: &WaitFor,
    options: impl Into<Options>,
) -> Result<Waited, Interrupted> {
    let options = options.into();
    if let Some(execution) = call.link.resumes() {
        return go_on(call, (execution, until), options).await;
    }
    let bounds = Bounds::of(call, options);
    let order = order.into().waiting(options.at_most);
    let begun = consent::launch(call, order).await?;
    see_within(call, begun, until, (options, bounds)).await
}

/// Waits on what this call began; dropped before the end of the wait, it is cancelled (F7).
pub(super) async fn see(
    call: Call<'_>,
    begun: Begun,
    until: &WaitFor,
    options: Options,
) -> Result<Waited, Interrupted> {
    let bounds = Bounds::of(call, options);
    see_within(call, begun, until, (options, bounds)).await
}

async fn see_within(
    call: Call<'_>,
    begun: Begun,
    until: &WaitFor,
    (options, bounds): (Options, Bounds),
) -> Result<Waited, Interrupted> {
    let waiting = async {
        match options.on_prompt {
            OnPrompt::Ignore => Ok(begun.wait(until, bounds.left()).await?),
            OnPrompt::Tell | OnPrompt::Ask => {
                let id = begun.id().short();
                attended(call, (&id, until), options.on_prompt, bounds).await
            }
        }
    };
    let ended = call.link.attend(call, Of::Id(begun.id()), waiting).await;
    let mut waited = match ended {
        Ok(waited) => waited,
        // The client asks and comes back for it.
        Err(interrupted @ Interrupted::Asks(_)) => {
            call.give_out(begun);
            return Err(interrupted);
        }
        Err(interrupted @ (Interrupted::Failed(_) | Interrupted::Task(_))) => {
            return Err(interrupted);
        }
    };
    waited.info.born()?;
    if waited.why != WaitEnd::Exit {
        waited.info = call.give_out(begun);
    }
    bounds.over(waited, options)
}

/// Waits on what runs already; whatever becomes of the request, it goes on.
pub(super) async fn wait(
    call: Call<'_>,
    id: &str,
    until: &WaitFor,
    options: impl Into<Options>,
) -> Result<Waited, Interrupted> {
    let options = options.into();
    let bounds = Bounds::of(call, options);
    let on_prompt = after_answer(call, options.on_prompt).await?;
    let waiting = attended(call, (id, until), on_prompt, bounds);
    let waited = call.link.attend(call, Of::Name(id), waiting).await?;
    bounds.over(waited, options)
}

/// Waits on what an earlier request of this call started.
pub(super) async fn go_on(
    call: Call<'_>,
    (execution, until): (ExecutionId, &WaitFor),
    options: Options,
) -> Result<Waited, Interrupted> {
    let waited = wait(call, &execution.short(), until, options).await?;
    waited.info.born()?;
    Ok(waited)
}

/// Takes the answer a repeated call brought along. Where the person does not want to answer
/// they are not asked again.
async fn after_answer(call: Call<'_>, on_prompt: OnPrompt) -> Result<OnPrompt, Interrupted> {
    Ok(match elicit::resume(call).await? {
        Some(asked) if !elicit::goes_on(&asked) => OnPrompt::Tell,
        Some(_) | None => on_prompt,
    })
}

/// Waits, and has prompts answered meanwhile.
async fn attended(
    call: Call<'_>,
    (id, until): (&str, &WaitFor),
    on_prompt: OnPrompt,
    bounds: Bounds,
) -> Result<Waited, Interrupted> {
    loop {
        let waiting = call.engine.wait(call.caller, id, until, bounds.left());
        let waited = match on_prompt {
            OnPrompt::Ignore => return Ok(waiting.await?),
            OnPrompt::Tell | OnPrompt::Ask => tokio::select! {
                biased;
                waited = waiting => waited?,
                waited = call.engine.wait(call.caller, id, &WaitFor::Prompt, None) => waited?,
            },
        };
        if let (WaitEnd::Prompt(prompt), OnPrompt::Ask) = (&waited.why, on_prompt)
            && elicit::prompted(call, (waited.info.id, prompt), bounds.until).await?
        {
            continue;
        }
        return Ok(waited);
    }
}

/// How long one wait may take, and what follows when that time is over.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    at_most: Option<Duration>,
    /// The same as a point in time.
    until: Option<Instant>,
    /// Whether the call then becomes a task.
    then_task: bool,
}

impl Bounds {
    /// The shortest of what was asked for, the client's patience, and the time after which a
    /// call becomes a task.
    fn of(call: Call<'_>, options: Options) -> Self {
        let shortest = |a: Option<Duration>, b: Option<Duration>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let at_most = shortest(options.at_most, call.link.patience());
        let task_after = call.desk.options().task_after;
        let then_task = options.may_be_task
            && task_after.is_some_and(|after| at_most.is_none_or(|at_most| after < at_most))
            && call.link.knows_tasks();
        let at_most = if then_task { task_after } else { at_most };
        Self {
            at_most,
            until: at_most.and_then(|at_most| Instant::now().checked_add(at_most)),
            then_task,
        }
    }

    /// What is left of it.
    fn left(self) -> Option<Duration> {
        match self.until {
            Some(until) => Some(until.saturating_duration_since(Instant::now())),
            None => self.at_most,
        }
    }

    /// What the wait comes to.
    fn over(self, waited: Waited, options: Options) -> Result<Waited, Interrupted> {
        if !(self.then_task && waited.why == WaitEnd::AtMost) {
            return Ok(waited);
        }
        Err(Interrupted::Task(Box::new(Tasked {
            info: waited.info,
            asks: options.on_prompt == OnPrompt::Ask,
        })))
    }
}
