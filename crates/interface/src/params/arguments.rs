//! Validates arguments against a table of parameters. Every problem is reported at once.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::names;
use super::parameter::{DefaultValue, Parameter, ParameterKind};

/// The most characters of a wrong value that a message quotes.
const QUOTE_CHARS: usize = 60;

/// Validated values of a table's parameters.
#[derive(Debug)]
pub struct Arguments {
    table: &'static [Parameter],
    values: Map<String, Value>,
}

/// The value of a port parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortArgument {
    /// A fixed port.
    Number(u16),
    /// Any free port.
    Auto,
}

/// The value of a command parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandArgument {
    /// A script for a shell.
    Script(String),
    /// A program and its arguments.
    Program(Vec<String>),
}

/// All problems of the arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("; "))]
pub struct ArgumentsError {
    problems: Vec<String>,
}

impl Arguments {
    /// Validates `given_names` against `parameter`. Null counts as absent.
    pub fn check(
        table: &'static [Parameter],
        raw_values: Map<String, Value>,
    ) -> Result<Self, ArgumentsError> {
        let mut values = raw_values;
        values.retain(|_, value| !value.is_null());
        let mut problems = names::resolve_names(table, &mut values);
        for parameter in table {
            match values.get(parameter.name) {
                Some(value) => problems.extend(value_problems(parameter, value)),
                None if parameter.required => problems.push(missing_message(parameter)),
                None => {}
            }
        }
        if problems.is_empty() {
            Ok(Self { table, values })
        } else {
            Err(ArgumentsError { problems })
        }
    }

    /// Validates a query string against `parameter`; a list is given by repeating its parameter.
    pub fn check_query(table: &'static [Parameter], query: &str) -> Result<Self, ArgumentsError> {
        let mut values = Map::new();
        let mut problems = Vec::new();
        for pair in query.split('&') {
            if percent_decode_str(pair).decode_utf8().is_err() {
                let name = pair.split_once('=').map_or(pair, |(name, _)| name);
                let name: String = name.chars().take(QUOTE_CHARS).collect();
                problems.push(format!("parameter '{name}' is not UTF-8"));
            }
        }
        for (name, text) in form_urlencoded::parse(query.as_bytes()) {
            let known = table.iter().find(|parameter| parameter.name == name);
            match known.map(|parameter| parameter.kind) {
                Some(ParameterKind::List) => append(&mut values, &name, &text),
                _ if values.contains_key(name.as_ref()) => {
                    problems.push(format!("parameter '{name}' is given twice"));
                }
                kind => {
                    values.insert(name.into_owned(), parse_query_value(kind, &text));
                }
            }
        }
        match Self::check(table, values) {
            Ok(arguments) if problems.is_empty() => Ok(arguments),
            Ok(_) => Err(ArgumentsError { problems }),
            Err(error) => {
                problems.extend(error.problems);
                Err(ArgumentsError { problems })
            }
        }
    }

