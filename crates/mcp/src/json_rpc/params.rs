//! Describes params that are not those of their method. Pure.

use rmcp::model::{
    CancelTaskParams, CompleteRequestParams, CustomRequest, GetPromptRequestParams, GetTaskParams,
    InitializeRequestParams, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    RequestMetaObject, SubscribeRequestParams, SubscriptionsListenRequestParams,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Methods that do not exist in revision 2026-07-28 and later.
const HANDSHAKE_METHODS: [&str; 4] = [
    "initialize",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

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
    let problem = if params.is_object() {
        check(params)
    } else {
        Some("they must be an object".to_owned())
    };
    let problem = problem.unwrap_or_else(|| "_meta must be an object".to_owned());
    Some(format!("params of {}: {problem}", request.method))
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
        "params._meta is malformed: it must be an object".to_owned()
    }
}
