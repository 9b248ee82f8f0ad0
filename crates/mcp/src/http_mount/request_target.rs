//! Derives the client a request acts for from its path and headers: its session and its tools.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use ostler_interface::http::{
    HttpIdentity, HttpProblem, identity, parse_session_name, requested_session,
};
use ostler_model::{ByteString, Caller, ErrorCode, SessionName};

use super::session_prefix::RESERVED_PREFIXES;
use super::session_table::{McpSession, SessionKey, UsageKey};
use super::sessions::{AnonymousInitialize, HttpSessions, SessionUse};
use crate::client::{ClientContext, ConnectedClient};
use crate::profile::ToolSet;
use crate::session_hooks::MCP_SESSION_HEADER;

const VERSION_HEADER: &str = "mcp-protocol-version";
/// The first revision without MCP sessions; revisions are dates, so they compare as text.
const SESSIONLESS_REVISION: &str = "2026-07-28";

/// The parameters of a path: `/mcp/s/{name}/p/{profile}`.
pub(super) type PathParams = HashMap<String, String>;

/// What a request is for.
#[derive(Debug)]
pub(super) enum RequestTarget {
    /// A request to MCP, with the sessions it uses meanwhile.
    Mcp(SessionUse),
    /// It ends a session.
    EndSession(SessionKey),
    /// It ends what this caller sees of a session.
    EndSessionPart(Box<Caller>),
}

/// The session context in a request, before its sessions are looked up.
#[derive(Debug)]
struct RequestedContext {
    name: Option<SessionName>,
    client_context: ClientContext,
}

/// Finds out which client a request acts for, and adds the [`ConnectedClient`] to its extensions.
///
/// # Errors
/// An invalid session name or profile, an MCP session that is not the caller's, or no capacity for
/// another session.
pub(super) fn identify_request(
    parts: &mut Parts,
    params: &PathParams,
    sessions: &HttpSessions,
    client_context: &ClientContext,
) -> Result<RequestTarget, HttpProblem> {
    let requested = RequestedContext {
        name: named_session(params, &parts.headers)?,
        client_context: path_context(params, client_context)?,
    };
    let identity = identity(parts)?;
    if is_sessionless_revision(&parts.headers) {
        // This revision has no such header; it is ignored.
        parts.headers.remove(MCP_SESSION_HEADER);
    }
    match mcp_session(&parts.headers)? {
        Some(id) => resume_session(parts, requested, &identity, id, sessions),
        None => begin_session(parts, requested, &identity, sessions),
    }
}

/// A request within an MCP session of the same principal and the same session name.
fn resume_session(
    parts: &mut Parts,
    requested: RequestedContext,
    identity: &HttpIdentity,
    id: String,
    sessions: &HttpSessions,
) -> Result<RequestTarget, HttpProblem> {
    let session = sessions.mcp_session(&id).filter(|session| {
        session.key.principal == identity.principal && session.access == identity.access
    });
    let session = session.ok_or_else(no_session)?;
    let McpSession { key, own, .. } = session;
    if requested
        .name
        .is_some_and(|name| own || name != key.session)
    {
        let message = "this MCP session was begun under another session name";
        return Err(HttpProblem::value(message).with_status(409));
    }
    let mut keys = vec![UsageKey::McpSession(id)];
    if !own {
        keys.push(UsageKey::Session(key.clone()));
    }
    insert_client(
        parts,
        identity,
        identity.caller(key.session),
        requested.client_context,
    );
    Ok(RequestTarget::Mcp(sessions.begin_use(keys)))
}

