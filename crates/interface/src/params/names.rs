//! Names of arguments: aliases, entries of `options`, unknown ones.

use serde_json::{Map, Value};

use super::arguments::truncate;
use super::parameter::{Parameter, ParameterKind, ParameterLocation};

/// Moves every value to the canonical name of its parameter; returns the problems of the names.
pub(super) fn resolve_names(table: &[Parameter], values: &mut Map<String, Value>) -> Vec<String> {
    let mut problems = expand_options(table, values);
    problems.extend(resolve_aliases(table, values));
    let known = |name: &str| table.iter().any(|parameter| parameter.name == name);
    let unknown = values.keys().filter(|name| !known(name));
    let message = |name: &String| {
        let allowed = allowed_names(table);
        format!("unknown parameter '{}'; allowed: {allowed}", truncate(name))
    };
    problems.extend(unknown.map(message));
    problems
}

/// Moves the entries of `options` to the top level.
fn expand_options(table: &[Parameter], values: &mut Map<String, Value>) -> Vec<String> {
    let options = table
        .iter()
        .find(|it| matches!(it.kind, ParameterKind::Options));
    let Some(name) = options.map(|it| it.name) else {
        return Vec::new();
    };
    let allowed = names_at(table, ParameterLocation::Options);
    let entries = match values.remove(name) {
        None => return Vec::new(),
        Some(Value::Object(entries)) => entries,
        Some(_) => {
            return vec![format!(
                "parameter '{name}' is no object; allowed: one with {allowed}"
            )];
        }
    };
    let mut problems = Vec::new();
    for (entry, value) in entries.into_iter().filter(|(_, value)| !value.is_null()) {
        let known = table.iter().any(|it| it.name == entry && it.name != name);
        if !known {
            let entry = truncate(&entry);
            problems.push(format!(
                "unknown entry '{entry}' of '{name}'; allowed: {allowed}"
            ));
        } else if values.contains_key(&entry) {
            problems.push(given_twice(&entry, name));
        } else {
            values.insert(entry, value);
        }
    }
    problems
}

/// Replaces aliases by the canonical name.
fn resolve_aliases(table: &[Parameter], values: &mut Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    for parameter in table {
        let ParameterLocation::Alias(name) = parameter.location else {
            continue;
        };
        let Some(value) = values.remove(parameter.name) else {
            continue;
        };
        if values.contains_key(name) {
            problems.push(given_twice(name, parameter.name));
        } else {
            values.insert(name.to_owned(), value);
        }
    }
    problems
}

fn given_twice(name: &str, other: &str) -> String {
    format!(
        "parameter '{name}' is given twice, the second time by '{other}'; allowed: '{name}' alone"
    )
}

/// The list of all parameters, for error messages.
fn allowed_names(table: &[Parameter]) -> String {
    let listed = names_at(table, ParameterLocation::Listed);
    match names_at(table, ParameterLocation::Options) {
        rare if rare.is_empty() => listed,
        rare => format!("{listed} ({rare})"),
    }
}

fn names_at(table: &[Parameter], location: ParameterLocation) -> String {
    let at_location = table.iter().filter(|it| it.location == location);
    let names: Vec<&str> = at_location.map(|it| it.name).collect();
    if names.is_empty() && location == ParameterLocation::Listed {
        return "none".to_owned();
    }
    names.join(", ")
}
