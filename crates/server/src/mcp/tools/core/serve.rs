//! Commands that `exec` runs as services (E1, E2): asked for, or recognised.

use ostler_engine::{ServiceRequest, StartRequest, WaitFor};
use ostler_journal::Pattern;

use super::exec::{self, watched};
use super::select::Selection;
use super::shown;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::Answer;
use crate::mcp::tools::service::{Launched, Way, failed_to_start, launch, one_shot, recognised};
use crate::mcp::waiting::{self, Options};
use crate::params::Arguments;

/// What runs a recognised command as a plain one.
const OTHERWISE: &str = "options {\"mode\":\"oneshot\"}";

/// What a call says about services.
#[derive(Debug)]
pub(super) struct Wish {
    mode: Option<String>,
    /// Whether it says what it waits for.
    pub(super) says_until: bool,
    /// Whether it says how long.
    says_wait: bool,
}

impl Wish {
    /// Before anything of it is taken off the arguments.
    pub(super) fn read(arguments: &mut Arguments) -> Self {
        let says = ["until", "pattern", "idle_ms"];
        Self {
            mode: arguments.text("mode"),
            says_until: says.into_iter().any(|name| arguments.is_given(name)),
            says_wait: arguments.is_given("wait_ms"),
        }
    }

    /// How the command runs as a service; none where it is none.
    pub(super) fn way(
        &self,
        call: Call<'_>,
        request: &StartRequest,
        reason: &WaitFor,
    ) -> Result<Option<Way>, Failure> {
        let for_ready = matches!(reason, WaitFor::Ready);
        match self.mode.as_deref() {
            Some("oneshot") if for_ready => Err(Failure::value(
                "until 'ready' does not go with mode 'oneshot'; allowed: mode 'service'",
            )),
            Some("oneshot") => Ok(None),
            Some(_) => asked(request).map(Some),
            None if for_ready => asked(request).map(Some),
            None if self.says_until => Ok(None),
            None => Ok(recognised(call, request, OTHERWISE)),
        }
    }
}

/// A service that was asked for never ends by itself.
fn asked(request: &StartRequest) -> Result<Way, Failure> {
    if request.timeout.is_none() {
        return Ok(Way::Asked);
    }
    let failure = Failure::value("parameter 'timeout' does not go with a service, which stays");
    Err(failure.with_hint("wait_ms bounds the wait; stop ends it"))
}

/// Starts a service and answers when it is ready, or what else was waited for.
pub(super) async fn answer(
    call: Call<'_>,
    (request, way): (ServiceRequest, &Way),
    (wish, reason, options): (&Wish, &WaitFor, Options),
    (notify, selection): (Option<Pattern>, &Selection),
) -> Answer {
    if wish.says_until && !matches!(reason, WaitFor::Ready) {
        let waited = Box::pin(waiting::run_until(call, request, reason, options)).await?;
        return Ok(exec::told(call, &waited, notify, selection).await);
    }
    // A server is waited for as long as it has to become ready, not as any command is.
    let options = Options {
        at_most: options.at_most.filter(|_| wish.says_wait),
        may_be_task: false,
        ..options
    };
    let launched = match launch(call, request, options).await {
        Ok(launched) => launched,
        Err(interrupted) => return failed_to_start(interrupted),
    };
    if one_shot(call, &launched.waited) {
        return Ok(exec::told(call, &launched.waited, notify, selection).await);
    }
    Ok(told(call, launched, way, notify).await)
}

async fn told(call: Call<'_>, launched: Launched, way: &Way, notify: Option<Pattern>) -> Reply {
    let watch = notify.and_then(|pattern| watched(call, &launched.waited, pattern));
    let fields = shown::fields(&launched.waited);
    let mut reply = way.reply(call, launched, fields).await;
    if let (Some(problem), Some(text)) = (watch, reply.blocks.first_mut()) {
        text.push_str(&format!("\n[note: {problem}]"));
    }
    reply
}
