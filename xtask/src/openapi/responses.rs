//! What a route answers where it succeeds.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use syn::visit::{self, Visit};
use syn::{ExprPath, ItemFn, ReturnType, Type};

use super::routes::Route;
use super::schemas::{Direction, Schemas};

const JSON: &str = "application/json";
/// The names and numbers of the statuses that handlers choose.
const STATUSES: &[(&str, u16)] = &[
    ("OK", 200),
    ("CREATED", 201),
    ("ACCEPTED", 202),
    ("NO_CONTENT", 204),
];

/// `status → response`.
pub(super) type Responses = Map<String, Value>;

/// The responses of a handler that succeeds.
pub(super) fn success(
    route: &Route,
    handler: &ItemFn,
    schemas: &mut Schemas<'_>,
) -> Result<Responses> {
    if let Some(responses) = written_by_hand(route, schemas)? {
        return Ok(responses);
    }
    let output = result_type(&handler.sig.output)?;
    let chosen = chosen_statuses(handler);
    let (statuses, body) = match output {
        Type::Path(_) if is_named(output, "StatusCode") => (chosen, None),
        Type::Path(_) => (BTreeSet::from([200]), Some(json_type(output)?)),
        Type::Tuple(it) if it.elems.len() == 2 && is_named(&it.elems[0], "StatusCode") => {
            (chosen, Some(json_type(&it.elems[1])?))
        }
        Type::Verbatim(_) | _ => bail!("say in written_by_hand what it answers"),
    };
    if statuses.is_empty() {
        bail!("no status is found in the handler");
    }
    let content = match body {
        Some(body) => Some(json!({JSON: {"schema": schemas.of(body, Direction::Response)?}})),
        None => None,
    };
    let responses = statuses.into_iter().map(|status| {
        let response = response(status, content.clone());
        (status.to_string(), response)
    });
    Ok(responses.collect())
}

fn response(status: u16, content: Option<Value>) -> Value {
    let description = match status {
        101 => "The connection is a WebSocket from now on",
        201 => "Created",
        202 => "Accepted",
        204 => "Done; there is no body",
        _ => "The answer",
    };
    let mut response = json!({
        "description": description,
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
    });
    if let Some(content) = content {
        response["content"] = content;
    }
    response
}

/// Responses whose content the signature does not tell.
fn written_by_hand(route: &Route, schemas: &mut Schemas<'_>) -> Result<Option<Responses>> {
    let mut component = |name| schemas.reference(name, Direction::Response);
    let responses = match (route.module.as_str(), route.handler.as_str()) {
        ("processes", "list") => {
            let content = json!({JSON: {"schema": {
                "type": "array", "items": component("ProcessBody")?
            }}});
            let mut listed = response(200, Some(content));
            for header in ["X-Total-Count", "Link"] {
                listed["headers"][header] =
                    json!({"$ref": format!("#/components/headers/{header}")});
            }
            vec![(200, listed)]
        }
        ("events", "events") => {
            let mut content = lines("text/event-stream", &component("EventBody")?);
            content[JSON] = json!({"schema": component("EventsBody")?});
            vec![(200, response(200, Some(content)))]
        }
        ("task_stream", "events") => {
            let content = lines("text/event-stream", &component("TaskEventBody")?);
            vec![
                (101, response(101, None)),
                (200, response(200, Some(content))),
                (204, response(204, None)),
            ]
        }
        ("interactions", "events") => {
            component("InteractionServerMessage")?;
            component("InteractionClientMessage")?;
            vec![(101, response(101, None))]
        }
        ("ws", "attach") => {
            component("TerminalServerMessage")?;
            component("TerminalClientMessage")?;
            vec![(101, response(101, None))]
        }
        ("web", "sign_in") => {
            let content = json!({JSON: {"schema": component("WebSessionBody")?}});
            vec![(200, with_cookie(response(200, Some(content))))]
        }
        ("executions", "remove") => {
            let mut removed = response(204, None);
            removed["headers"]["Ostler-Discarded-Changes"] =
                json!({"$ref": "#/components/headers/Ostler-Discarded-Changes"});
            vec![(204, removed)]
        }
        ("web", "sign_out") => vec![(204, with_cookie(response(204, None)))],
        ("raw", "raw") => {
            let content = lines("application/x-ndjson", &component("OutputFrame")?);
            vec![(200, response(200, Some(content)))]
        }
        ("export", "export") => vec![(200, exported())],
        ("openapi", "document") => {
            let content = json!({JSON: {"schema": {"type": "object"}}});
            vec![(200, response(200, Some(content)))]
        }
        ("docs_page", "page") => {
            let content = json!({"text/html": {"schema": {"type": "string"}}});
            vec![(200, response(200, Some(content)))]
        }
        ("metrics", "metrics") => {
            let content = json!({"text/plain": {"schema": {"type": "string"}}});
            vec![(200, response(200, Some(content)))]
        }
        _ => return Ok(None),
    };
    let named = responses.into_iter();
    Ok(Some(
        named.map(|(status, it)| (status.to_string(), it)).collect(),
    ))
}

