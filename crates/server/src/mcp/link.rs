//! The line to the client while one call is under way: what it negotiated, and what it has
//! been told.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ostler_engine::{Begun, Info, QueueWait};
use ostler_model::ExecutionId;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio_util::task::TaskTracker;

use super::context::Call;
use super::elicit::{Reply, Ticket};
use super::progress::{Meter, Of};
use super::stdio::Attempt;

/// The longest a call takes without progress or tasks, in milliseconds (F4).
pub(super) const YIELD_MS: u64 = 45_000;

/// What one request's client understands, and what the request is about.
#[derive(Debug)]
pub(super) struct Link<'a> {
    context: &'a RequestContext<RoleServer>,
    errands: &'a TaskTracker,
    /// Where the client asked for progress.
    meter: Option<Meter>,
    purpose: Purpose,
    /// What this call began and its answer will name.
    named: Mutex<Vec<Begun>>,
    /// How long what this call started waited for its place.
    queued: Mutex<Option<QueueWait>>,
}

/// What a request is about.
#[derive(Debug)]
enum Purpose {
    /// To carry a call out.
    Call,
    /// To go on with a call that waits for the person's answer.
    Resume(Resumed),
    /// To render what a call came to: it waits for nothing.
    Collect(ExecutionId),
}

/// What a repeated call brought along.
#[derive(Debug)]
struct Resumed {
    execution: Option<ExecutionId>,
    interaction: String,
    /// Taken once.
    reply: Mutex<Option<Reply>>,
}

/// The request, and who runs what it leaves to be done.
type At<'a> = (&'a RequestContext<RoleServer>, &'a TaskTracker);

impl<'a> Link<'a> {
    /// For a call.
    pub(super) fn of(at: At<'a>) -> Self {
        Self::new(at, meter(at.0), Purpose::Call)
    }

    /// For a call repeated with a person's answer.
    pub(super) fn resuming(at: At<'a>, ticket: Ticket, reply: Reply) -> Self {
        let resumed = Resumed {
            execution: ticket.execution,
            interaction: ticket.interaction,
            reply: Mutex::new(Some(reply)),
        };
        Self::new(at, meter(at.0), Purpose::Resume(resumed))
    }

    /// For what a call that became a task came to.
    pub(super) const fn collecting(at: At<'a>, execution: ExecutionId) -> Self {
        Self::new(at, None, Purpose::Collect(execution))
    }

    const fn new((context, errands): At<'a>, meter: Option<Meter>, purpose: Purpose) -> Self {
        Self {
            context,
            errands,
            meter,
            purpose,
            named: Mutex::new(Vec::new()),
            queued: Mutex::new(None),
        }
    }

    /// The longest a call may take before it must answer; none: as long as it asked for (F4).
    pub(super) fn patience(&self) -> Option<Duration> {
        match self.purpose {
            Purpose::Collect(_) => Some(Duration::ZERO),
            Purpose::Call | Purpose::Resume(_) if self.meter.is_some() => None,
            Purpose::Call | Purpose::Resume(_) => Some(Duration::from_millis(YIELD_MS)),
        }
    }

    /// The execution this request goes on with instead of starting one.
    pub(super) const fn resumes(&self) -> Option<ExecutionId> {
        match &self.purpose {
            Purpose::Call => None,
            Purpose::Resume(resumed) => resumed.execution,
            Purpose::Collect(execution) => Some(*execution),
        }
    }

    /// The interaction this request brings a person's answer to, where it starts anew.
    pub(super) fn answers(&self) -> Option<String> {
        match &self.purpose {
            Purpose::Resume(resumed) => Some(resumed.interaction.clone()),
            Purpose::Call | Purpose::Collect(_) => None,
        }
    }

    /// The person's answer to this interaction, once.
    pub(super) fn take_reply(&self) -> Option<(String, Reply)> {
        match &self.purpose {
            Purpose::Resume(resumed) => {
                let mut reply = resumed.reply.lock().unwrap_or_else(PoisonError::into_inner);
                reply
                    .take()
                    .map(|reply| (resumed.interaction.clone(), reply))
            }
            Purpose::Call | Purpose::Collect(_) => None,
        }
    }

    /// Whether the request is of revision 2026-07-28 or later.
    pub(super) fn is_modern(&self) -> bool {
        let version = self.context.meta.protocol_version();
        version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
    }

    /// Whether the client knows tasks: it says so with every request.
    pub(super) fn knows_tasks(&self) -> bool {
        let is_call = match self.purpose {
            Purpose::Call | Purpose::Resume(_) => true,
            Purpose::Collect(_) => false,
        };
        is_call
            && self.is_modern()
            && self
                .context
                .client_capabilities()
                .is_some_and(|client| client.supports_tasks())
    }

    /// Whether the client shows forms to a person. One that says nothing about kinds of
    /// elicitation knows forms (2025-06-18).
    pub(super) fn shows_forms(&self) -> bool {
        let client = self.context.client_capabilities();
        client
            .and_then(|client| client.elicitation)
            .is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
    }

    /// The other end.
    pub(super) const fn peer(&self) -> &Peer<RoleServer> {
        &self.context.peer
    }

    /// Runs what this call leaves to be done, waited for before the client counts as served.
    pub(super) const fn errands(&self) -> &TaskTracker {
        self.errands
    }

    /// Where this request may be carried out again by the next daemon: what is known of
    /// earlier attempts.
    pub(super) fn attempt(&self) -> Option<&Attempt> {
        self.context.extensions.get::<Attempt>()
    }

    /// Waits, and meanwhile tells the client how the execution comes on, where it asked.
    pub(super) async fn attend<T>(
        &self,
        call: Call<'_>,
        of: Of<'_>,
        waiting: impl Future<Output = T>,
    ) -> T {
        let Some(meter) = &self.meter else {
            return waiting.await;
        };
        tokio::select! {
            biased;
            waited = waiting => waited,
            never = meter.tell(call, self.peer(), of) => match never {},
        }
    }

    /// The answer will name this: what it begun goes on once the answer is sent.
    pub(super) fn name(&self, begun: Begun) -> Info {
        let info = begun.info();
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.push(begun);
        info
    }

    /// The answer says how long what this call started waited for its place.
    pub(super) fn queued(&self, queued: Option<QueueWait>) {
        if queued.is_some() {
            *self.queued.lock().unwrap_or_else(PoisonError::into_inner) = queued;
        }
    }

    /// What the answer says of the wait for a place.
    pub(super) fn wait_for_place(&self) -> Option<QueueWait> {
        *self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the answer names.
    pub(super) fn into_named(self) -> Vec<Begun> {
        let named = self.named.into_inner();
        named.unwrap_or_else(PoisonError::into_inner)
    }
}

fn meter(context: &RequestContext<RoleServer>) -> Option<Meter> {
    context.meta.get_progress_token().map(Meter::new)
}
