//! The client's side of one call: what it negotiated, its progress reports, and the executions that
//! its response will contain.

use std::time::Duration;

use ostler_engine::{ExecutionInfo, QueueWait, StartGuard};
use ostler_model::ExecutionId;
use parking_lot::Mutex;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio_util::task::TaskTracker;

use super::connection_log::RequestAttempt;
use super::form::FormReply;
use super::planned_start::PlannedStart;
use super::progress::ProgressReporter;
use super::request_state::ResumeState;

/// The longest a call takes without progress or tasks, in milliseconds.
pub(super) const MAX_WAIT_MS: u64 = 45_000;

/// The capabilities of the client of one request, and the purpose of the request.
#[derive(Debug)]
pub(super) struct CallContext<'a> {
    context: &'a RequestContext<RoleServer>,
    background: &'a TaskTracker,
    /// Set when the client requested progress.
    reporter: Option<ProgressReporter>,
    purpose: RequestPurpose,
    /// Executions this call started, which its answer will name.
    published: Mutex<Vec<StartGuard>>,
    /// How long this call's start waited for a slot within the quota.
    queue_wait: Mutex<Option<QueueWait>>,
    /// Why the wait for what this call started failed.
    wait_problem: Mutex<Option<String>>,
    /// Over HTTP, the id of what the call starts.
    planned_start: Option<PlannedStart>,
}

/// What a request is for.
#[derive(Debug)]
enum RequestPurpose {
    /// Carries a call out.
    Call,
    /// Resumes a call that waited for a person's answer.
    Resume(ResumedCall),
    /// Renders the result of a task; it waits for nothing.
    RenderTask(ExecutionId),
}

/// What a repeated call brings along.
#[derive(Debug)]
struct ResumedCall {
    execution: Option<ExecutionId>,
    interaction: String,
    /// The person's answer; taken once.
    reply: Mutex<Option<FormReply>>,
}

/// The request, and the tracker of tasks that outlive it.
#[derive(Clone, Copy)]
pub(super) struct RequestScope<'a> {
    pub(super) context: &'a RequestContext<RoleServer>,
    pub(super) background: &'a TaskTracker,
}

impl<'a> CallContext<'a> {
    /// For a new call.
    pub(super) fn for_call(scope: RequestScope<'a>) -> Self {
        Self::new(
            scope,
            progress_reporter(scope.context),
            RequestPurpose::Call,
        )
    }

    /// For a call repeated with a person's answer.
    pub(super) fn for_resumed_call(
        scope: RequestScope<'a>,
        resume_state: ResumeState,
        reply: FormReply,
    ) -> Self {
        let call = ResumedCall {
            execution: resume_state.execution,
            interaction: resume_state.interaction,
            reply: Mutex::new(Some(reply)),
        };
        Self::new(
            scope,
            progress_reporter(scope.context),
            RequestPurpose::Resume(call),
        )
    }

    /// For the result of a call that became a task.
    pub(super) const fn for_task_result(scope: RequestScope<'a>, execution: ExecutionId) -> Self {
        Self::new(scope, None, RequestPurpose::RenderTask(execution))
    }

    const fn new(
        scope: RequestScope<'a>,
        reporter: Option<ProgressReporter>,
        purpose: RequestPurpose,
    ) -> Self {
        Self {
            context: scope.context,
            background: scope.background,
            reporter,
            purpose,
            published: Mutex::new(Vec::new()),
            queue_wait: Mutex::new(None),
            wait_problem: Mutex::new(None),
            planned_start: None,
        }
    }

    /// The id of what it starts is chosen before: here, unless the response stream already has it.
    pub(super) fn with_planned_start(mut self) -> Self {
        let planned = self.context.extensions.get::<PlannedStart>().cloned();
        self.planned_start = Some(planned.unwrap_or_else(PlannedStart::new));
        self
    }

    /// The id of what the call starts, where it is chosen before.
    pub(super) const fn planned_start(&self) -> Option<&PlannedStart> {
        self.planned_start.as_ref()
    }

    /// The longest a call may take before it must answer; none means as long as it requested.
    pub(super) fn max_wait(&self) -> Option<Duration> {
        match self.purpose {
            RequestPurpose::RenderTask(_) => Some(Duration::ZERO),
            RequestPurpose::Call | RequestPurpose::Resume(_) if self.reporter.is_some() => None,
            RequestPurpose::Call | RequestPurpose::Resume(_) => {
                Some(Duration::from_millis(MAX_WAIT_MS))
            }
        }
    }