    /// A text; none when it is absent and has no default.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        match self.values.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => match self.default_value(name) {
                Some(DefaultValue::Text(text)) => Some(text.to_owned()),
                _ => None,
            },
        }
    }

    /// A port; none when absent.
    pub fn take_port(&mut self, name: &'static str) -> Option<PortArgument> {
        parse_port(&self.values.remove(name)?)
    }

    /// A text that is required or has a default.
    pub fn required_text(&mut self, name: &'static str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// The value of an integer parameter.
    pub fn integer(&self, name: &'static str) -> Option<i64> {
        match self.values.get(name) {
            Some(value) => as_whole_number(value).map(|number| self.clamp(name, number)),
            None => match self.default_value(name) {
                Some(DefaultValue::Integer(number)) => Some(number),
                _ => None,
            },
        }
    }

    /// The value of an integer parameter without negative values.
    pub fn count(&self, name: &'static str) -> Option<u64> {
        self.integer(name).and_then(|number| number.try_into().ok())
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &'static str) -> bool {
        match self.values.get(name) {
            Some(value) => value == &Value::Bool(true),
            None => matches!(self.default_value(name), Some(DefaultValue::Flag(true))),
        }
    }

    /// A list; empty when not given.
    pub fn list(&mut self, name: &'static str) -> Vec<String> {
        match self.values.remove(name) {
            Some(Value::Array(items)) => items.into_iter().filter_map(into_string).collect(),
            Some(Value::String(text)) => text.split(',').map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// A command; none when absent.
    pub fn take_command(&mut self, name: &'static str) -> Option<CommandArgument> {
        match self.values.remove(name)? {
            Value::String(script) => Some(CommandArgument::Script(script)),
            Value::Array(words) => {
                let words = words.into_iter().filter_map(into_string);
                Some(CommandArgument::Program(words.collect()))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }

    /// A list of texts, which may be given as a single one; empty when absent.
    pub fn ids(&mut self, name: &'static str) -> Vec<String> {
        match self.values.remove(name) {
            Some(Value::Array(items)) => items.into_iter().filter_map(into_string).collect(),
            Some(Value::String(text)) => vec![text],
            _ => Vec::new(),
        }
    }

    /// Names and values; empty when absent.
    pub fn map(&mut self, name: &'static str) -> Vec<(String, String)> {
        match self.values.remove(name) {
            Some(Value::Object(map)) => map
                .into_iter()
                .filter_map(|(name, value)| Some((name, scalar_to_string(value)?)))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The names of the arguments not taken yet.
    pub fn given_names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The parameters of a nested object; none when absent.
    pub fn object(&mut self, name: &'static str) -> Option<Self> {
        match (self.parameter(name)?.kind, self.values.remove(name)?) {
            (ParameterKind::Object(table), Value::Object(mut values)) => {
                values.retain(|_, value| !value.is_null());
                Some(Self { table, values })
            }
            _ => None,
        }
    }

    /// Whether a value was given, not a default.
    pub fn is_given(&self, name: &'static str) -> bool {
        self.values.contains_key(name)
    }

    fn clamp(&self, name: &'static str, number: i64) -> i64 {
        match self.parameter(name).map(|parameter| parameter.kind) {
            Some(ParameterKind::Clamped(_, max)) => number.min(max),
            _ => number,
        }
    }

    fn default_value(&self, name: &'static str) -> Option<DefaultValue> {
        self.parameter(name)?.default
    }

    fn parameter(&self, name: &'static str) -> Option<&'static Parameter> {
        let parameter = self.table.iter().find(|parameter| parameter.name == name);
        debug_assert!(parameter.is_some(), "'{name}' is not in the table");
        parameter
    }
}

fn parse_port(value: &Value) -> Option<PortArgument> {
    let number = match value.as_str() {
        Some("auto") => return Some(PortArgument::Auto),
        Some(text) => text.parse().ok()?,
        None => as_whole_number(value)?,
    };
    let port = u16::try_from(number).ok().filter(|port| *port > 0);
    port.map(PortArgument::Number)
}

fn into_string(value: Value) -> Option<String> {
    if let Value::String(text) = value {
        Some(text)
    } else {
        None
    }
}

/// As [`into_string`]; numbers, true and false are converted to text.
fn scalar_to_string(value: Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => into_string(value),
    }
}

fn append(given: &mut Map<String, Value>, name: &str, text: &str) {
    let list = given
        .entry(name)
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(items) = list {
        items.push(text.into());
    }
}

/// The value of a word in a query string; an invalid one stays a text, for the validation.
fn parse_query_value(kind: Option<ParameterKind>, text: &str) -> Value {
    let parsed = match kind {
        Some(ParameterKind::Integer(..) | ParameterKind::Clamped(..)) => {
            text.parse::<i64>().ok().map(Value::from)
        }
        Some(ParameterKind::Flag) => match text {
            "true" | "1" => Some(true.into()),
            "false" | "0" => Some(false.into()),
            _ => None,
        },
        Some(
            ParameterKind::Text
            | ParameterKind::Choice(_)
            | ParameterKind::List
            | ParameterKind::Command
            | ParameterKind::Ids
            | ParameterKind::Options
            | ParameterKind::Hosts
            | ParameterKind::Map
            | ParameterKind::Amounts
            | ParameterKind::Scalars
            | ParameterKind::Port
            | ParameterKind::Object(_),
        )
        | None => None,
    };
    parsed.unwrap_or_else(|| text.into())
}

/// The name of a JSON type in error messages.
fn missing_message(parameter: &Parameter) -> String {
    let allowed = parameter.kind.allowed_text();
    format!(
        "Missing required parameter: {}; allowed: {allowed}",
        parameter.name
    )
}

/// The problems with a value, including nested ones.
fn value_problems(parameter: &Parameter, value: &Value) -> Vec<String> {
    match (parameter.kind, value) {
        (ParameterKind::Object(table), Value::Object(fields)) => {
            match Arguments::check(table, fields.clone()) {
                Ok(_) => Vec::new(),
                Err(error) => {
                    let in_object = |problem| format!("in '{}': {problem}", parameter.name);
                    error.problems.into_iter().map(in_object).collect()
                }
            }
        }
        _ => value_problem(parameter, value).into_iter().collect(),
    }
}

fn value_problem(parameter: &Parameter, value: &Value) -> Option<String> {
    let value_path = match (parameter.kind, value) {
        (
            ParameterKind::Text
            | ParameterKind::Hosts
            | ParameterKind::Command
            | ParameterKind::Ids,
            Value::String(_),
        )
        | (ParameterKind::Flag, Value::Bool(_)) => return None,
        (ParameterKind::Choice(words), Value::String(text)) if words.contains(&text.as_str()) => {
            return None;
        }
        (ParameterKind::Integer(min, max), value)
            if as_whole_number(value).is_some_and(|number| (min..=max).contains(&number)) =>
        {
            return None;
        }
        (ParameterKind::Clamped(min, _), value)
            if as_whole_number(value).is_some_and(|number| number >= min) =>
        {
            return None;
        }
        (
            ParameterKind::List
            | ParameterKind::Command
            | ParameterKind::Ids
            | ParameterKind::Hosts,
            Value::Array(items),
        ) => {
            let index = items.iter().position(|item| !item.is_string())?;
            return Some(not_text_message(
                &format!("{}[{index}]", parameter.name),
                &items[index],
            ));
        }
        (ParameterKind::Port, value) if parse_port(value).is_some() => return None,
        (ParameterKind::Amounts, Value::Object(map)) => {
            let is_amount = |value: &Value| value.is_string() || value.is_number();
            let (name, value) = map.iter().find(|(_, value)| !is_amount(value))?;
            return Some(format!(
                "parameter '{}.{}' is {}; allowed: text or a number",
                parameter.name,
                truncate(name),
                quote(value)
            ));
        }
        (ParameterKind::Scalars, Value::Object(map)) => {
            let is_scalar = |value: &Value| !value.is_array() && !value.is_object();
            let (name, value) = map.iter().find(|(_, value)| !is_scalar(value))?;
            return Some(format!(
                "parameter '{}.{}' is {}; allowed: text, a number, true or false",
                parameter.name,
                truncate(name),
                quote(value)
            ));
        }
        (ParameterKind::Map, Value::Object(map)) => {
            let (name, value) = map.iter().find(|(_, value)| !value.is_string())?;
            return Some(not_text_message(
                &format!("{}.{}", parameter.name, truncate(name)),
                value,
            ));
        }
        _ => parameter.name,
    };
    let allowed = parameter.kind.allowed_text();
    Some(format!(
        "parameter '{value_path}' is {}; allowed: {allowed}",
        quote(value)
    ))
}

fn not_text_message(place: &str, value: &Value) -> String {
    format!("parameter '{place}' is {}; allowed: text", quote(value))
}

/// An integer, also where it is written as `15.0`.
fn as_whole_number(value: &Value) -> Option<i64> {
    /// The largest integer up to which every integer is exact as a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        let exact = number.fract() == 0.0 && number.abs() <= EXACT;
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        exact.then_some(number as i64)
    })
}

fn quote(value: &Value) -> String {
    value.as_str().map_or_else(
        || truncate(&value.to_string()),
        |text| format!("'{}'", truncate(text)),
    )
}

pub(super) fn truncate(text: &str) -> String {
    match text.char_indices().nth(QUOTE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
