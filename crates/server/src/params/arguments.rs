//! What was given, held against what is taken. Every problem is told at once.

use serde_json::{Map, Value};

use super::table::{Kind, Parameter, Preset};

/// The most characters of a wrong value that a message repeats.
const QUOTE_CHARS: usize = 60;

/// Checked values of a table's parameters.
#[derive(Debug)]
pub(crate) struct Arguments {
    table: &'static [Parameter],
    values: Map<String, Value>,
}

/// A port that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    /// This one.
    Number(u16),
    /// Any that is free.
    Auto,
}

/// Everything that was wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("; "))]
pub(crate) struct BadArguments {
    problems: Vec<String>,
}

impl Arguments {
    /// Holds `given` against `table`. Null counts as not given.
    pub(crate) fn check(
        table: &'static [Parameter],
        given: Map<String, Value>,
    ) -> Result<Self, BadArguments> {
        let mut values = given;
        values.retain(|_, value| !value.is_null());
        let mut problems = unknown(table, &values);
        for parameter in table {
            match values.get(parameter.name) {
                Some(value) => problems.extend(wrong_in(parameter, value)),
                None if parameter.required => problems.push(missing(parameter)),
                None => {}
            }
        }
        if problems.is_empty() {
            Ok(Self { table, values })
        } else {
            Err(BadArguments { problems })
        }
    }

    /// Holds a query string against `table`; a list is given by repeating its parameter.
    pub(crate) fn check_query(
        table: &'static [Parameter],
        query: &str,
    ) -> Result<Self, BadArguments> {
        let mut given = Map::new();
        let mut problems = Vec::new();
        for (name, text) in form_urlencoded::parse(query.as_bytes()) {
            let known = table.iter().find(|parameter| parameter.name == name);
            match known.map(|parameter| parameter.kind) {
                Some(Kind::List) => append(&mut given, &name, &text),
                _ if given.contains_key(name.as_ref()) => {
                    problems.push(format!("parameter '{name}' is given twice"));
                }
                kind => {
                    given.insert(name.into_owned(), spelled(kind, &text));
                }
            }
        }
        match Self::check(table, given) {
            Ok(arguments) if problems.is_empty() => Ok(arguments),
            Ok(_) => Err(BadArguments { problems }),
            Err(bad) => {
                problems.extend(bad.problems);
                Err(BadArguments { problems })
            }
        }
    }

