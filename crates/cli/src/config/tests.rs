use std::fs;
use std::path::Path;

use super::value::Value;
use super::*;
use crate::error::CommandError;

fn load(file: &str, env: &[(&str, &str)], set: &[&str]) -> Result<Config, String> {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    fs::write(&path, file).unwrap();
    let flags = Flags {
        file: Some(path),
        set: set.iter().map(|&given| given.to_owned()).collect(),
        ..Flags::default()
    };
    let env: Environment = env.iter().copied().collect();
    let hide = |error: CommandError| {
        error
            .to_string()
            .replace(&root.path().display().to_string(), "")
    };
    Config::load(&flags, &env).map_err(hide)
}

fn value(config: &Config, name: &str) -> (String, String) {
    let setting = config.get(name);
    let source = match &setting.source {
        Source::File(_, line) => format!("line {line}"),
        other @ (Source::Default | Source::Variable(_) | Source::Flag(_)) => other.to_string(),
    };
    (setting.value.to_string(), source)
}

#[test]
fn flags_win_over_the_environment_over_files_over_defaults() {
    const KEY: &str = "retention.command_seconds";
    let file = "[retention]\n\ncommand_seconds = 10\n";
    let env = [("PROCESS_RETENTION_SECONDS", "20")];
    let own = [env[0], ("OSTLER_RETENTION_COMMAND_SECONDS", "30")];
    let flag = ["retention.command_seconds=40"];
    let told = |file, env: &[_], set: &[_]| value(&load(file, env, set).unwrap(), KEY);
    let pair = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    assert_eq!(told("", &[], &[]), pair("3600", "default"));
    assert_eq!(told(file, &[], &[]), pair("10", "line 3"));
    assert_eq!(
        told(file, &env, &[]),
        pair("20", "environment PROCESS_RETENTION_SECONDS")
    );
    assert_eq!(
        told(file, &own, &[]),
        pair("30", "environment OSTLER_RETENTION_COMMAND_SECONDS")
    );
    assert_eq!(told(file, &own, &flag), pair("40", "flag --set"));
}

#[test]
fn the_variables_of_the_documents_are_honoured() {
    let env = [
        ("ALLOWED_COMMANDS", "ls, git,/usr/bin/env"),
        ("PROCESS_RETENTION_SECONDS", "forever"),
        ("DEFAULT_ENCODING", "gbk"),
        ("OUTPUT_STORAGE_PATH", "/var//somewhere/"),
    ];
    let config = load("", &env, &[]).unwrap();
    let settings = config.engine_settings(Vec::new());
    let allowed = ["ls", "git", "/usr/bin/env"].map(str::to_owned).to_vec();
    assert_eq!(settings.allowed_commands, Some(allowed.clone()));
    assert_eq!(settings.retention.command, None);
    assert_eq!(settings.default_encoding.as_deref(), Some("gbk"));
    assert_eq!(settings.state_dir, Path::new("/var/somewhere"));
    assert_eq!(config.front_policy().allowed_commands, Some(allowed));
}

#[test]
fn what_a_file_says_is_no_policy_of_a_front() {
    let config = load("allowed_commands = [\"ls\"]", &[], &[]).unwrap();
    assert_eq!(config.front_policy(), FrontPolicy::default());
    assert!(
        config
            .engine_settings(Vec::new())
            .allowed_commands
            .is_some()
    );
}

#[test]
fn a_bad_value_tells_key_value_place_and_what_is_allowed() {
    let told = |file, env: &[_], set: &[_]| load(file, env, set).unwrap_err();
    let all = [
        told("[retention]\ncommand_seconds = -1", &[], &[]),
        told("[retention]\ncommand_seconds = 1.5", &[], &[]),
        told("[environment]\ninherit = \"maybe\"", &[], &[]),
        told("allowed_commands = []", &[], &[]),
        told("allowed_commands = [\"./ls\"]", &[], &[]),
        told("allowed_comands = [\"ls\"]", &[], &[]),
        told("[retention]\ncommand_secnds = 1", &[], &[]),
        told("zzz = 1", &[], &[]),
        told("state_dir = \"here\"", &[], &[]),
        told("a = = 1", &[], &[]),
        told("", &[("ALLOWED_COMMANDS", "")], &[]),
        told("", &[("PROCESS_RETENTION_SECONDS", "soon")], &[]),
        told("", &[("DEFAULT_ENCODING", "klingon")], &[]),
        told("", &[], &["journal.mirror=xml"]),
        told("", &[], &["journal.mirror"]),
        told("", &[], &["mcp.tools=all"]),
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    let config = load("", &[("DEFAULT_ENCODING", "")], &[]).unwrap();
    assert_eq!(config.get("default_encoding").value, Value::Unset);
}

#[test]
fn every_default_is_a_value_of_its_kind() {
    for key in &KEYS {
        let default = key.default.map(|text| value::Raw::Text(text.to_owned()));
        assert!(
            default.is_none_or(|raw| key.kind.accept(&raw).is_some()),
            "{}",
            key.name
        );
    }
}
