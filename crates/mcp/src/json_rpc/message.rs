//! Parses one line of the client: a message, a batch of messages, or an error. Pure.

use ostler_render::truncated;
use rmcp::RoleServer;
use rmcp::model::{
    ClientRequest, CustomRequest, ErrorCode, ErrorData, GetMeta as _, JsonRpcMessage, RequestId,
};
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Value, json};

use super::params::params_problem;
use super::repeated_key::repeated_key;

/// The most characters of a key that an error quotes.
const KEY_CHARS: usize = 100;

/// The error of a request whose id is that of an unanswered one.
pub(crate) const IN_FLIGHT: &str =
    "a request with this id is in flight; each request needs an id of its own";

/// A message of the client.
pub(crate) type IncomingMessage = RxJsonRpcMessage<RoleServer>;

/// What one line, or one HTTP body, holds.
#[derive(Debug)]
pub(crate) enum ParsedLine {
    /// Nothing but white space.
    Blank,
    /// One message.
    Message(Box<IncomingMessage>),
    /// The members of a JSON-RPC batch, at least one.
    Batch(Vec<Value>),
    /// An error to answer.
    Malformed(Malformed),
    /// A malformed notification or response, which must not be answered.
    Ignored,
}

/// An error response, with the id of its request where that can be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Malformed {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: ErrorData,
}

impl Malformed {
    /// A parse error, -32700.
    pub(crate) fn parse(id: Option<RequestId>, message: String) -> Self {
        let error = ErrorData::new(ErrorCode::PARSE_ERROR, message, None);
        Self { id, error }
    }

    /// An invalid request, -32600.
    pub(crate) fn request(id: Option<RequestId>, message: impl Into<String>) -> Self {
        let error = ErrorData::new(ErrorCode::INVALID_REQUEST, message.into(), None);
        Self { id, error }
    }

    /// The response, with `id: null` where the request's cannot be read.
    pub(crate) fn response(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "error": self.error})
    }
}

/// Parses one line or body.
pub(crate) fn parse_message(line: &[u8]) -> ParsedLine {
    const BOM: &[u8] = b"\xEF\xBB\xBF";
    let line = line.strip_prefix(BOM).unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return ParsedLine::Blank;
    }
    let parsed = match serde_json::from_slice::<IncomingMessage>(line) {
        Ok(message) => check_params(message),
        Err(_) => diagnose(line),
    };
    if let ParsedLine::Malformed(malformed) = parsed {
        return ParsedLine::Malformed(name_repeated_key(malformed, line));
    }
    parsed
}

/// The error, or that a key is given twice where that is the cause.
fn name_repeated_key(malformed: Malformed, line: &[u8]) -> Malformed {
    let is_json = malformed.error.code != ErrorCode::PARSE_ERROR;
    match repeated_key(line).filter(|_| is_json) {
        Some(key) => {
            let message = format!("the key '{}' is given twice", truncated(&key, KEY_CHARS));
            Malformed::request(malformed.id, message)
        }
        None => malformed,
    }
}

/// Parses one member of a batch.
pub(crate) fn parse_member(value: Value) -> ParsedLine {
    match IncomingMessage::deserialize_value(value.clone()) {
        Ok(message) => check_params(message),
        Err(_) => diagnose_value(value),
    }
}

trait FromValue: Sized {
    fn deserialize_value(value: Value) -> serde_json::Result<Self>;
}

impl FromValue for IncomingMessage {
    fn deserialize_value(value: Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }
}

/// Checks the params of a known method; a request with invalid ones is parsed as one of an unknown
/// method.
fn check_params(message: IncomingMessage) -> ParsedLine {
    if let JsonRpcMessage::Request(request) = &message
        && let ClientRequest::CustomRequest(custom) = &request.request
        && let Some(problem) = params_problem(custom, custom.get_meta())
    {
        return ParsedLine::Malformed(Malformed {
            id: Some(request.id.clone()),
            error: ErrorData::invalid_params(problem, None),
        });
    }
    ParsedLine::Message(Box::new(message))
}

