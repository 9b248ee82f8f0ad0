//! Validation of arguments against tables.

use serde_json::json;

use super::*;
use crate::params::object_schema;

const TABLE: &[Parameter] = &[
    Parameter::required("command", ParameterKind::Text, "What to run"),
    Parameter::optional("args", ParameterKind::List, "Arguments"),
    Parameter::optional("timeout", ParameterKind::Integer(1, 60), "Seconds").with_default(15),
    Parameter::optional("force", ParameterKind::Flag, "At once").with_default_flag(false),
    Parameter::optional("mode", ParameterKind::Choice(&["line", "content"]), "Mode")
        .with_default_text("line"),
    Parameter::optional("envs", ParameterKind::Map, "Variables"),
    Parameter::optional("tail", ParameterKind::Object(TAIL), "Last lines"),
];

const TAIL: &[Parameter] = &[
    Parameter::optional("src", ParameterKind::Choice(&["stdout", "stderr"]), "Which")
        .with_default_text("stdout"),
    Parameter::optional("n", ParameterKind::Clamped(1, 100), "How many").with_default(10),
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
fn every_problem_is_reported_with_position_and_allowed_values() {
    let bad = check(json!({
        "comand": "ls", "timeout": -5, "args": ["a", 7], "mode": "all",
        "envs": {"A": 1}, "force": "yes"
    }));
    insta::assert_snapshot!(bad.unwrap_err().replace("; p", ";\np"));
}

#[test]
fn huge_numbers_are_reported_as_given() {
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
    const PORT: &[Parameter] = &[Parameter::optional("port", ParameterKind::Port, "")];
    let read = |given: serde_json::Value| {
        let map = json!({"port": given})
            .as_object()
            .cloned()
            .unwrap_or_default();
        Arguments::check(PORT, map).map(|mut it| it.take_port("port"))
    };
    for (given, port) in [
        (json!(1), PortArgument::Number(1)),
        (json!(65_535), PortArgument::Number(65_535)),
        (json!("3000"), PortArgument::Number(3_000)),
        (json!(3000.0), PortArgument::Number(3_000)),
        (json!("auto"), PortArgument::Auto),
    ] {
        assert_eq!(read(given.clone()).unwrap(), Some(port), "{given}");
    }
    for given in [json!(0), json!(65_536), json!("any"), json!(1.5), json!([])] {
        let actual = read(given).unwrap_err().to_string();
        assert!(
            actual.ends_with("allowed: a port from 1 to 65535, or auto"),
            "{actual}"
        );
    }
    assert_eq!(read(json!(null)).unwrap(), None);
}

#[test]
fn queries_spell_numbers_flags_and_lists() {
    let mut arguments =
        Arguments::check_query(TABLE, "command=a%20b&args=1&args=2&timeout=7&force=true").unwrap();
    assert_eq!(arguments.required_text("command"), "a b");
    assert_eq!(arguments.list("args"), ["1", "2"]);
    assert_eq!(arguments.integer("timeout"), Some(7));
    assert!(arguments.flag("force"));
}

#[test]
fn queries_with_doubles_and_unknowns_are_refused() {
    let bad = Arguments::check_query(TABLE, "command=a&timeout=1&timeout=2&x=1").unwrap_err();
    insta::assert_snapshot!(bad);
    for (query, problem) in [
        ("command=%ff", "parameter 'command' is not UTF-8"),
        ("command=a&%c3=1", "parameter '%c3' is not UTF-8"),
    ] {
        let bad = Arguments::check_query(TABLE, query).unwrap_err();
        assert_eq!(
            bad.problems.first().map(String::as_str),
            Some(problem),
            "{bad:?}"
        );
    }
    assert!(Arguments::check_query(TABLE, "command=%c3%a9%EF%BF%BD+").is_ok());
}

#[test]
fn the_schema_is_closed_and_plain() {
    insta::assert_json_snapshot!(object_schema(TABLE));
}
