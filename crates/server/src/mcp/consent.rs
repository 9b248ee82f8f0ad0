//! Starts the command policy asks a person about (B3): asked at the client where it shows
//! forms, within the same call. The agent itself cannot answer.

use std::time::Duration;

use ostler_engine::{Begun, Error, StartRequest};
use tokio::time::Instant;

use super::context::Call;
use super::elicit;
use super::link::YIELD_MS;
use super::reply::Interrupted;

/// How a start reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// [`Engine::begin`](ostler_engine::Engine::begin).
    Begin,
    /// [`Engine::launch`](ostler_engine::Engine::launch).
    Launch,
}

/// As [`Engine::begin`](ostler_engine::Engine::begin), with a person's consent where it takes
/// one.
pub(super) async fn begin(call: Call<'_>, request: StartRequest) -> Result<Begun, Interrupted> {
    consented(call, request, Way::Begin).await
}

/// As [`Engine::launch`](ostler_engine::Engine::launch), with a person's consent where it takes
/// one.
pub(super) async fn launch(call: Call<'_>, request: StartRequest) -> Result<Begun, Interrupted> {
    consented(call, request, Way::Launch).await
}

async fn consented(
    call: Call<'_>,
    mut request: StartRequest,
    way: Way,
) -> Result<Begun, Interrupted> {
    if let Some(answered) = call.link.answers() {
        elicit::resume(call).await?;
        request.approval = Some(answered);
    }
    if !call.link.shows_forms() {
        return Ok(started(call, request, way).await?);
    }
    let interaction = match started(call, request.clone(), way).await {
        Err(Error::ApprovalRequired { interaction, .. }) => interaction,
        other => return Ok(other?),
    };
    let open = call.engine.interaction(call.caller, &interaction)?;
    let patience = call
        .link
        .patience()
        .map(|_| Duration::from_millis(YIELD_MS));
    let until = patience.and_then(|patience| Instant::now().checked_add(patience));
    elicit::ask(call, &open, until).await?;
    // A no is an answer, too: named, it is the reason of the refusal.
    request.approval = Some(interaction);
    Ok(started(call, request, way).await?)
}

async fn started(call: Call<'_>, request: StartRequest, way: Way) -> Result<Begun, Error> {
    match way {
        Way::Begin => call.engine.begin(call.caller, request).await,
        Way::Launch => call.engine.launch(call.caller, request).await,
    }
}