    /// The execution this request resumes instead of starting one.
    pub(super) const fn resumed_execution(&self) -> Option<ExecutionId> {
        match &self.purpose {
            RequestPurpose::Call => None,
            RequestPurpose::Resume(resumed) => resumed.execution,
            RequestPurpose::RenderTask(execution) => Some(*execution),
        }
    }

    /// The interaction that this request answers, if it repeats a call.
    pub(super) fn answered_interaction(&self) -> Option<String> {
        match &self.purpose {
            RequestPurpose::Resume(resumed) => Some(resumed.interaction.clone()),
            RequestPurpose::Call | RequestPurpose::RenderTask(_) => None,
        }
    }

    /// The person's answer to this interaction; taken once.
    pub(super) fn take_reply(&self) -> Option<(String, FormReply)> {
        match &self.purpose {
            RequestPurpose::Resume(resumed) => {
                let mut reply = resumed.reply.lock();
                reply
                    .take()
                    .map(|reply| (resumed.interaction.clone(), reply))
            }
            RequestPurpose::Call | RequestPurpose::RenderTask(_) => None,
        }
    }

    /// Whether the request is of revision 2026-07-28 or later.
    pub(super) fn is_modern(&self) -> bool {
        let version = self.context.meta.protocol_version();
        version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
    }

    /// Whether the client supports tasks, which it declares with every request.
    pub(super) fn supports_tasks(&self) -> bool {
        let is_call = match self.purpose {
            RequestPurpose::Call | RequestPurpose::Resume(_) => true,
            RequestPurpose::RenderTask(_) => false,
        };
        is_call
            && self.is_modern()
            && self
                .context
                .client_capabilities()
                .is_some_and(|client| client.supports_tasks())
    }

    /// Whether the client shows forms to a person. A client that names no kinds of elicitation
    /// supports forms (MCP revision 2025-06-18).
    pub(super) fn supports_forms(&self) -> bool {
        let client = self.context.client_capabilities();
        client
            .and_then(|client| client.elicitation)
            .is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
    }

    /// The client's peer handle.
    pub(super) const fn peer(&self) -> &Peer<RoleServer> {
        &self.context.peer
    }

    /// The tracker of background work of this call; awaited before the client counts as served.
    pub(super) const fn background(&self) -> &TaskTracker {
        self.background
    }

    /// The state of earlier attempts, where the next daemon may repeat this request.
    pub(super) fn attempt(&self) -> Option<&RequestAttempt> {
        self.context.extensions.get::<RequestAttempt>()
    }

    /// Reports progress; none unless the client requested it.
    pub(super) const fn progress_reporter(&self) -> Option<&ProgressReporter> {
        self.reporter.as_ref()
    }

    /// Registers an execution the answer will name: it continues once the answer is sent.
    pub(super) fn register_start(&self, start_guard: StartGuard) -> ExecutionInfo {
        let info = start_guard.info();
        let mut named = self.published.lock();
        named.push(start_guard);
        info
    }

    /// Records how long this call's start waited for a slot within the quota.
    pub(super) fn set_queue_wait(&self, queued: Option<QueueWait>) {
        if queued.is_some() {
            *self.queue_wait.lock() = queued;
        }
    }

    /// How long this call's start waited for a slot within the quota.
    pub(super) fn queue_wait(&self) -> Option<QueueWait> {
        *self.queue_wait.lock()
    }

    /// Records why the wait for what this call started failed.
    pub(super) fn set_wait_problem(&self, problem: String) {
        *self.wait_problem.lock() = Some(problem);
    }

    /// Why the wait for what this call started failed; taken once.
    pub(super) fn take_wait_problem(&self) -> Option<String> {
        self.wait_problem.lock().take()
    }

    /// The executions that the answer names.
    pub(super) fn into_start_guards(self) -> Vec<StartGuard> {
        self.published.into_inner()
    }
}

fn progress_reporter(context: &RequestContext<RoleServer>) -> Option<ProgressReporter> {
    context.meta.get_progress_token().map(ProgressReporter::new)
}
