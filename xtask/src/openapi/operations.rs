//! One operation of the document: what a handler takes and answers.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, FnArg, ItemFn, Lit, Type};

use super::calls::HandlerCalls;
use super::doc_text::doc_text;
use super::parameters::query_parameters;
use super::problems::{ProblemCodes, RouteTraits, problem_response};
use super::responses::{argument_of, success};
use super::routes::Route;
use super::rust_items::RustItems;
use super::schemas::{Direction, Schemas};

/// Routes that need scopes: `(method, path, scope)`.
const SCOPES: &[(&str, &str, &str)] = &[
    ("get", "/metrics", "sessions:all"),
    ("get", "/api/v1/audit/verify", "sessions:all"),
    ("get", "/api/v1/doctor", "sessions:all"),
    ("post", "/api/v1/history/rebuild", "sessions:all"),
    ("post", "/api/v1/shutdown", "daemon:stop"),
];
/// The scope of what changes something, as `route_access.rs` says it.
const WRITE_SCOPE: &str = "project:write";
/// The file that says it.
const ROUTE_ACCESS: &str = "crates/http/src/rest/route_access.rs";
/// Handlers that answer server-sent events to those who ask for them.
const EVENT_STREAMS: &[(&str, &str)] = &[("events", "events"), ("task_stream", "events")];
/// Handlers that answer requests for a WebSocket only.
const WEBSOCKETS: &[(&str, &str)] = &[("ws", "attach"), ("interactions", "events")];

/// Handlers that answer everybody.
const WITHOUT_TOKEN: &[(&str, &str)] = &[
    ("docs_page", "page"),
    ("web", "sign_in"),
    ("web", "sign_out"),
];

/// What operations are made from.
pub(super) struct OperationSource<'a> {
    pub(super) items: &'a RustItems,
    pub(super) codes: &'a ProblemCodes,
    pub(super) schemas: Schemas<'a>,
    /// The responses with problems so far, by name.
    pub(super) problems: BTreeMap<String, Value>,
}

/// The body that a handler takes.
enum RequestBody<'a> {
    None,
    Json(&'a Type),
    Bytes,
}

impl OperationSource<'_> {
    /// Adds the schema of the body of a route, where it has one.
    pub(super) fn add_request(&mut self, route: &Route) -> Result<()> {
        let (_, handler) = self.items.handler(&route.module, &route.handler)?;
        if let RequestBody::Json(body) = request_body(handler) {
            self.schemas.of(body, Direction::Request)?;
        }
        Ok(())
    }

    /// The operation of a route.
    pub(super) fn operation(&mut self, route: &Route) -> Result<Value> {
        let (place, handler) = self.items.handler(&route.module, &route.handler)?;
        let mut responses = success(route, handler, &mut self.schemas)?;
        let body = request_body(handler);
        let key = (route.module.as_str(), route.handler.as_str());
        let has = RouteTraits {
            needs_websocket: WEBSOCKETS.contains(&key),
            needs_token: !WITHOUT_TOKEN.contains(&key),
        };
        let calls = HandlerCalls::of(self.items, place, handler);
        for (status, codes) in self.codes.of_route(route, has, &calls)? {
            let (name, response) = problem_response(status, &codes);
            let reference = json!({"$ref": format!("#/components/responses/{name}")});
            self.problems.insert(name, response);
            responses.insert(status.to_string(), reference);
        }
        let (summary, description) = summary(handler)?;
        let tag = tag(&route.path);
        let mut operation = json!({
            "operationId": operation_id(route),
            "tags": [tag],
            "summary": summary,
            "parameters": self.parameters(route, place, handler)?,
            "responses": responses,
            "security": if has.needs_token {
                json!([{"bearer": self.scopes(route)?}])
            } else {
                json!([])
            },
        });
        if !description.is_empty() {
            operation["description"] = description.into();
        }
        if let Some(body) = self.body(&body)? {
            operation["requestBody"] = body;
        }
        Ok(operation)
    }

    /// The scopes that a token needs.
    fn scopes(&self, route: &Route) -> Result<Vec<&'static str>> {
        let needed = SCOPES
            .iter()
            .filter(|(method, path, _)| *method == route.method && *path == route.path);
        let mut scopes: Vec<&str> = needed.map(|(_, _, scope)| *scope).collect();
        if self.writes(route)? {
            scopes.push(WRITE_SCOPE);
        }
        Ok(scopes)
    }

    /// As `route_access::writes`, of the tables there.
    fn writes(&self, route: &Route) -> Result<bool> {
        let is_in = |table| -> Result<bool> {
            let (place, table) = self.items.constant(ROUTE_ACCESS, table)?;
            let paths = texts(table).with_context(|| format!("{place}: no list of paths"))?;
            Ok(paths.contains(&route.path))
        };
        let is_reading = route.method == "get" || is_in("READ_ROUTES")?;
        Ok((!is_reading || is_in("WRITE_ROUTES")?) && !is_in("CHECKED_ELSEWHERE")?)
    }

    fn parameters(&self, route: &Route, place: &str, handler: &ItemFn) -> Result<Vec<Value>> {
        let named = route.path.split('/').filter_map(|part| {
            let name = part.strip_prefix('{')?.strip_suffix('}')?;
            Some(json!({
                "name": name, "in": "path", "required": true,
                "schema": {"type": "string", "minLength": 1},
            }))
        });
        let mut parameters: Vec<Value> = named.collect();
        if let Some(table) = checked_table(handler) {
            parameters.extend(query_parameters(self.items, place, table)?);
        }
        let mut headers = vec!["RequestId"];
        let answers_all = WITHOUT_TOKEN.contains(&(route.module.as_str(), route.handler.as_str()));
        if has_caller(handler) && !answers_all {
            headers = vec!["Session", "Project", "RequestId"];
        }
        if EVENT_STREAMS.contains(&(route.module.as_str(), route.handler.as_str())) {
            headers.push("LastEventId");
        }
        let headers = headers.into_iter();
        let reference = |name| json!({"$ref": format!("#/components/parameters/{name}")});
        parameters.extend(headers.map(reference));
        Ok(parameters)
    }

    fn body(&mut self, body: &RequestBody<'_>) -> Result<Option<Value>> {
        Ok(match body {
            RequestBody::None => None,
            RequestBody::Json(body) => {
                let schema = self.schemas.of(body, Direction::Request)?;
                let required = self.schemas.has_required_fields(&schema);
                Some(json!({
                    "required": required, "content": {"application/json": {"schema": schema}}
                }))
            }
            RequestBody::Bytes => Some(json!({
                "required": false, "content": {"application/octet-stream": {}}
            })),
        })
    }
}

