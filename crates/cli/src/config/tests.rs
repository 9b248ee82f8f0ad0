use std::fs;
use std::path::Path;

use super::value::SettingValue;
use super::*;
use crate::error::CommandError;
use crate::process_env::ProcessEnv;

fn load(file: impl AsRef<[u8]>, env: &[(&str, &str)], set: &[&str]) -> Result<Config, String> {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    fs::write(&path, file).unwrap();
    let flags = ConfigFlags {
        file: Some(path),
        set: set.iter().map(|&given| given.to_owned()).collect(),
        ..ConfigFlags::default()
    };
    let env: ProcessEnv = env.iter().copied().collect();
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
        SettingSource::File(_, line) => format!("line {line}"),
        other @ (SettingSource::Default | SettingSource::Variable(_) | SettingSource::Flag(_)) => {
            other.to_string()
        }
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
    let setting = |file, env: &[_], set: &[_]| value(&load(file, env, set).unwrap(), KEY);
    let pair = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    assert_eq!(setting("", &[], &[]), pair("3600", "default"));
    assert_eq!(setting(file, &[], &[]), pair("10", "line 3"));
    assert_eq!(
        setting(file, &env, &[]),
        pair("20", "environment PROCESS_RETENTION_SECONDS")
    );
    assert_eq!(
        setting(file, &own, &[]),
        pair("30", "environment OSTLER_RETENTION_COMMAND_SECONDS")
    );
    assert_eq!(setting(file, &own, &flag), pair("40", "flag --set"));
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
    assert_eq!(config.client_policy().allowed_commands, Some(allowed));
}

#[test]
fn isolation_and_limits_reach_the_engine() {
    let file = "[isolation]\ndefault = \"high\"\nnetwork = [\"example.org\", \"10.0.0.0/8:22\"]\n\
                read = [\"/data\"]\nallow_degraded = [\"landlock\"]\n\
                [limits]\nmemory = \"512M\"\npids = 64\ncpus = \"0.5\"\n";
    let config = load(file, &[], &[]).unwrap();
    let settings = config.engine_settings(Vec::new());
    let isolation = &settings.isolation;
    assert_eq!(isolation.default, ostler_model::IsolationLevel::High);
    assert_eq!(isolation.network.to_string(), "example.org,10.0.0.0/8:22");
    assert_eq!(isolation.read, [ostler_model::ByteString::from("/data")]);
    assert_eq!(
        isolation.allow_degraded,
        [ostler_model::Capability::Landlock]
    );
    let limits = isolation.limits;
    assert_eq!(
        (limits.memory_bytes, limits.cpu_millis),
        (Some(512 << 20), Some(500))
    );
    assert_eq!(limits.pids, Some(64));
    assert!(!isolation.protect.is_empty() && !isolation.home_visible.is_empty());
    assert_eq!(
        settings.secrets.prefixes,
        ["OSTLER_SECRET_", "CLAUDE_SECRET_"]
    );
    // The environment of a client applies to that client.
    let config = load(file, &[("OSTLER_ISOLATION_DEFAULT", "basic")], &[]).unwrap();
    let level = config.client_policy().isolation;
    assert_eq!(level, Some(ostler_model::IsolationLevel::Basic));
}

#[test]
fn containers_reach_the_engine() {
    let file = "[container]\nsocket = \"unix:///run/x.sock\"\nimage = \"work:2\"\nnetworks = [\"none\"]\nvolumes = [\"/srv/a:rw\", \
                \"/srv/b\"]\ncapabilities = [\"NET_RAW\"]\nmounts = [\"/srv/b:/b\"]\nmemory = \"1G\"\n\
                images = [\"team/*\"]\nstop_grace_ms = 500\n";
    let settings = load(file, &[], &[]).unwrap().engine_settings(Vec::new());
    let container = settings.container;
    assert_eq!(container.defaults.image.as_deref(), Some("work:2"));
    assert_eq!(container.defaults.volumes[0].container, "/b".into());
    assert_eq!(
        container.defaults.stop_grace,
        Some(std::time::Duration::from_millis(500))
    );
    assert_eq!(container.networks, Some(vec!["none".to_owned()]));
    let writable: Vec<bool> = container.volumes.iter().map(|it| it.write).collect();
    assert_eq!(writable, [true, false]);
    assert_eq!(container.limits.memory_bytes, Some(1 << 30));
    assert_eq!(container.images, ["team/*"]);
    assert_eq!(container.socket.as_deref(), Some(Path::new("/run/x.sock")));
    let plain = load("", &[], &[])
        .unwrap()
        .engine_settings(Vec::new())
        .container;
    assert_eq!((plain.networks, plain.defaults.image), (None, None));
    assert_eq!(
        plain.limits,
        ostler_engine::ContainerSettings::default().limits
    );
}

