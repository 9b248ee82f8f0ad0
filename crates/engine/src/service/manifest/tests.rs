//! Valid files, invalid files, and arbitrary input.

use std::path::Path;

use ostler_model::{
    BackendName, ByteString, Command, DependencyCondition, IsolationLevel, ReadyCondition,
    RestartPolicy,
};
use proptest::prelude::*;

use super::{ManifestChanges, diff, parse};
use crate::service::definition::{ServiceDefinition, TERMINAL_SIZE};
use ostler_model::PortRequest;

fn read(text: &str) -> std::collections::BTreeMap<String, ServiceDefinition> {
    parse(text, Path::new("/w")).expect("a good file")
}

fn refused(text: &str) -> String {
    parse(text, Path::new("/w"))
        .expect_err("a bad file")
        .to_string()
}

#[test]
fn a_pattern_within_ready_is_told_its_key() {
    for key in ["log", "pattern"] {
        let file = format!("[services.web]\ncommand = \"x\"\nready = {{ {key} = \"up\" }}");
        let problem = refused(&file);
        assert!(problem.contains("'ready_pattern'"), "{problem}");
    }
}

#[test]
fn a_container_is_a_table() {
    let services = read(
        r#"
[services.web]
command = "server"
backend = "container"
container = { image = "node:22", volumes = ["/srv/a:/a:rw"], stop_grace = "3s", reuse = false }
"#,
    );
    let options = &services["web"].options;
    assert_eq!(options.backend, Some(BackendName::container()));
    let container = &options.container;
    assert_eq!(container.image.as_deref(), Some("node:22"));
    assert!(container.volumes[0].write && container.reuse == Some(false));
    assert_eq!(
        container.stop_grace,
        Some(std::time::Duration::from_secs(3))
    );
    for (line, expected) in [
        ("backend = \"slurm\"", "allowed: \"local\" or \"container\""),
        (
            "container = { privileged = true }",
            "unknown key 'privileged'",
        ),
        ("container = { volumes = [\"/a\"] }", "is no volume"),
        ("container = \"node\"", "allowed: a table"),
    ] {
        let text = format!("[services.web]\ncommand = \"x\"\n{line}\n");
        assert!(refused(&text).contains(expected), "{}", refused(&text));
    }
}

#[test]
fn everything_that_can_be_said() {
    let services = read(
        r#"
[services.web]
command = "npm run dev"
cwd = "./apps/web"
env = { NODE_ENV = "development", WORKERS = 2 }
ready = { http = "/health" }
ready_pattern = 'ready in \d+'
fail_pattern = "FATAL"
ready_timeout = "90s"
port = "auto"
restart = { policy = "on-failure", max = 7 }
health = { http = "/", interval = "10s", failures = 2, restart = true }
depends_on = { db = "listening", migrate = "completed" }
terminal = true
level = "high"
description = "the front"

[services.db]
command = ["postgres", "-D", "data dir"]
cwd = "/srv/db"
ready = { tcp = 5432 }
port = 5432
restart = "always"
depends_on = []
"#,
    );
    let web = &services["web"];
    let script = Command::Shell {
        shell: ByteString::from("/bin/sh"),
        script: ByteString::from("npm run dev"),
    };
    assert_eq!(
        (&web.command, web.cwd.to_string()),
        (&script, "/w/apps/web".to_owned())
    );
    assert_eq!(
        web.options.set_env[1],
        (ByteString::from("WORKERS"), ByteString::from("2"))
    );
    let target = "/health".to_owned();
    assert_eq!(web.ready_when, Some(ReadyCondition::Http { target }));
    assert_eq!(web.ready_timeout_ms, Some(90_000));
    assert_eq!(
        (web.port, web.restart),
        (PortRequest::Lease, RestartPolicy::OnFailure { max: 7 })
    );
    let health = web.health.as_ref().expect("a rule");
    assert_eq!((health.failures, health.restart), (2, true));
    let needs: Vec<_> = web
        .depends_on
        .iter()
        .map(|it| (&*it.name, it.condition))
        .collect();
    assert_eq!(
        needs,
        [
            ("db", DependencyCondition::Listening),
            ("migrate", DependencyCondition::Completed)
        ]
    );
    assert_eq!(
        (web.options.pty, web.options.level),
        (Some(TERMINAL_SIZE), Some(IsolationLevel::High))
    );
    let db = &services["db"];
    assert_eq!(db.command.display(), "postgres -D 'data dir'");
    assert_eq!(
        (db.port, db.restart),
        (PortRequest::Fixed(5432), RestartPolicy::Always { max: 5 })
    );
    assert_eq!(read(""), std::collections::BTreeMap::new());
}

