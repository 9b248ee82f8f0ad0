//! The names of what was given: other names of a parameter, entries of `options`, unknown ones.

use serde_json::{Map, Value};

use super::arguments::cut;
use super::table::{Kind, Parameter, ParameterPlace};

/// Puts every value under the one name of its parameter; what is wrong with the names.
pub(super) fn resolve(table: &[Parameter], values: &mut Map<String, Value>) -> Vec<String> {
    let mut problems = unfold(table, values);
    problems.extend(rename(table, values));
    let known = |name: &str| table.iter().any(|parameter| parameter.name == name);
    let unknown = values.keys().filter(|name| !known(name));
    let told = |name: &String| {
        let allowed = allowed(table);
        format!("unknown parameter '{}'; allowed: {allowed}", cut(name))
    };
    problems.extend(unknown.map(told));
    problems
}

/// Takes the entries of `options` for parameters.
fn unfold(table: &[Parameter], values: &mut Map<String, Value>) -> Vec<String> {
    let options = table.iter().find(|it| matches!(it.kind, Kind::Options));
    let Some(name) = options.map(|it| it.name) else {
        return Vec::new();
    };
    let allowed = names(table, ParameterPlace::Options);
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
            let entry = cut(&entry);
            problems.push(format!(
                "unknown entry '{entry}' of '{name}'; allowed: {allowed}"
            ));
        } else if values.contains_key(&entry) {
            problems.push(twice(&entry, name));
        } else {
            values.insert(entry, value);
        }
    }
    problems
}

/// Gives what has another name the one that counts.
fn rename(table: &[Parameter], values: &mut Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    for parameter in table {
        let ParameterPlace::Alias(name) = parameter.place else {
            continue;
        };
        let Some(value) = values.remove(parameter.name) else {
            continue;
        };
        if values.contains_key(name) {
            problems.push(twice(name, parameter.name));
        } else {
            values.insert(name.to_owned(), value);
        }
    }
    problems
}

fn twice(name: &str, other: &str) -> String {
    format!(
        "parameter '{name}' is given twice, the second time by '{other}'; allowed: '{name}' alone"
    )
}

/// Every parameter there is, for people.
fn allowed(table: &[Parameter]) -> String {
    let listed = names(table, ParameterPlace::Listed);
    match names(table, ParameterPlace::Options) {
        rare if rare.is_empty() => listed,
        rare => format!("{listed} ({rare})"),
    }
}

fn names(table: &[Parameter], place: ParameterPlace) -> String {
    let of_place = table.iter().filter(|it| it.place == place);
    let names: Vec<&str> = of_place.map(|it| it.name).collect();
    if names.is_empty() && place == ParameterPlace::Listed {
        return "none".to_owned();
    }
    names.join(", ")
}