#[test]
fn values_of_a_file_are_no_policy_of_a_proxy() {
    let config = load("allowed_commands = [\"ls\"]", &[], &[]).unwrap();
    assert_eq!(config.client_policy(), ClientPolicy::default());
    assert!(
        config
            .engine_settings(Vec::new())
            .allowed_commands
            .is_some()
    );
}

#[test]
fn an_invalid_value_is_reported_with_its_key_source_and_what_is_allowed() {
    let error_of = |file, env: &[_], set: &[_]| load(file, env, set).unwrap_err();
    let all = [
        error_of("[retention]\ncommand_seconds = -1", &[], &[]),
        error_of("[retention]\ncommand_seconds = 1.5", &[], &[]),
        error_of("[environment]\ninherit = \"maybe\"", &[], &[]),
        error_of("allowed_commands = []", &[], &[]),
        error_of("allowed_commands = [\"./ls\"]", &[], &[]),
        error_of("allowed_comands = [\"ls\"]", &[], &[]),
        error_of("[retention]\ncommand_secnds = 1", &[], &[]),
        error_of("zzz = 1", &[], &[]),
        error_of("state_dir = \"here\"", &[], &[]),
        error_of("a = = 1", &[], &[]),
        error_of("", &[("ALLOWED_COMMANDS", "")], &[]),
        error_of("", &[("PROCESS_RETENTION_SECONDS", "soon")], &[]),
        error_of("", &[("DEFAULT_ENCODING", "klingon")], &[]),
        error_of("", &[], &["journal.mirror=xml"]),
        error_of("", &[], &["journal.mirror"]),
        error_of("", &[], &["mcp.tools=all"]),
        error_of("[isolation]\nnetwork = [\"full\", \"a.example\"]", &[], &[]),
        error_of("[isolation]\nread = [\"here\"]", &[], &[]),
        error_of("[isolation]\nprotect = [\"../up\"]", &[], &[]),
        error_of("", &[("OSTLER_ISOLATION_DEFAULT", "vault")], &[]),
        error_of("", &[], &["isolation.allow_degraded=moat"]),
        error_of("", &[], &["limits.memory=much"]),
        error_of("[container]\nnetwork = \"host\"", &[], &[]),
        error_of("[container]\ndns = [\"dns.example\"]", &[], &[]),
        error_of("", &[], &["container.mounts=/a"]),
        error_of("", &[], &["container.volumes=data"]),
        error_of("", &[], &["container.capabilities=ALL"]),
        error_of("", &[("OSTLER_CONTAINER_IMAGES", "a b*")], &[]),
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    let config = load("", &[("DEFAULT_ENCODING", "")], &[]).unwrap();
    assert_eq!(config.get("default_encoding").value, SettingValue::Unset);
}

#[test]
fn every_default_is_a_value_of_its_kind() {
    for key in &KEYS {
        let default = key
            .default
            .map(|text| value::RawValue::Text(text.to_owned()));
        assert!(
            default.is_none_or(|raw| key.kind.parse(&raw).is_some()),
            "{}",
            key.name
        );
    }
}

#[test]
fn the_defaults_of_sessions_quotas_and_the_audit_log_are_those_of_the_reference() {
    let config = load("", &[], &[]).unwrap();
    let settings = config.engine_settings(Vec::new());
    assert_eq!(settings.quotas.finite_per_session, 20);
    assert_eq!(settings.quotas.others_per_principal, 1_000);
    let days = |days: u64| std::time::Duration::from_secs(days * 24 * 3_600);
    assert_eq!(settings.ledger_retention, days(90));
    let http = config.mcp_http_options("/".into(), ostler_mcp::ToolSet::default());
    assert_eq!(http.session_idle, std::time::Duration::from_secs(30 * 60));
}

#[test]
fn fuzz_config_file() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/config");
    let defaults = KEYS.iter().filter_map(|key| {
        let value = key.default?;
        Some(format!("{} = {value:?}\n", key.name))
    });
    let seeds = [
        defaults.collect::<String>(),
        "[retention]\ncommand_seconds = 10\npty_seconds = \"forever\"\n".to_owned(),
        "allowed_commands = [\"ls\", \"/usr/bin/env\"]\n[isolation]\ndefault = \"high\"\n"
            .to_owned(),
        "[limits]\nmemory = \"512M\"\npids = 64\ncpus = 0.5\n[a.b]\nc = 1979-05-27\n".to_owned(),
    ];
    let seeds = seeds.map(String::into_bytes).to_vec();
    ostler_fuzz::fuzz(&corpus, seeds, |input| {
        let lines = input.split(|byte| *byte == b'\n').count();
        match load(input, &[], &[]) {
            Ok(config) => {
                for key in &KEYS {
                    if let SettingSource::File(_, line) = config.get(key.name).source {
                        assert!((1..=lines).contains(&line), "{}: {line}", key.name);
                    }
                }
            }
            Err(error) => assert!(error.starts_with("error["), "{error}"),
        }
    });
}