#[test]
fn errors_are_reported_with_line_and_what_is_allowed() {
    let web = |line: &str| format!("[services.web]\ncommand = \"x\"\n{line}\n");
    for (text, wanted) in [
        (
            "[service.web]".to_owned(),
            "line 1: unknown key 'service'; did you mean 'services'?",
        ),
        (
            web("comand = 1"),
            "line 3: unknown key 'comand' in services.web; did you mean 'command'?",
        ),
        (
            web("zzz = 1"),
            "line 3: unknown key 'zzz' in services.web; allowed: command, cwd, env, ready, ready_pattern, fail_pattern, ready_timeout, port, restart, health, depends_on, terminal, level, backend, container, record_input, description",
        ),
        (
            "\n\n[services.Web]\ncommand = \"x\"".to_owned(),
            "line 3: service 'Web': a name begins with a lower-case letter or digit and has only those and '_', '.', '-', at most 63 in all",
        ),
        (
            "[services.web]\ncwd = \"x\"".to_owned(),
            "line 1: services.web has no 'command'",
        ),
        (
            web("restart = \"sometimes\""),
            "line 3: services.web.restart is \"sometimes\"; allowed: \"never\", \"on-failure\", \"always\" or { policy = \"on-failure\", max = 5 }",
        ),
        (
            web("port = 70000"),
            "line 3: services.web.port is 70000; allowed: a number from 1 to 65535, or \"auto\"",
        ),
    ] {
        assert_eq!(refused(&text), wanted, "{text}");
    }
}

#[test]
fn values_with_their_own_grammar_are_reported_with_it() {
    let web = |line: &str| format!("[services.web]\ncommand = \"x\"\n{line}\n");
    for (text, wanted) in [
        (
            web("ready_timeout = 60"),
            "line 3: services.web.ready_timeout is 60; allowed: a duration in quotes: \"500ms\", \"5s\", \"2m\" or \"1h\"",
        ),
        (
            web("ready_timeout = \"0s\""),
            "line 3: services.web.ready_timeout is \"0s\"; allowed: a duration in quotes: \"500ms\", \"5s\", \"2m\" or \"1h\", more than 0 and at most a day",
        ),
        (
            web("ready_pattern = \"(\""),
            "line 3: services.web.ready_pattern is \"(\": it is no regular expression: unclosed group",
        ),
        (
            web("ready = { http = \"http://example.org/\" }"),
            "line 3: services.web.ready.http is \"http://example.org/\": it is no target of a probe; allowed: a path (\"/health\") on its main port, or a URL of this machine (\"http://127.0.0.1:3000/health\")",
        ),
        (
            web("ready = { htp = \"/\" }"),
            "line 3: unknown key 'htp' in services.web.ready; did you mean 'http'?",
        ),
        (
            web("health = { interval = \"5s\" }"),
            "line 3: services.web.health is { interval = \"5s\" }; allowed: a table with one of http, tcp, exec or probe (\"listening\" or \"responding\"), and interval, failures, restart",
        ),
        (
            web("restart = { policy = \"never\", max = 3 }"),
            "line 3: services.web.restart.max does not go with the policy \"never\"; leave it out",
        ),
        (
            web("depends_on = [\"web\"]"),
            "line 3: services.web.depends_on names 'web' itself",
        ),
        (
            web("depends_on = [\"db\", \"db:started\"]"),
            "line 3: services.web.depends_on names 'db' twice",
        ),
        (
            web("depends_on = { db = \"up\" }"),
            "line 3: services.web.depends_on.db is \"up\"; allowed: \"started\", \"listening\", \"ready\" or \"completed\"",
        ),
        (
            web("level = \"cell\""),
            "line 3: services.web.level is \"cell\"; allowed: \"basic\", \"medium\", \"high\" or \"container\"",
        ),
        (web("command = \"y\""), "line 3: duplicate key"),
        (
            web("port = "),
            "line 3: string values must be quoted, expected literal string",
        ),
    ] {
        assert_eq!(refused(&text), wanted, "{text}");
    }
}

