//! From path and headers to the client a request speaks for: its session and its tools (D3, F2).

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use ostler_model::{Caller, ErrorCode, SessionName};

use super::auth::{Identity, SHARED_SESSION};
use super::sessions::{Sessions, Stay, Unnamed};
use super::table::{Key, Place, Talk};
use crate::mcp::{Client, FrontContext, ToolSet};
use crate::rest::{SESSION_HEADER, session_name};
use crate::wire::Problem;

/// Names the MCP session of a request of the handshake era.
const MCP_SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
/// The first revision without MCP sessions; revisions are dates, so they compare as text.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// Sessions of our own making begin like this.
const RESERVED: [&str; 3] = ["front-", "mcp-", "sse-"];

/// What a path says: `/mcp/s/{name}/p/{profile}`.
pub(super) type Words = HashMap<String, String>;

/// A request, understood.
#[derive(Debug)]
pub(super) enum Visit {
    /// It is for MCP, and uses these sessions meanwhile.
    Served(Stay),
    /// It ends a session.
    Ends(Key),
}

/// What a request says about itself, before its sessions are looked up.
#[derive(Debug)]
struct Said {
    name: Option<SessionName>,
    front: FrontContext,
}

/// Finds out whom a request speaks for, and puts the [`Client`] into its extensions.
///
/// # Errors
/// A session name or profile that is none, an MCP session that is not the caller's, or no
/// room for another session.
pub(super) fn visit(
    parts: &mut Parts,
    words: &Words,
    sessions: &Sessions,
    front: &FrontContext,
) -> Result<Visit, Problem> {
    let said = Said {
        name: named(words, &parts.headers)?,
        front: fronted(words, front)?,
    };
    let identity = identity(parts)?;
    if is_modern(&parts.headers) {
        // This revision has no such header; whoever sends it gets nothing for it.
        parts.headers.remove(MCP_SESSION_HEADER);
    }
    match mcp_session(&parts.headers)? {
        Some(id) => resume(parts, said, &identity, (id, sessions)),
        None => begin(parts, said, &identity, sessions),
    }
}

/// A request within an MCP session: that of the same principal, and under the same name.
fn resume(
    parts: &mut Parts,
    said: Said,
    identity: &Identity,
    (id, sessions): (String, &Sessions),
) -> Result<Visit, Problem> {
    let talk = sessions
        .talk(&id)
        .filter(|talk| talk.key.principal == identity.principal);
    let talk = talk.ok_or_else(no_session)?;
    let Talk { key, own, .. } = talk;
    if said.name.is_some_and(|name| own || name != key.session) {
        let message = "this MCP session was begun under another session name";
        return Err(Problem::value(message).with_status(409));
    }
    let mut places = vec![Place::Talk(id)];
    if !own {
        places.push(Place::Session(key.clone()));
    }
    introduce(parts, identity.caller(key.session), said.front);
    Ok(Visit::Served(sessions.enter(places)))
}

/// A request outside MCP sessions: of the newer revisions, or `initialize`, or the end of a
/// named session.
fn begin(
    parts: &mut Parts,
    said: Said,
    identity: &Identity,
    sessions: &Sessions,
) -> Result<Visit, Problem> {
    let session = said.name.clone();
    if session.is_none() {
        parts.extensions.insert(Unnamed);
    }
    let is_named = session.is_some();
    let session = session.unwrap_or_else(|| SessionName(SHARED_SESSION.to_owned()));
    let key = Key {
        principal: identity.principal.clone(),
        session: session.clone(),
    };
    if is_named && parts.method == Method::DELETE {
        return Ok(Visit::Ends(key));
    }
    let begins = parts.method == Method::POST && !is_modern(&parts.headers);
    sessions.admit(&key, begins)?;
    let caller = if is_named {
        identity.caller(session)
    } else {
        identity.shared_caller()
    };
    introduce(parts, caller, said.front);
    Ok(Visit::Served(sessions.enter(vec![Place::Session(key)])))
}

fn introduce(parts: &mut Parts, caller: Caller, front: FrontContext) {
    parts.extensions.insert(Arc::new(Client { caller, front }));
}

/// Who is asking, as found out at the door.
pub(super) fn identity(parts: &Parts) -> Result<Identity, Problem> {
    let found = parts.extensions.get::<Identity>().cloned();
    let nobody = || Problem::new(ErrorCode::Permission, "the request has no identity", None);
    found.ok_or_else(nobody)
}

/// The session a request names: in its path, in a header, or in both alike.
pub(super) fn named(words: &Words, headers: &HeaderMap) -> Result<Option<SessionName>, Problem> {
    let in_header = match headers.get(SESSION_HEADER) {
        Some(name) => Some(session_name(name.to_str().unwrap_or_default())?),
        None => None,
    };
    let in_path = match words.get("name") {
        Some(name) => Some(session_name(name)?),
        None => None,
    };
    let name = match (in_path, in_header) {
        (Some(path), Some(header)) if path != header => {
            let message = format!("the path names session '{path}', the header '{header}'");
            return Err(Problem::value(message).with_status(409));
        }
        (path, header) => path.or(header),
    };
    if let Some(name) = &name
        && RESERVED.iter().any(|prefix| name.0.starts_with(prefix))
    {
        let message = format!("'{name}' cannot name a session");
        let hint = format!("names must not begin with {}", RESERVED.join(", "));
        return Err(Problem::value(message).with_hint(hint));
    }
    Ok(name)
}

/// Where commands start, and the tools of the path.
pub(super) fn fronted(words: &Words, front: &FrontContext) -> Result<FrontContext, Problem> {
    let mut front = front.clone();
    if let Some(profile) = words.get("profile") {
        let tools = profile.parse::<ToolSet>();
        front.tools = tools.map_err(|error| Problem::value(error.to_string()).with_status(404))?;
    }
    Ok(front)
}

fn mcp_session(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all(MCP_SESSION_HEADER).iter();
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(id), None) => {
            let id = id.to_str().map_err(|_| no_session())?;
            Ok(Some(id.to_owned()))
        }
        (Some(_), Some(_)) => Err(no_session()),
    }
}

fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION_HEADER);
    version.is_some_and(|version| version.as_bytes() >= WITHOUT_SESSIONS.as_bytes())
}

/// Unknown and foreign alike.
pub(super) fn no_session() -> Problem {
    let message = "there is no such MCP session, or it is not yours";
    Problem::new(ErrorCode::SessionNotFound, message, None)
        .with_status(404)
        .with_hint("begin another with initialize")
}
