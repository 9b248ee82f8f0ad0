//! The whole document.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::operations::{OperationSource, check_ids};
use super::problems::ProblemCodes;
use super::routes::{Route, routes};
use super::rust_items::RustItems;
use super::schemas::{Direction, Schemas};

/// The document, from the source and the version of the workspace.
pub(super) fn document(items: &RustItems, version: &str) -> Result<Value> {
    let routes = routes(items)?;
    let codes = ProblemCodes::read(items)?;
    let mut source = OperationSource {
        items,
        codes: &codes,
        schemas: Schemas::new(items),
        problems: BTreeMap::new(),
    };
    for route in &routes {
        source.add_request(route).with_context(|| place(route))?;
    }
    let mut paths = Map::new();
    for route in &routes {
        let operation = source.operation(route).with_context(|| place(route))?;
        let methods = paths
            .entry(route.path.as_str())
            .or_insert_with(|| json!({}));
        methods[&route.method] = operation;
    }
    let ids = paths.values().filter_map(Value::as_object);
    let ids = ids.flat_map(Map::values);
    check_ids(ids.filter_map(|operation| operation["operationId"].as_str()))?;
    let OperationSource {
        mut schemas,
        problems,
        ..
    } = source;
    schemas.reference("Problem", Direction::Response)?;
    schemas.restrict("CodeName", json!({"type": "string", "enum": codes.names()}));
    Ok(json!({
        "openapi": "3.1.0",
        "info": info(version),
        "servers": [{"url": "..", "description": "The daemon that serves this document"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.into_components(),
            "responses": problems,
            "parameters": parameters(),
            "headers": headers(),
            "securitySchemes": {"bearer": bearer()},
        },
    }))
}

fn place(route: &Route) -> String {
    format!(
        "{} {} ({}::{})",
        route.method, route.path, route.module, route.handler
    )
}

fn info(version: &str) -> Value {
    json!({
        "title": "Ostler",
        "version": version,
        "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        "description": "Runs, supervises, isolates and records commands. Requests refuse unknown \
            fields; responses may gain fields. Durations in requests are milliseconds where the \
            name ends with `_ms`. Errors are problem documents (RFC 9457): `code` is stable, \
            `message` is for people. An id that is unknown and one of somebody else get the same \
            answer.",
    })
}

fn bearer() -> Value {
    json!({
        "type": "http", "scheme": "bearer",
        "description": "A token of `ostler token new`. Scopes: `sessions:all`: sees every session \
            of its principal; `daemon:stop`: may shut the daemon down; `project:read`: may \
            look, and start templates that only read; `project:write`: may change, which a token \
            with neither of the two may, too; `project:read=PROJECT` and `project:write=PROJECT`: \
            the same in one project, and nothing outside it. The daemon's Unix socket needs no \
            token: the kernel names the user. A daemon that serves the loopback without tokens \
            needs none either. Instead of it, the page sends the halves of a token that \
            `POST /api/v1/web/session` gave it: a cookie, and the header `Ostler-Page-Key` (a \
            WebSocket: the subprotocol `ostler-page-key.KEY` beside `ostler`).",
    })
}

fn parameters() -> Value {
    json!({
        "Session": {
            "name": "Ostler-Session", "in": "header", "required": false,
            "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
            "description": "The session of the request: what it starts belongs to it, and it sees \
                what belongs to it. Without it, the token's own.",
        },
        "Project": {
            "name": "Ostler-Project", "in": "header", "required": false,
            "schema": {"type": "string", "minLength": 1, "maxLength": 1024},
            "description": "The project of what the request starts, one of those that the scopes \
                of the token name; with any other token it is refused.",
        },
        "RequestId": {
            "name": "X-Request-Id", "in": "header", "required": false,
            "schema": {"type": "string"},
            "description": "An id for the request, at most 128 visible ASCII characters; another \
                one is replaced.",
        },
        "LastEventId": {
            "name": "Last-Event-ID", "in": "header", "required": false,
            "schema": {"type": "string"},
            "description": "The id of the last event that the client has: the stream goes on \
                after it.",
        },
    })
}

fn headers() -> Value {
    json!({
        "RequestId": {
            "required": true, "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
            "description": "The id of the request; the log has it, too.",
        },
        "X-Total-Count": {
            "required": true, "schema": {"type": "integer", "minimum": 0},
            "description": "How many match, on this page or not.",
        },
        "Link": {
            "schema": {"type": "string"},
            "description": "The next page, as `<?…>; rel=\"next\"` (RFC 8288).",
        },
        "Ostler-Lost-Bytes": {
            "required": true, "schema": {"type": "integer", "minimum": 0},
            "description": "Bytes of output that were lost, for example to a full disk.",
        },
        "Ostler-Discarded-Changes": {
            "schema": {"const": "true"},
            "description": "Changes in the overlay of the workspace that were neither committed \
                nor discarded were discarded with it; absent where there were none.",
        },
        "Set-Cookie": {
            "schema": {"type": "string"},
            "description": "The cookie of the page, or its deletion; none where no token is \
                needed.",
        },
        "WWW-Authenticate": {
            "schema": {"type": "string"}, "description": "The challenge (RFC 6750).",
        },
        "Retry-After": {
            "schema": {"type": "integer", "minimum": 0},
            "description": "Seconds after which the request may succeed.",
        },
    })
}