fn diagnose(line: &[u8]) -> ParsedLine {
    if let Err(error) = std::str::from_utf8(line) {
        let message = format!("invalid UTF-8 at byte {}", error.valid_up_to());
        return ParsedLine::Malformed(Malformed::parse(find_id(line), message));
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(value) => diagnose_value(value),
        Err(error) => {
            let message = format!("invalid JSON: {error}");
            ParsedLine::Malformed(Malformed::parse(find_id(line), message))
        }
    }
}

/// Describes valid JSON that is not a message.
fn diagnose_value(value: Value) -> ParsedLine {
    let invalid_request =
        |id, message: &str| ParsedLine::Malformed(Malformed::request(id, message));
    let fields = match value {
        Value::Array(members) if members.is_empty() => {
            return invalid_request(None, "the batch is empty");
        }
        Value::Array(members) => return ParsedLine::Batch(members),
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return invalid_request(None, "a message must be a JSON object");
        }
    };
    let is_call = fields.contains_key("method");
    let is_response = fields.contains_key("result") || fields.contains_key("error");
    let Some(id) = fields.get("id") else {
        return if is_call || is_response {
            ParsedLine::Ignored
        } else {
            invalid_request(
                None,
                "a message must have a method, or an id with a result or an error",
            )
        };
    };
    if is_response && !is_call {
        return ParsedLine::Ignored;
    }
    let Ok(id) = serde_json::from_value::<RequestId>(id.clone()) else {
        return invalid_request(None, "id must be a string or an integer of 64 bits");
    };
    let problem = match (fields.get("jsonrpc"), fields.get("method")) {
        (Some(Value::String(version)), Some(Value::String(method))) if version == "2.0" => {
            let custom = CustomRequest::new(method.clone(), fields.get("params").cloned());
            if let Some(problem) =
                params_problem(&custom, custom.get_meta()).filter(|_| !is_response)
            {
                let error = ErrorData::invalid_params(problem, None);
                return ParsedLine::Malformed(Malformed {
                    id: Some(id),
                    error,
                });
            }
            "a request has a method and params, and neither result nor error"
        }
        (Some(Value::String(version)), _) if version == "2.0" => "method must be a string",
        _ => "jsonrpc must be \"2.0\"",
    };
    invalid_request(Some(id), problem)
}

/// The value of the first `id` at the first level of an object that may be truncated or malformed
/// anywhere.
pub(crate) fn find_id(line: &[u8]) -> Option<RequestId> {
    let (mut depth, mut pos) = (0_usize, 0_usize);
    while let Some(&byte) = line.get(pos) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = end_of_string(line, pos)?;
                let value = after_colon(line, end);
                if depth == 1 && &line[pos..end] == b"\"id\"" && value.is_some() {
                    return parse_scalar_id(line, value?);
                }
                pos = end;
                continue;
            }
            _ => {}
        }
        pos += 1;
    }
    None
}

/// One past the closing quote of the string that starts at `start`.
fn end_of_string(line: &[u8], start: usize) -> Option<usize> {
    let mut pos = start + 1;
    loop {
        match line.get(pos)? {
            b'\\' => pos += 2,
            b'"' => return Some(pos + 1),
            _ => pos += 1,
        }
    }
}

/// The start of the value, if a colon comes next.
fn after_colon(line: &[u8], pos: usize) -> Option<usize> {
    let colon = next_visible(line, pos)?;
    (line[colon] == b':')
        .then(|| next_visible(line, colon + 1))
        .flatten()
}

fn next_visible(line: &[u8], pos: usize) -> Option<usize> {
    let rest = line.get(pos..)?;
    let skipped = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    Some(pos + skipped)
}

/// A complete string or integer; none if it is truncated.
fn parse_scalar_id(line: &[u8], start: usize) -> Option<RequestId> {
    let end = if line[start] == b'"' {
        end_of_string(line, start)?
    } else {
        let rest = &line[start..];
        let is_end = |byte: &u8| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace();
        start + rest.iter().position(is_end)?
    };
    serde_json::from_slice(&line[start..end]).ok()
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
