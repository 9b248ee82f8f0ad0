//! The problem documents that a route can answer with.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use syn::{Expr, Lit};

use super::routes::Route;
use super::rust_items::RustItems;

/// The file and the constant with the table of codes.
const TABLE: (&str, &str) = ("crates/model/src/error_code.rs", "ERROR_CODES");

/// `(status, code)` of what every route answers: credentials that are missing or not sufficient, a
/// wrong host or origin, a value that is not allowed, too many requests, a daemon that shuts down,
/// and tokens that cannot be read.
const OF_EVERY_ROUTE: &[(u16, &str)] = &[
    (401, "permission_error"),
    (403, "permission_error"),
    (403, "security_error"),
    (422, "value_error"),
    (429, "quota_exceeded"),
    (503, "initialization_error"),
    (507, "storage_error"),
];
/// The only refusal of a route that answers everybody.
const FOREIGN_PAGE: (u16, &str) = (403, "security_error");
/// Of what signs a page in or out.
const OF_SIGN_INS: &[(u16, &str)] = &[
    (408, "value_error"),
    (413, "value_error"),
    (422, "value_error"),
    (503, "initialization_error"),
    (507, "storage_error"),
];
/// Of what signs a page in, too: secrets that are not valid, and too many of them.
const OF_SECRETS: &[(u16, &str)] = &[(401, "permission_error"), (429, "quota_exceeded")];
/// Of routes with a body: one that ends early, and one that is too large.
const OF_BODIES: &[(u16, &str)] = &[(400, "value_error"), (413, "value_error")];
/// Of routes that only a WebSocket can use.
const OF_WEBSOCKETS: &[(u16, &str)] = &[(426, "value_error")];

/// Of what starts a command.
const STARTS: &[&str] = &[
    "command_execution_error",
    "process_control_error",
    "process_not_found",
];
/// Of what starts a command again, or types one, which may have happened already.
const RETRIES: &[&str] = &["process_timeout"];
/// Of what acts on a command that runs or has ended.
const CONTROLS: &[&str] = &["process_control_error"];
/// Of what reads output.
const READS: &[&str] = &["output_retrieval_error"];
/// Of what names an execution elsewhere than in the path.
const EXECUTIONS: &[&str] = &["process_not_found"];
const CLEANS: &[&str] = &["process_clean_error"];
const CLEARS: &[&str] = &["output_clear_error"];
const QUESTIONS: &[&str] = &["interaction_error", "process_control_error"];
const TEMPLATES: &[&str] = &["template_error", "internal_error"];
const HISTORY: &[&str] = &["internal_error"];

/// The codes of a handler besides those of every route.
fn codes(module: &str, handler: &str) -> Vec<&'static str> {
    let lists: &[&[&'static str]] = match (module, handler) {
        ("executions", "start") | ("shell", "start") => &[STARTS],
        ("executions", "rerun") => &[STARTS, CONTROLS],
        ("executions", "wait" | "stop" | "pause" | "resume" | "signal" | "input") => &[CONTROLS],
        ("executions", "remove") | ("processes", "clean" | "clean_all" | "clean_selected") => {
            &[CLEANS]
        }
        ("processes", "stop") | ("tasks", "cancel" | "input") => &[CONTROLS],
        ("output", "clear") => &[CLEARS],
        (
            "audit" | "output" | "output_lines" | "raw" | "export" | "report" | "processes"
            | "usage",
            _,
        )
        | ("task_stream", _)
        | ("terminal", "screen" | "output") => &[READS],
        ("events", _) => &[READS, EXECUTIONS],
        ("terminal", _) => &[CONTROLS],
        ("shell", _) => &[CONTROLS, RETRIES],
        ("ws", _) => &[READS, CONTROLS],
        ("workspace", _) => &[CONTROLS, READS],
        ("contexts", _) => &[CONTROLS, CLEANS],
        ("services", "list" | "show" | "why" | "detect") => &[],
        ("services", _) => &[STARTS],
        ("interactions", "open") => &[QUESTIONS, EXECUTIONS],
        ("interactions", "answer" | "cancel") => &[QUESTIONS],
        ("templates", _) => &[TEMPLATES],
        ("project_execute", _) => &[STARTS, TEMPLATES],
        ("history", _) => &[HISTORY],
        _ => &[],
    };
    lists.concat()
}

/// The table of codes: `code → status`.
#[derive(Debug)]
pub(super) struct ProblemCodes(BTreeMap<String, u16>);

