//! What a user types at the shell's prompt: help, typing errors, short ids, completions, lists.

use crate::test_env::{CliEnv, CommandOutput, to_output};

#[test]
fn help_is_a_verb_and_slips_are_suggested() {
    let cli = CliEnv::new();
    let help = cli.stdout_of(&["help"]);
    assert!(help.contains("Usage: ostler"), "{help}");
    let help = cli.stdout_of(&["help", "run"]);
    assert!(help.contains("--timeout"), "{help}");
    for (typed, near) in [
        (&["rnu", "true"][..], "'run'"),
        (&["servce"], "'service'"),
        (&["service", "strat"], "'start'"),
        (&["halp"], "'help'"),
    ] {
        let refused = cli.ostler(typed);
        assert_eq!(refused.code, 64, "{refused:?}");
        let tip = refused.err.lines().find(|line| line.contains("tip:"));
        assert!(tip.is_some_and(|tip| tip.contains(near)), "{refused:?}");
    }
}

/// The result of each verb that takes an id for this word.
fn run_each(cli: &CliEnv, word: &str) -> Vec<CommandOutput> {
    let verbs: [&[&str]; 10] = [
        &["info"],
        &["logs", "--no-time"],
        &["wait"],
        &["export", "-f", "text"],
        &["pause"],
        &["stop"],
        &["kill"],
        &["clear"],
        &["diff"],
        &["rm"],
    ];
    let ask = |verb: &&[&str]| cli.ostler(&[*verb, &[word]].concat());
    verbs.iter().map(ask).collect()
}

#[test]
fn the_beginning_of_an_id_is_enough() {
    let cli = CliEnv::new();
    let id = cli.background("echo hello; exec sleep 300");
    let other = cli.stdout_of(&["run", "-d", "true"]);
    let short = &id[..5];
    assert_ne!(&other[..5], short);
    assert_eq!(cli.stdout_of(&["pause", short]), id);
    assert_eq!(cli.stdout_of(&["resume", &id[..4].to_uppercase()]), id);
    assert_eq!(cli.json(&["info", "--json", short])["id"], id.as_str());
    let uuid = cli.json(&["info", "--json", short])["uuid"].clone();
    let uuid = uuid.as_str().unwrap();
    assert_eq!(cli.stdout_of(&["stop", "--force", &uuid[..30]]), id);
    assert_eq!(cli.stdout_of(&["logs", "--no-time", short]), "hello");
    assert_eq!(cli.stdout_of(&["export", "-f", "text", short]), "hello");
    assert_eq!(cli.ostler(&["wait", short]).code, 137);
    assert_eq!(cli.stdout_of(&["rm", short]), id);
    // A prefix of no id is unknown, as before, and the error names the allowed forms.
    for unknown in run_each(&cli, "zzzz") {
        assert_eq!(unknown.code, 66, "{unknown:?}");
        assert!(unknown.err.contains("'zzzz': "), "{unknown:?}");
        assert!(unknown.err.contains("@last"), "{unknown:?}");
    }
    // Three characters are too few for a prefix.
    assert_eq!(cli.ostler(&["info", &other[..3]]).code, 66);
}

#[test]
fn the_beginning_of_several_ids_names_them() {
    let cli = CliEnv::new();
    let one = cli.stdout_of(&["run", "-d", "sleep", "300"]);
    let two = cli.stdout_of(&["run", "-d", "sleep", "301"]);
    let uuid = cli.json(&["info", "--json", &one])["uuid"].clone();
    // UUIDs of version 7 of one day have a common prefix.
    let begin = &uuid.as_str().unwrap()[..4];
    for refused in run_each(&cli, begin) {
        assert_eq!(refused.code, 64, "{refused:?}");
        for part in [&one, &two, "sleep 301", begin] {
            assert!(refused.err.contains(part), "{part}: {refused:?}");
        }
    }
    assert_eq!(cli.stdout_of(&["ps", "-q"]).lines().count(), 2);
}

#[test]
fn last_is_the_newest() {
    let cli = CliEnv::new();
    for none in run_each(&cli, "@last") {
        assert_eq!(none.code, 66, "{none:?}");
    }
    cli.stdout_of(&["run", "sh", "-c", "echo first"]);
    cli.stdout_of(&["run", "sh", "-c", "echo second"]);
    assert_eq!(cli.stdout_of(&["logs", "--no-time", "@last"]), "second");
    assert_eq!(cli.ostler(&["wait", "@last"]).code, 0);
    for unknown in run_each(&cli, "@first") {
        assert_eq!(unknown.code, 64, "{unknown:?}");
        assert!(unknown.err.contains("@last-service"), "{unknown:?}");
    }
    assert_eq!(cli.ostler(&["info", "@last-service"]).code, 66);
}

#[test]
fn what_a_person_starts_has_their_environment() {
    let cli = CliEnv::new();
    let show = |flags: &[&str], set: &[(&str, &str)]| {
        let script = ["sh", "-c", "echo \"[$FLAVOUR]\""];
        let mut command = cli.command(&[&["run"], flags, &script].concat());
        command.env("FLAVOUR", "salty").envs(set.iter().copied());
        to_output(command.output().unwrap()).out
    };
    assert_eq!(show(&[], &[]), "[salty]\n");
    assert_eq!(show(&["-e", "FLAVOUR=sweet"], &[]), "[sweet]\n");
    assert_eq!(show(&["--clean-env"], &[]), "[]\n");
    assert_eq!(show(&["--clean-env", "-e", "FLAVOUR"], &[]), "[salty]\n");
    assert_eq!(
        show(&[], &[("OSTLER_ENVIRONMENT_INHERIT", "false")]),
        "[]\n"
    );
    let help = cli.stdout_of(&["run", "--help"]);
    assert!(help.contains("--clean-env"), "{help}");
}
