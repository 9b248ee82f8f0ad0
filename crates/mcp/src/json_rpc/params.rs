//! Describes params that are not those of their method. Pure.

use ostler_render::truncated;
use rmcp::ErrorData;
use rmcp::model::{
    CancelTaskParams, CompleteRequestParams, CustomRequest, ErrorCode, GetPromptRequestParams,
    GetTaskParams, InitializeRequestParams, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, RequestMetaObject, SubscribeRequestParams,
    SubscriptionsListenRequestParams, UnsubscribeRequestParams, UpdateTaskParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The most characters of a method's name in an error.
const METHOD_CHARS: usize = 100;

/// Methods that do not exist in revision 2026-07-28 and later.
const HANDSHAKE_METHODS: [&str; 4] = [
    "initialize",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// Refuses the cursor of a list that has one page.
pub(crate) fn refuse_cursor(
    page: Option<PaginatedRequestParams>,
    list: &str,
) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor) {
        None => Ok(()),
        Some(_) => {
            let message = format!("cursor is none that an earlier {list} answered");
            Err(ErrorData::invalid_params(message, None))
        }
    }
}

/// The error for a method that does not exist.
pub(crate) fn unknown_method(method: &str) -> ErrorData {
    let method = truncated(method, METHOD_CHARS);
    let message = format!("unknown method '{method}'");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// The problem with the params of a known method; none for other methods.
pub(crate) fn params_problem(request: &CustomRequest, meta: &RequestMetaObject) -> Option<String> {
    let is_stateless = meta
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    if is_stateless && HANDSHAKE_METHODS.contains(&request.method.as_str()) {
        return None;
    }
    type ParamsCheck = fn(Value) -> Option<String>;
    let check: ParamsCheck = match request.method.as_str() {
        "tools/call" => return Some(describe_call_params(request.params.as_ref())),
        "initialize" => type_mismatch::<InitializeRequestParams>,
        "completion/complete" => type_mismatch::<CompleteRequestParams>,
        "resources/read" => type_mismatch::<ReadResourceRequestParams>,
        "resources/subscribe" => type_mismatch::<SubscribeRequestParams>,
        "resources/unsubscribe" => type_mismatch::<UnsubscribeRequestParams>,
        "subscriptions/listen" => type_mismatch::<SubscriptionsListenRequestParams>,
        "tasks/get" => type_mismatch::<GetTaskParams>,
        "tasks/update" => type_mismatch::<UpdateTaskParams>,
        "tasks/cancel" => type_mismatch::<CancelTaskParams>,
        "prompts/get" => type_mismatch::<GetPromptRequestParams>,
        "prompts/list" | "resources/list" | "resources/templates/list" | "tools/list" => {
            type_mismatch::<PaginatedRequestParams>
        }
        "logging/setLevel" => level_problem,
        "ping" | "server/discover" => |_| None,
        _ => return None,
    };
    let params = request.params.clone().unwrap_or(Value::Object(Map::new()));
    let problem = match params.as_object().map(other_problem) {
        Some(META_PROBLEM) => META_PROBLEM.to_owned(),
        Some(other) => check(params).unwrap_or_else(|| other.to_owned()),
        None => "they must be an object".to_owned(),
    };
    Some(format!("params of {}: {problem}", request.method))
}

const META_PROBLEM: &str = "_meta must be an object";

/// The problem with params whose own fields are right.
fn other_problem(params: &Map<String, Value>) -> &'static str {
    match params.get("_meta") {
        Some(Value::Object(_)) => "a field of _meta has the wrong type",
        Some(_) => META_PROBLEM,
        None => "they are not those of the method",
    }
}

fn type_mismatch<T: DeserializeOwned>(params: Value) -> Option<String> {
    serde_json::from_value::<T>(params)
        .err()
        .map(|error| error.to_string())
}

fn level_problem(_params: Value) -> Option<String> {
    let allowed = "debug, info, notice, warning, error, critical, alert, emergency";
    Some(format!("level must be one of {allowed}"))
}

/// Describes the problem with the params of a `tools/call`.
fn describe_call_params(params: Option<&Value>) -> String {
    let Some(Value::Object(params)) = params else {
        return "params must be an object with 'name', a string, and 'arguments', an object"
            .to_owned();
    };
    let is_wrong = |name: &str, is_right: fn(&Value) -> bool| {
        params.get(name).is_some_and(|value| !is_right(value))
    };
    if !params.contains_key("name") {
        "params.name is missing; it must be a string, the tool's name".to_owned()
    } else if is_wrong("name", Value::is_string) {
        "params.name must be a string, the tool's name".to_owned()
    } else if is_wrong("arguments", Value::is_object) {
        "params.arguments must be an object".to_owned()
    } else if is_wrong("inputResponses", Value::is_object) {
        "params.inputResponses must be an object".to_owned()
    } else if is_wrong("requestState", Value::is_string) {
        "params.requestState must be a string".to_owned()
    } else {
        format!("params of tools/call: {}", other_problem(params))
    }
}