/// What a route has, as far as problems depend on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteTraits {
    pub(super) has_body: bool,
    /// Whether it answers requests for a WebSocket only.
    pub(super) needs_websocket: bool,
    pub(super) needs_token: bool,
}

impl ProblemCodes {
    pub(super) fn read(items: &RustItems) -> Result<Self> {
        let (file, name) = TABLE;
        let (_, table) = items.constant(file, name)?;
        let Expr::Array(rows) = table else {
            bail!("{file}: {name} is not a list");
        };
        let rows = rows.elems.iter().map(row);
        let rows = rows.collect::<Option<BTreeMap<_, _>>>();
        rows.map(Self)
            .with_context(|| format!("{file}: a row of {name} is not understood"))
    }

    /// The names of all codes.
    pub(super) fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// `status → codes` of a route.
    pub(super) fn of_route(
        &self,
        route: &Route,
        has: RouteTraits,
    ) -> Result<BTreeMap<u16, BTreeSet<String>>> {
        let mut all = if has.needs_token {
            OF_EVERY_ROUTE.to_vec()
        } else {
            vec![FOREIGN_PAGE]
        };
        match (route.module.as_str(), route.handler.as_str()) {
            ("web", "sign_in") => all.extend(OF_SIGN_INS.iter().chain(OF_SECRETS)),
            ("web", "sign_out") => all.extend(OF_SIGN_INS),
            _ => {}
        }
        if has.has_body {
            all.extend(OF_BODIES);
        }
        if has.needs_websocket {
            all.extend(OF_WEBSOCKETS);
        }
        if route.path.contains('{') {
            all.extend(match route.module.as_str() {
                // An unknown question has a code of its own, whose status is 409.
                "interactions" => [(409, "interaction_error")].as_slice(),
                "templates" => &[(404, "value_error"), (404, "template_error")],
                "terminal" | "shell" | "ws" => &[(404, "session_not_found")],
                _ => &[(404, "process_not_found")],
            });
        }
        for code in codes(&route.module, &route.handler) {
            let status = self.0.get(code);
            all.push((*status.with_context(|| format!("no code {code}"))?, code));
        }
        let mut by_status: BTreeMap<u16, BTreeSet<String>> = BTreeMap::new();
        for (status, code) in all {
            by_status.entry(status).or_default().insert(code.to_owned());
        }
        Ok(by_status)
    }
}

/// The code and the HTTP status of `row(code, name, class, rpc, http, exit, retryable)`.
fn row(row: &Expr) -> Option<(String, u16)> {
    let Expr::Call(call) = row else {
        return None;
    };
    let literal = |index: usize| match call.args.get(index) {
        Some(Expr::Lit(literal)) => Some(&literal.lit),
        _ => None,
    };
    match (literal(1)?, literal(4)?) {
        (Lit::Str(name), Lit::Int(status)) => Some((name.value(), status.base10_parse().ok()?)),
        _ => None,
    }
}

/// The name of the response with a problem of these codes, and the response.
pub(super) fn problem_response(status: u16, codes: &BTreeSet<String>) -> (String, Value) {
    let list: Vec<&str> = codes.iter().map(String::as_str).collect();
    let mut response = json!({
        "description": format!("{}: {}.", reason(status), list.join(", ")),
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
        "content": {"application/problem+json": {"schema": {
            "allOf": [{"$ref": "#/components/schemas/Problem"}],
            "properties": {"status": {"const": status}, "code": {"enum": list}},
        }}},
    });
    let header = match status {
        401 => "WWW-Authenticate",
        429 => "Retry-After",
        _ => return (format!("{status}-{}", list.join("-")), response),
    };
    response["headers"][header] = json!({"$ref": format!("#/components/headers/{header}")});
    (format!("{status}-{}", list.join("-")), response)
}

/// What the status says here.
const fn reason(status: u16) -> &'static str {
    match status {
        400 => "The body ends early",
        401 => "No valid token",
        403 => "Not permitted: a scope, the host or origin, or a rule forbids it",
        408 => "The body takes too long",
        404 => "Unknown, or not the caller's",
        409 => "The state does not allow it",
        413 => "The body is too large",
        422 => "A value is not allowed, or the program cannot be executed",
        426 => "A WebSocket is needed",
        429 => "Too many requests or executions",
        500 => "Failed",
        503 => "The daemon shuts down, or is not ready",
        504 => "Not certain in time",
        507 => "The storage cannot be read or written",
        _ => "A problem",
    }
}