    /// A text; none when it was not given and has no preset.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        match self.values.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => match self.preset(name) {
                Some(Preset::Text(text)) => Some(text.to_owned()),
                _ => None,
            },
        }
    }

    /// A port; none when it was not given.
    pub(crate) fn port(&mut self, name: &'static str) -> Option<Port> {
        as_port(&self.values.remove(name)?)
    }

    /// A text that the table requires or presets.
    pub(crate) fn required_text(&mut self, name: &'static str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// A number.
    pub(crate) fn integer(&self, name: &'static str) -> Option<i64> {
        match self.values.get(name) {
            Some(value) => whole(value).map(|number| self.clamped(name, number)),
            None => match self.preset(name) {
                Some(Preset::Integer(number)) => Some(number),
                _ => None,
            },
        }
    }

    /// A number whose range does not go below zero.
    pub(crate) fn count(&self, name: &'static str) -> Option<u64> {
        self.integer(name).and_then(|number| number.try_into().ok())
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, name: &'static str) -> bool {
        match self.values.get(name) {
            Some(value) => value == &Value::Bool(true),
            None => matches!(self.preset(name), Some(Preset::Flag(true))),
        }
    }

    /// A list; empty when not given.
    pub(crate) fn list(&mut self, name: &'static str) -> Vec<String> {
        match self.values.remove(name) {
            Some(Value::Array(items)) => items.into_iter().filter_map(into_text).collect(),
            Some(Value::String(text)) => text.split(',').map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// Names and values; empty when not given.
    pub(crate) fn map(&mut self, name: &'static str) -> Vec<(String, String)> {
        match self.values.remove(name) {
            Some(Value::Object(map)) => map
                .into_iter()
                .filter_map(|(name, value)| Some((name, spelled_out(value)?)))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The names of what was given and not taken yet.
    pub(crate) fn given(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The parameters of an object inside; none when it was not given.
    pub(crate) fn object(&mut self, name: &'static str) -> Option<Self> {
        match (self.parameter(name)?.kind, self.values.remove(name)?) {
            (Kind::Object(table), Value::Object(mut values)) => {
                values.retain(|_, value| !value.is_null());
                Some(Self { table, values })
            }
            _ => None,
        }
    }

    /// Whether a value was given, its preset aside.
    pub(crate) fn is_given(&self, name: &'static str) -> bool {
        self.values.contains_key(name)
    }

    fn clamped(&self, name: &'static str, number: i64) -> i64 {
        match self.parameter(name).map(|parameter| parameter.kind) {
            Some(Kind::Clamped(_, max)) => number.min(max),
            _ => number,
        }
    }

    fn preset(&self, name: &'static str) -> Option<Preset> {
        self.parameter(name)?.preset
    }

    fn parameter(&self, name: &'static str) -> Option<&'static Parameter> {
        let parameter = self.table.iter().find(|parameter| parameter.name == name);
        debug_assert!(parameter.is_some(), "'{name}' is not in the table");
        parameter
    }
}

fn as_port(value: &Value) -> Option<Port> {
    let number = match value.as_str() {
        Some("auto") => return Some(Port::Auto),
        Some(text) => text.parse().ok()?,
        None => whole(value)?,
    };
    let port = u16::try_from(number).ok().filter(|port| *port > 0);
    port.map(Port::Number)
}

fn into_text(value: Value) -> Option<String> {
    if let Value::String(text) = value {
        Some(text)
    } else {
        None
    }
}

/// As [`into_text`]; a number is as good as its text.
fn spelled_out(value: Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            into_text(value)
        }
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

/// The value a word of a query string spells; what spells none stays a text, for the check.
fn spelled(kind: Option<Kind>, text: &str) -> Value {
    let parsed = match kind {
        Some(Kind::Integer(..) | Kind::Clamped(..)) => text.parse::<i64>().ok().map(Value::from),
        Some(Kind::Flag) => match text {
            "true" | "1" => Some(true.into()),
            "false" | "0" => Some(false.into()),
            _ => None,
        },
        Some(
            Kind::Text
            | Kind::Choice(_)
            | Kind::List
            | Kind::Words
            | Kind::Hosts
            | Kind::Map
            | Kind::Amounts
            | Kind::Port
            | Kind::Object(_),
        )
        | None => None,
    };
    parsed.unwrap_or_else(|| text.into())
}

fn unknown(table: &[Parameter], values: &Map<String, Value>) -> Vec<String> {
    let names = || {
        let names: Vec<&str> = table.iter().map(|parameter| parameter.name).collect();
        if names.is_empty() {
            return "none".to_owned();
        }
        names.join(", ")
    };
    values
        .keys()
        .filter(|name| !table.iter().any(|parameter| parameter.name == *name))
        .map(|name| format!("unknown parameter '{}'; allowed: {}", cut(name), names()))
        .collect()
}

/// In the words of document 003.
fn missing(parameter: &Parameter) -> String {
    let allowed = parameter.kind.allowed();
    format!(
        "Missing required parameter: {}; allowed: {allowed}",
        parameter.name
    )
}

/// What is wrong with a value, objects looked into.
fn wrong_in(parameter: &Parameter, value: &Value) -> Vec<String> {
    match (parameter.kind, value) {
        (Kind::Object(table), Value::Object(fields)) => {
            match Arguments::check(table, fields.clone()) {
                Ok(_) => Vec::new(),
                Err(bad) => {
                    let place = |problem| format!("in '{}': {problem}", parameter.name);
                    bad.problems.into_iter().map(place).collect()
                }
            }
        }
        _ => wrong(parameter, value).into_iter().collect(),
    }
}

fn wrong(parameter: &Parameter, value: &Value) -> Option<String> {
    let place = match (parameter.kind, value) {
        (Kind::Text | Kind::Hosts, Value::String(_)) | (Kind::Flag, Value::Bool(_)) => return None,
        (Kind::Choice(words), Value::String(text)) if words.contains(&text.as_str()) => {
            return None;
        }
        (Kind::Integer(min, max), value)
            if whole(value).is_some_and(|number| (min..=max).contains(&number)) =>
        {
            return None;
        }
        (Kind::Clamped(min, _), value) if whole(value).is_some_and(|number| number >= min) => {
            return None;
        }
        (Kind::List | Kind::Words | Kind::Hosts, Value::Array(items)) => {
            let place = items.iter().position(|item| !item.is_string())?;
            return Some(not_text(
                &format!("{}[{place}]", parameter.name),
                &items[place],
            ));
        }
        (Kind::Port, value) if as_port(value).is_some() => return None,
        (Kind::Amounts, Value::Object(map)) => {
            let is_amount = |value: &Value| value.is_string() || value.is_number();
            let (name, value) = map.iter().find(|(_, value)| !is_amount(value))?;
            return Some(format!(
                "parameter '{}.{}' is {}; allowed: text or a number",
                parameter.name,
                cut(name),
                quoted(value)
            ));
        }
        (Kind::Map, Value::Object(map)) => {
            let (name, value) = map.iter().find(|(_, value)| !value.is_string())?;
            return Some(not_text(
                &format!("{}.{}", parameter.name, cut(name)),
                value,
            ));
        }
        _ => parameter.name,
    };
    let allowed = parameter.kind.allowed();
    Some(format!(
        "parameter '{place}' is {}; allowed: {allowed}",
        quoted(value)
    ))
}

fn not_text(place: &str, value: &Value) -> String {
    format!("parameter '{place}' is {}; allowed: text", quoted(value))
}

/// A whole number, also where it is spelled `15.0`.
fn whole(value: &Value) -> Option<i64> {
    /// Every whole number up to this size is exact as a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        let exact = number.fract() == 0.0 && number.abs() <= EXACT;
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        exact.then_some(number as i64)
    })
}

fn quoted(value: &Value) -> String {
    value.as_str().map_or_else(
        || cut(&value.to_string()),
        |text| format!("'{}'", cut(text)),
    )
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::params::schema;

    const TABLE: &[Parameter] = &[
        Parameter::required("command", Kind::Text, "What to run"),
        Parameter::optional("args", Kind::List, "Arguments"),
        Parameter::optional("timeout", Kind::Integer(1, 60), "Seconds").or(15),
        Parameter::optional("force", Kind::Flag, "At once").or_flag(false),
        Parameter::optional("mode", Kind::Choice(&["line", "content"]), "Mode").or_text("line"),
        Parameter::optional("envs", Kind::Map, "Variables"),
        Parameter::optional("tail", Kind::Object(TAIL), "Last lines"),
    ];

    const TAIL: &[Parameter] = &[
        Parameter::optional("src", Kind::Choice(&["stdout", "stderr"]), "Which").or_text("stdout"),
        Parameter::optional("n", Kind::Clamped(1, 100), "How many").or(10),
    ];

    fn check(given: Value) -> Result<Arguments, String> {
        let Value::Object(given) = given else {
            panic!("an object")
        };
        Arguments::check(TABLE, given).map_err(|bad| bad.to_string())
    }

    #[test]
    fn presets_stand_in() {
        let mut arguments = check(json!({"command": "ls", "args": null})).unwrap();
        assert_eq!(arguments.required_text("command"), "ls");
        assert_eq!(arguments.integer("timeout"), Some(15));
        assert_eq!(arguments.text("mode").as_deref(), Some("line"));
        assert!(!arguments.flag("force"));
        assert!(arguments.list("args").is_empty());
    }

    #[test]
    fn a_whole_float_is_a_whole_number() {
        let arguments = check(json!({"command": "ls", "timeout": 20.0})).unwrap();
        assert_eq!(arguments.integer("timeout"), Some(20));
    }

    #[test]
    fn every_problem_is_told_with_place_and_allowance() {
        let bad = check(json!({
            "comand": "ls", "timeout": -5, "args": ["a", 7], "mode": "all",
            "envs": {"A": 1}, "force": "yes"
        }));
        insta::assert_snapshot!(bad.unwrap_err().replace("; p", ";\np"));
    }

    #[test]
    fn huge_numbers_are_told_as_given() {
        let bad = check(json!({"command": "ls", "timeout": 1e300})).unwrap_err();
        assert!(
            bad.contains("1e+300; allowed: a whole number from 1 to 60"),
            "{bad}"
        );
        let bad = check(json!({"command": "ls", "timeout": u64::MAX})).unwrap_err();
        assert!(bad.contains("18446744073709551615"), "{bad}");
    }

    #[test]
    fn an_object_inside_has_presets_and_problems_of_its_own() {
        let mut arguments = check(json!({"command": "ls", "tail": {"n": null}})).unwrap();
        assert!(arguments.is_given("tail") && !arguments.is_given("timeout"));
        let mut tail = arguments.object("tail").unwrap();
        assert_eq!(tail.text("src").as_deref(), Some("stdout"));
        assert_eq!(tail.count("n"), Some(10));
        assert!(arguments.object("tail").is_none());
        let bad = check(json!({"command": "ls", "tail": {"src": "both", "n": 0, "x": 1}}));
        insta::assert_snapshot!(bad.unwrap_err().replace("; in", ";\nin"));
        let bad = check(json!({"command": "ls", "tail": 5})).unwrap_err();
        assert_eq!(bad, "parameter 'tail' is 5; allowed: an object with src, n");
    }

    #[test]
    fn too_much_counts_as_the_most_where_it_is_said() {
        for (given, taken) in [(1, 1), (99, 99), (100, 100), (101, 100), (i64::MAX, 100)] {
            let mut arguments = check(json!({"command": "ls", "tail": {"n": given}})).unwrap();
            let tail = arguments.object("tail").unwrap();
            assert_eq!(tail.integer("n"), Some(taken), "{given}");
        }
    }

    #[test]
    fn a_port_is_a_number_or_auto() {
        const PORT: &[Parameter] = &[Parameter::optional("port", Kind::Port, "")];
        let read = |given: serde_json::Value| {
            let map = json!({"port": given})
                .as_object()
                .cloned()
                .unwrap_or_default();
            Arguments::check(PORT, map).map(|mut it| it.port("port"))
        };
        for (given, port) in [
            (json!(1), Port::Number(1)),
            (json!(65_535), Port::Number(65_535)),
            (json!("3000"), Port::Number(3_000)),
            (json!(3000.0), Port::Number(3_000)),
            (json!("auto"), Port::Auto),
        ] {
            assert_eq!(read(given.clone()).unwrap(), Some(port), "{given}");
        }
        for given in [json!(0), json!(65_536), json!("any"), json!(1.5), json!([])] {
            let told = read(given).unwrap_err().to_string();
            assert!(
                told.ends_with("allowed: a port from 1 to 65535, or auto"),
                "{told}"
            );
        }
        assert_eq!(read(json!(null)).unwrap(), None);
    }

    #[test]
    fn queries_spell_numbers_flags_and_lists() {
        let mut arguments =
            Arguments::check_query(TABLE, "command=a%20b&args=1&args=2&timeout=7&force=true")
                .unwrap();
        assert_eq!(arguments.required_text("command"), "a b");
        assert_eq!(arguments.list("args"), ["1", "2"]);
        assert_eq!(arguments.integer("timeout"), Some(7));
        assert!(arguments.flag("force"));
    }

    #[test]
    fn queries_with_doubles_and_unknowns_are_refused() {
        let bad = Arguments::check_query(TABLE, "command=a&timeout=1&timeout=2&x=1").unwrap_err();
        insta::assert_snapshot!(bad);
    }

    #[test]
    fn the_schema_is_closed_and_plain() {
        insta::assert_json_snapshot!(schema(TABLE));
    }
}