/// A request outside MCP sessions: of a newer revision, `initialize`, or the end of a named
/// session.
fn begin_session(
    parts: &mut Parts,
    requested: RequestedContext,
    identity: &HttpIdentity,
    sessions: &HttpSessions,
) -> Result<RequestTarget, HttpProblem> {
    let session = requested.name.clone();
    if session.is_none() {
        parts.extensions.insert(AnonymousInitialize);
    }
    let is_named = session.is_some();
    let session = session.unwrap_or_else(|| identity.agent_session());
    let key = SessionKey {
        principal: identity.principal.clone(),
        session: session.clone(),
    };
    if is_named && parts.method == Method::DELETE {
        identity.access.check_write("the end of a session")?;
        let caller = identity.access.writer(identity.caller(session));
        return Ok(if caller.projects.reachable.is_all() {
            RequestTarget::EndSession(key)
        } else {
            RequestTarget::EndSessionPart(Box::new(caller))
        });
    }
    let is_initialize = parts.method == Method::POST && !is_sessionless_revision(&parts.headers);
    sessions.admit(&key, is_initialize)?;
    let caller = if is_named {
        identity.caller(session)
    } else {
        identity.agent_caller()
    };
    insert_client(parts, identity, caller, requested.client_context);
    Ok(RequestTarget::Mcp(
        sessions.begin_use(vec![UsageKey::Session(key)]),
    ))
}

fn insert_client(
    parts: &mut Parts,
    identity: &HttpIdentity,
    caller: Caller,
    client_context: ClientContext,
) {
    parts
        .extensions
        .insert(Arc::new(connected_client(identity, caller, client_context)));
}

/// The client of an identity. The commands of one that is limited to a project which is a directory
/// start there.
pub(super) fn connected_client(
    identity: &HttpIdentity,
    caller: Caller,
    mut context: ClientContext,
) -> ConnectedClient {
    let limited = !caller.projects.visible.is_all();
    let project = caller.owner.project.as_deref().filter(|_| limited);
    if let Some(directory) = project.filter(|project| project.starts_with('/')) {
        context.cwd = ByteString::from(directory);
    }
    ConnectedClient {
        caller,
        access: identity.access.clone(),
        context,
    }
}

/// The session a request names: in its path, in a header, or the same one in both.
pub(super) fn named_session(
    params: &PathParams,
    headers: &HeaderMap,
) -> Result<Option<SessionName>, HttpProblem> {
    let in_header = requested_session(headers)?;
    let in_path = match params.get("name") {
        Some(name) => Some(parse_session_name(name)?),
        None => None,
    };
    let name = match (in_path, in_header) {
        (Some(path), Some(header)) if path != header => {
            let message = format!("the path names session '{path}', the header '{header}'");
            return Err(HttpProblem::value(message).with_status(409));
        }
        (path, header) => path.or(header),
    };
    if let Some(name) = &name
        && RESERVED_PREFIXES
            .iter()
            .any(|prefix| name.0.starts_with(prefix))
    {
        let message = format!("'{name}' cannot name a session");
        let hint = format!("names must not begin with {}", RESERVED_PREFIXES.join(", "));
        return Err(HttpProblem::value(message).with_hint(hint));
    }
    Ok(name)
}

/// The client context: where commands start, and the tools of the path.
pub(super) fn path_context(
    params: &PathParams,
    client_context: &ClientContext,
) -> Result<ClientContext, HttpProblem> {
    let mut client_context = client_context.clone();
    if let Some(profile) = params.get("profile") {
        let tools = profile.parse::<ToolSet>();
        client_context.tools =
            tools.map_err(|error| HttpProblem::value(error.to_string()).with_status(404))?;
    }
    Ok(client_context)
}

fn mcp_session(headers: &HeaderMap) -> Result<Option<String>, HttpProblem> {
    let mut values = headers.get_all(MCP_SESSION_HEADER).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(id), None) => {
            let id = id.to_str().map_err(|_| no_session())?;
            Ok(Some(id.to_owned()))
        }
        (Some(_), Some(_)) => Err(no_session()),
    }
}

fn is_sessionless_revision(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION_HEADER);
    version.is_some_and(|version| version.as_bytes() >= SESSIONLESS_REVISION.as_bytes())
}

/// The problem for unknown and foreign sessions alike.
pub(super) fn no_session() -> HttpProblem {
    let message = "there is no such MCP session, or it is not yours";
    HttpProblem::new(ErrorCode::SessionNotFound, message, None)
        .with_status(404)
        .with_hint("begin another with initialize")
}
