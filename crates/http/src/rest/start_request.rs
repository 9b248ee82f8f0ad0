//! The request to the engine that the body of a start describes.

use ostler_api::{StartBody, StdinBody};
use ostler_engine::{ClientKind, StartRequest, StdinRequest};
use ostler_model::Lifetime;

/// Converts a start to the engine's request.
pub(super) fn start_request(body: StartBody) -> StartRequest {
    let mut request = StartRequest::new(body.command, body.cwd);
    request.id = body.id;
    request.stdin = match body.stdin {
        StdinBody::Default => StdinRequest::Default,
        StdinBody::Empty => StdinRequest::Empty,
        StdinBody::Given(bytes) => StdinRequest::Bytes(bytes.into_bytes()),
        StdinBody::Open => StdinRequest::Open,
    };
    request.base_env = body.base_env;
    request.options = body.options;
    if let Some(template) = body.template {
        request = request.with_template(*template);
    }
    request.context = body.context;
    request.lifetime = body.restart.map(Lifetime::service);
    request.lossless_reader = body.lossless_reader;
    request.client_kind = if body.cli {
        ClientKind::Cli
    } else {
        ClientKind::Rest
    };
    request
}
