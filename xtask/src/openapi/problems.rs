//! The problem documents that a route can answer with.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use syn::{Expr, Lit};

use super::calls::HandlerCalls;
use super::parameters::last_name;
use super::routes::Route;
use super::rust_items::RustItems;

/// The file and the constant with the table of codes.
const TABLE: (&str, &str) = ("crates/model/src/error_code.rs", "ERROR_CODES");

/// `(status, code)` of what every route answers: a body that ends early or is too large, credentials
/// that are missing or not sufficient, a wrong host or origin, a value that is not allowed, too many
/// requests, and tokens that cannot be read. A defect is 500 with `internal_error` on any route, which none declares.
const OF_EVERY_ROUTE: &[(u16, &str)] = &[
    (400, "value_error"),
    (401, "permission_error"),
    (403, "permission_error"),
    (403, "security_error"),
    (413, "value_error"),
    (422, "value_error"),
    (429, "quota_exceeded"),
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
/// Of routes that only a WebSocket can use.
const OF_WEBSOCKETS: &[(u16, &str)] = &[(426, "value_error")];

/// `(extractor, status, code)`: what a route's path can name that is unknown.
const EXTRACTORS: &[(&str, u16, &str)] = &[
    ("ExecutionPathId", 404, "process_not_found"),
    ("SessionPathId", 404, "session_not_found"),
    ("ContextPathId", 404, "process_not_found"),
    ("InteractionPathId", 404, "interaction_error"),
];

const NOTHING: &[&str] = &[];
/// The daemon shuts down.
const CLOSING: &[&str] = &["initialization_error"];
/// Of what starts a command; of its context and its dependencies, too.
const STARTS: &[&str] = &[
    "command_execution_error",
    "process_control_error",
    "process_not_found",
    "initialization_error",
];
/// Of what acts on a command that runs or has ended.
const CONTROLS: &[&str] = &["process_control_error"];
/// Of what ends one, and waits for that.
const STOPS: &[&str] = &["process_control_error", "initialization_error"];
/// Of what reads output or the ledger.
const READS: &[&str] = &["output_retrieval_error"];
const WAITS: &[&str] = &["output_retrieval_error", "initialization_error"];
const UNKNOWN: &[&str] = &["process_not_found"];

/// The codes of the engine's methods besides those of every route. One of an execution in the path is
/// that of its extractor.
const ENGINE: &[(&[&str], &[&str])] = &[
    (
        &[
            "check_directory",
            "shell_request",
            "check_project",
            "clean",
            "clone",
            "contexts",
            "context",
            "detect",
            "events",
            "execution_dir",
            "info",
            "interaction",
            "interactions",
            "last_usage",
            "lease_holder",
            "ledger_end",
            "list",
            "poll_interactions",
            "policy_in",
            "policy_verdict",
            "rerun_caller",
            "rerun_request",
            "record_refusal",
            "running_count",
            "services",
            "services_and_dismissed",
            "services_elsewhere",
            "settings",
            "tree_snapshot",
            "usage_now",
            "watch",
            "watch_interactions",
            "watch_usage",
        ],
        NOTHING,
    ),
    (
        &[
            "start",
            "check_start",
            "start_service",
            "ensure_service",
            "start_service_within",
            "service_up_within",
            "restart_service",
        ],
        STARTS,
    ),
    (&["stop", "interrupt"], STOPS),
    (
        &[
            "acquire_lease",
            "close_input",
            "pause",
            "resize",
            "resize_terminal",
            "resume",
            "send_input",
            "signal",
            "write",
            "write_once",
        ],
        CONTROLS,
    ),
    (
        &["journal", "follow", "screen", "repaint", "read_terminal"],
        READS,
    ),
    (&["poll_events", "events_before", "wait", "ledger"], WAITS),
    (&["service", "diagnose_service", "forget_service"], UNKNOWN),
    (&["define_service"], NOTHING),
    (
        &["stop_service"],
        &[
            "process_not_found",
            "process_control_error",
            "initialization_error",
        ],
    ),
    (
        &["dismiss_service"],
        &["process_not_found", "process_control_error"],
    ),
    (&["queued_start"], UNKNOWN),
    (&["clear_output"], &["output_clear_error"]),
    (&["handle_overlay"], CONTROLS),
    (&["usage_history"], CLOSING),
    (&["open_context"], CLOSING),
    (
        &["remove_context"],
        &[
            "process_clean_error",
            "process_control_error",
            "initialization_error",
        ],
    ),
    (
        &["open_interaction"],
        &[
            "interaction_error",
            "process_not_found",
            "initialization_error",
        ],
    ),
    (&["check_question"], &["process_not_found"]),
    (&["wait_for_answer"], NOTHING),
    (
        &["answer_interaction"],
        &["interaction_error", "process_control_error"],
    ),
    (&["cancel_interaction"], &["interaction_error"]),
    (
        &["run_in_shell"],
        &[
            "process_control_error",
            "process_timeout",
            "initialization_error",
        ],
    ),
];
/// The code of a defect.
const DEFECT: &str = "internal_error";
/// Functions and methods of others.
const OTHERS: &[(&str, &[&str])] = &[
    ("unless_shutting_down", CLOSING),
    ("find_template", &["template_error"]),
    ("template_command", &["template_error"]),
];
/// `(module, handler, code)` of what a call could answer and this one cannot: a shell and a service run
/// in no context, a wait for readiness reads no output, changes are listed while they are made, and
/// a stream ends without an error.
const NOT_HERE: &[(&str, &str, &str)] = &[
    ("shell", "start", "process_not_found"),
    ("shell", "start", "process_control_error"),
    ("services", "start", "process_not_found"),
    ("services", "start", "output_retrieval_error"),
    ("services", "ensure", "output_retrieval_error"),
    ("services", "up", "output_retrieval_error"),
    ("task_stream", "events", "initialization_error"),
    ("workspace", "changes", "process_control_error"),
    ("workspace", "diff", "process_control_error"),
];
/// `(module, handler, code)` of what a handler answers beyond what it calls: an execution that is named
/// elsewhere than in the path.
const ALSO: &[(&str, &str, &str)] = &[
    ("events", "events", "process_not_found"),
    ("history", "show", "process_not_found"),
];
/// `(module, handler, status, code)` of what a handler answers with another status than its code's.
const OTHER_STATUS: &[(&str, &str, u16, &str)] = &[("templates", "show", 404, "template_error")];

/// `(method of the engine, status, code)` of errors with another status than their code's: a question
/// or an answer that is not valid.
const ENGINE_STATUS: &[(&str, u16, &str)] = &[
    ("check_question", 422, "interaction_error"),
    ("open_interaction", 422, "interaction_error"),
    ("answer_interaction", 422, "interaction_error"),
];

/// The table of codes: `code → status`, and `variant → code`.
#[derive(Debug)]
pub(super) struct ProblemCodes(BTreeMap<String, u16>, BTreeMap<String, String>);

/// What a route has, as far as problems depend on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteTraits {
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
        let rows = rows.elems.iter().map(row).collect::<Option<Vec<_>>>();
        let rows = rows.with_context(|| format!("{file}: a row of {name} is not understood"))?;
        let names = rows
            .iter()
            .map(|(variant, name, _)| (variant.clone(), name.clone()));
        let names = names.collect();
        Ok(Self(
            rows.into_iter()
                .map(|(_, name, status)| (name, status))
                .collect(),
            names,
        ))
    }

    /// The names of all codes.
    pub(super) fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// The codes of what a handler calls, and of those that it names.
    fn codes<'a>(&'a self, calls: &'a HandlerCalls) -> Result<BTreeSet<&'a str>> {
        let mut codes = BTreeSet::new();
        for method in &calls.engine {
            let mut rows = ENGINE.iter();
            let row = rows.find(|(methods, _)| methods.contains(&method.as_str()));
            let (_, of_method) = row
                .with_context(|| format!("engine.{method}: add it to the table of {}", file!()))?;
            codes.extend(of_method.iter().copied());
        }
        for (name, of_function) in OTHERS {
            if calls.others.contains(*name) {
                codes.extend(of_function.iter().copied());
            }
        }
        for variant in &calls.codes {
            let name = self.1.get(variant);
            codes.insert(name.with_context(|| format!("no code {variant}"))?.as_str());
        }
        let of_every_route = OF_EVERY_ROUTE.iter().map(|(_, code)| *code);
        for code in of_every_route.chain([DEFECT]) {
            codes.remove(code);
        }
        Ok(codes)
    }

    /// `status → codes` of a route.
    pub(super) fn of_route(
        &self,
        route: &Route,
        has: RouteTraits,
        calls: &HandlerCalls,
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
        if has.needs_websocket {
            all.extend(OF_WEBSOCKETS);
        }
        let extractors = EXTRACTORS.iter();
        let known = extractors.filter(|(extractor, ..)| calls.extractors.contains(*extractor));
        all.extend(known.map(|(_, status, code)| (*status, *code)));
        let specific = ENGINE_STATUS.iter();
        let specific = specific.filter(|(method, ..)| calls.engine.contains(*method));
        all.extend(specific.map(|(_, status, code)| (*status, *code)));
        let is_meant = |module: &str, handler: &str| {
            (module, handler) == (route.module.as_str(), route.handler.as_str())
        };
        let mut codes = self.codes(calls)?;
        let also = ALSO
            .iter()
            .filter(|(module, handler, _)| is_meant(module, handler));
        codes.extend(also.map(|(.., code)| *code));
        for code in codes {
            let mut not_here = NOT_HERE.iter();
            if not_here.any(|(module, handler, not)| is_meant(module, handler) && *not == code) {
                continue;
            }
            let mut others = OTHER_STATUS.iter();
            let other =
                others.find(|(module, handler, _, it)| is_meant(module, handler) && *it == code);
            let status = match other {
                Some((_, _, status, _)) => *status,
                None => *self
                    .0
                    .get(code)
                    .with_context(|| format!("no code {code}"))?,
            };
            all.push((status, code));
        }
        let mut by_status: BTreeMap<u16, BTreeSet<String>> = BTreeMap::new();
        for (status, code) in all {
            by_status.entry(status).or_default().insert(code.to_owned());
        }
        Ok(by_status)
    }
}

/// The variant, the code and the HTTP status of `row(code, name, class, rpc, http, exit, retryable)`.
fn row(row: &Expr) -> Option<(String, String, u16)> {
    let Expr::Call(call) = row else {
        return None;
    };
    let literal = |index: usize| match call.args.get(index) {
        Some(Expr::Lit(literal)) => Some(&literal.lit),
        _ => None,
    };
    let variant = last_name(call.args.first()?).ok()?;
    match (literal(1)?, literal(4)?) {
        (Lit::Str(name), Lit::Int(status)) => {
            Some((variant, name.value(), status.base10_parse().ok()?))
        }
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