#[test]
fn only_what_matters_counts_as_a_change() {
    let old = read(
        "[services.a]\ncommand = \"x\"\n[services.b]\ncommand = \"y\"\n[services.c]\ncommand = \"z\"",
    );
    let new = read(
        "[services.b]\ncommand = \"y\"\ndescription = \"told\"\n[services.c]\ncommand = \"z\"\nport = 1\n[services.d]\ncommand = \"w\"",
    );
    let prints = |of: &std::collections::BTreeMap<String, ServiceDefinition>| {
        of.iter()
            .map(|(name, it)| (name.clone(), it.fingerprint()))
            .collect()
    };
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    let expected = ManifestChanges {
        changed: names(&["c"]),
        added: names(&["d"]),
        removed: names(&["a"]),
    };
    assert_eq!(diff(&prints(&old), &prints(&new)), expected);
    assert_eq!(
        diff(&prints(&old), &prints(&old)),
        ManifestChanges::default()
    );
}

/// Lines of valid and invalid files.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "command",
        "cwd",
        "env",
        "ready",
        "ready_pattern",
        "ready_timeout",
        "port",
        "restart",
        "health",
        "depends_on",
        "terminal",
        "level",
        "x",
    ]);
    let value = prop::sample::select(vec![
        "\"a\"",
        "\"auto\"",
        "1",
        "-1",
        "true",
        "[]",
        "[\"a\"]",
        "[1]",
        "{}",
        "{ http = \"/\" }",
        "{ max = 1 }",
        "\"5s\"",
        "\"999999999999999999999h\"",
        "1.5",
        "1979-05-27",
        "{ a = { b = 1 } }",
        "\"(\"",
        "\"\"",
        "0x10",
        "\"\\u00e4s\"",
        "\"5ä\"",
    ]);
    prop_oneof![
        (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        Just("[services.a]".to_owned()),
        Just("[services.b]".to_owned()),
        Just("[services]".to_owned()),
        Just("services = 1".to_owned()),
        ".{0,30}",
    ]
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_every_refusal_names_a_line(
        lines in prop::collection::vec(line(), 0..12)
    ) {
        let text = lines.join("\n");
        if let Err(error) = parse(&text, Path::new("/w")) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1) + 1);
            prop_assert!(!error.problem.is_empty());
        }
    }
}

#[test]
fn the_reference_says_every_key_and_its_example_holds() {
    let text = include_str!("../../../../../docs/ostler-toml.md");
    let (_, rest) = text.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let services = read(example);
    let needs = |name: &str| {
        let needs = services[name].depends_on.iter();
        needs
            .map(|it| (it.name.clone(), it.condition))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        needs("migrate"),
        [("db".to_owned(), DependencyCondition::Ready)]
    );
    let web = [
        ("db".to_owned(), DependencyCondition::Listening),
        ("migrate".to_owned(), DependencyCondition::Completed),
    ];
    assert_eq!(needs("web"), web);
    for key in super::container::KEYS {
        assert!(text.contains(&format!("`{key}`")), "{key}");
    }
    for key in super::parse::KEYS {
        assert!(text.contains(&format!("\n| `{key}` |")), "{key}");
    }
    let bad = "[services.web]\ncommand = \"x\"\ndepends_on = [\"db:soon\"]\n";
    assert!(refused(bad).contains("cache:started"), "{}", refused(bad));
}