/// The elements of a list of texts.
fn texts(list: &Expr) -> Option<Vec<String>> {
    let Expr::Reference(list) = list else {
        return None;
    };
    let Expr::Array(list) = &*list.expr else {
        return None;
    };
    let text = |element: &Expr| {
        let Expr::Lit(literal) = element else {
            return None;
        };
        let Lit::Str(text) = &literal.lit else {
            return None;
        };
        Some(text.value())
    };
    list.elems.iter().map(text).collect()
}

/// The tag, the module of the handler where it is another word, and the handler.
fn operation_id(route: &Route) -> String {
    let (tag, module) = (tag(&route.path), &route.module);
    if tag == module {
        format!("{tag}.{}", route.handler)
    } else {
        format!("{tag}.{module}.{}", route.handler)
    }
}

/// The first part of the path that names something.
fn tag(path: &str) -> &str {
    let path = path.strip_prefix("/api/v1/").unwrap_or(path);
    let path = path.strip_prefix("/api/").unwrap_or(path);
    path.trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or(path)
}

/// The first sentence of the documentation after the route, and the others.
fn summary(handler: &ItemFn) -> Result<(String, String)> {
    let text = doc_text(&handler.attrs);
    let after_routes = text
        .rsplit_once("`:")
        .filter(|(routes, _)| routes.starts_with('`') && !routes.contains(". "));
    let (_, text) = after_routes.with_context(|| {
        format!(
            "the documentation of {} says '{text}'; it must be as '`GET /path`: what it does.'",
            handler.sig.ident
        )
    })?;
    let text = text.trim();
    let (first, rest) = text.split_once(". ").unwrap_or((text, ""));
    let first = first.trim_end_matches('.');
    Ok((capitalized(first), capitalized(rest.trim())))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Whether the answer depends on who sends the request.
fn has_caller(handler: &ItemFn) -> bool {
    !handler.sig.inputs.is_empty()
}

fn request_body(handler: &ItemFn) -> RequestBody<'_> {
    for argument in &handler.sig.inputs {
        let FnArg::Typed(argument) = argument else {
            continue;
        };
        if let Some(body) = argument_of(&argument.ty, "JsonBody") {
            return RequestBody::Json(body);
        }
        if matches!(&*argument.ty, Type::Path(path) if path.path.is_ident("RawBody")) {
            return RequestBody::Bytes;
        }
    }
    RequestBody::None
}

/// The table in `query_string.check(TABLE)`.
fn checked_table(handler: &ItemFn) -> Option<&Expr> {
    #[derive(Default)]
    struct CheckVisitor<'ast>(Option<&'ast Expr>);

    impl<'ast> Visit<'ast> for CheckVisitor<'ast> {
        fn visit_expr_method_call(&mut self, it: &'ast ExprMethodCall) {
            if it.method == "check"
                && let Expr::Path(receiver) = &*it.receiver
                && receiver.path.is_ident("query_string")
            {
                self.0 = it.args.first();
            }
            visit::visit_expr_method_call(self, it);
        }
    }

    let mut visitor = CheckVisitor::default();
    visitor.visit_item_fn(handler);
    visitor.0
}

/// Fails where two operations have one id.
pub(super) fn check_ids<'a>(ids: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut known = std::collections::BTreeSet::new();
    for id in ids {
        if !known.insert(id) {
            bail!("two operations have the id {id}: one of them needs a handler of its own");
        }
    }
    Ok(())
}