/// A stream of this type: each line, or the `data` of each event, is one value.
fn lines(media_type: &str, value: &Value) -> Value {
    json!({media_type: {"schema": {
        "type": "string", "contentMediaType": JSON, "contentSchema": value
    }}})
}

fn with_cookie(mut response: Value) -> Value {
    response["headers"]["Set-Cookie"] = json!({"$ref": "#/components/headers/Set-Cookie"});
    response
}

fn exported() -> Value {
    let types = [
        "application/octet-stream",
        "application/sarif+json",
        "application/vnd.apache.avro+binary",
        "application/x-asciicast",
        "application/x-ndjson",
        "application/xml",
        "application/yaml",
    ];
    let content: Map<String, Value> = types
        .iter()
        .map(|name| ((*name).to_owned(), json!({})))
        .collect();
    let mut response = response(200, Some(content.into()));
    response["headers"]["Ostler-Lost-Bytes"] =
        json!({"$ref": "#/components/headers/Ostler-Lost-Bytes"});
    response
}

/// `T` of `-> RestResult<T>`.
fn result_type(output: &ReturnType) -> Result<&Type> {
    let ReturnType::Type(_, output) = output else {
        bail!("a handler returns a RestResult");
    };
    argument_of(output, "RestResult").context("a handler returns a RestResult")
}

fn json_type(output: &Type) -> Result<&Type> {
    argument_of(output, "Json").context("say in written_by_hand what it answers")
}

/// `T` of `name<T>`.
pub(super) fn argument_of<'a>(found: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = found else {
        return None;
    };
    let segment = path.path.segments.last().filter(|it| it.ident == name)?;
    super::schemas::type_arguments(&segment.arguments)
        .first()
        .copied()
}

fn is_named(found: &Type, name: &str) -> bool {
    matches!(found, Type::Path(path) if path.path.is_ident(name))
}

/// The statuses that a function names.
fn chosen_statuses(handler: &ItemFn) -> BTreeSet<u16> {
    #[derive(Default)]
    struct StatusVisitor(BTreeSet<u16>);

    impl<'ast> Visit<'ast> for StatusVisitor {
        fn visit_expr_path(&mut self, it: &'ast ExprPath) {
            let names: Vec<_> = it.path.segments.iter().collect();
            if let [parent, name] = names[..]
                && parent.ident == "StatusCode"
            {
                let known = STATUSES.iter().find(|(known, _)| name.ident == known);
                self.0.extend(known.map(|(_, status)| *status));
            }
            visit::visit_expr_path(self, it);
        }
    }

    let mut visitor = StatusVisitor::default();
    visitor.visit_item_fn(handler);
    visitor.0
}
