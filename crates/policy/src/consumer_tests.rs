//! All who ask which programs a command runs get the same answer: rules, allow lists, detection.

use ostler_model::{ByteString, Command};
use proptest::prelude::*;

use crate::analyze::{analyze_command, analyze_script};
use crate::word::base_name;
use crate::{InnerProgram, ListStep, command_list, inner_program};

/// The corpora of rules and of detection: scripts, and nothing about their decisions.
const CORPORA: [&str; 16] = [
    include_str!("../tests/corpus/bypass.txt"),
    include_str!("../tests/corpus/innocent.txt"),
    include_str!("../tests/corpus/ordinary.txt"),
    include_str!("../tests/corpus/attempts/arithmetic.txt"),
    include_str!("../tests/corpus/attempts/build-files.txt"),
    include_str!("../tests/corpus/attempts/continuations.txt"),
    include_str!("../tests/corpus/attempts/git.txt"),
    include_str!("../tests/corpus/attempts/keywords.txt"),
    include_str!("../tests/corpus/attempts/loads.txt"),
    include_str!("../tests/corpus/attempts/outputs.txt"),
    include_str!("../tests/corpus/attempts/places.txt"),
    include_str!("../tests/corpus/attempts/shells.txt"),
    include_str!("../tests/corpus/attempts/stdin.txt"),
    include_str!("../tests/corpus/attempts/wrappers.txt"),
    include_str!("../../detect/tests/corpus/positives.txt"),
    include_str!("../../detect/tests/corpus/negatives.txt"),
];
/// The most wrappers of a generated command.
const WRAPPERS_MAX: usize = 4;

fn scripts() -> impl Iterator<Item = String> {
    let lines = CORPORA.iter().flat_map(|corpus| corpus.lines());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| {
        let line = line.split_once(" | ").map_or(line, |(head, command)| {
            let is_detection = head.split(' ').count() == 3;
            if is_detection { command } else { line }
        });
        let decided = ["allow ", "ask ", "deny "];
        let line = decided
            .iter()
            .find_map(|it| line.strip_prefix(it))
            .unwrap_or(line);
        line.replace('␤', "\n")
    })
}

/// Every command that detection considers is one that rules judge.
fn check_list(script: &str) {
    let Some(list) = command_list(script) else {
        return;
    };
    let analysis = analyze_script(script);
    for step in list.steps {
        let ListStep::Command(command) = step else {
            continue;
        };
        let is_declaration = command.words.first().is_none_or(|word| {
            [
                "export", "unset", "local", "readonly", "declare", "typeset", "unsetenv",
            ]
            .contains(&word.text.as_str())
        });
        // `git -C x status` is judged as `git status`.
        let program = |words: &[crate::CommandWord]| words.first().map(|it| it.text.clone());
        let judged = analysis.invocations.iter();
        let mut judged = judged.filter(|it| it.certain || !analysis.unresolved.is_empty());
        assert!(
            is_declaration || judged.any(|it| program(&it.words) == program(&command.words)),
            "{script:?}: {:?}",
            command.words
        );
    }
}

/// The programs that an allow list wants to find on it; none where it refuses the command.
fn listed_programs(words: &[ByteString]) -> Option<Vec<String>> {
    let mut words = words.to_vec();
    let mut programs = Vec::new();
    for _ in 0..2 * WRAPPERS_MAX {
        let (program, args) = words.split_first()?;
        programs.push(program.to_string_lossy().into_owned());
        match inner_program(program, args) {
            InnerProgram::None => return Some(programs),
            InnerProgram::Hidden(_) => return None,
            InnerProgram::Command { words: inner, .. } => words = inner,
        }
    }
    None
}

/// Every program that rules judge is one that an allow list wants to find on it.
fn check_listed(words: &[ByteString]) {
    let Some(programs) = listed_programs(words) else {
        return;
    };
    // What `ssh` runs is a program of another machine.
    if programs.last().is_some_and(|it| base_name(it) == "ssh") {
        return;
    }
    let (program, args) = words.split_first().expect("a program");
    let command = Command::Argv {
        program: program.clone(),
        args: args.to_vec(),
    };
    for invocation in analyze_command(&command)
        .invocations
        .iter()
        .filter(|it| it.certain)
    {
        let program = &invocation.words[0].text;
        let is_listed = programs.contains(program);
        assert!(
            is_listed,
            "{words:?}: rules see '{program}', a list {programs:?}"
        );
    }
}

#[test]
fn rules_and_detection_see_the_same_commands_in_every_corpus() {
    let all: Vec<String> = scripts().collect();
    assert!(all.len() > 4_000, "{}", all.len());
    for script in all {
        check_list(&script);
        check_list(&format!("cd web && {script} &"));
    }
}

#[test]
fn rules_and_allow_lists_see_the_same_programs_in_every_corpus() {
    for script in scripts() {
        let words: Vec<ByteString> = script.split_whitespace().map(ByteString::from).collect();
        for from in 0..words.len().min(4) {
            check_listed(&words[from..]);
        }
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "vite", "ls", "npm", "run", "--port", "3000", "&&", "||", ";", "&", "|", "(", ")", "'",
        "\"", "$X", "${X:-a}", "$(ls)", "`ls`", "{", "}", "!", "\n", ">", "<", "f", "2>&1", "#",
        "A=b", "export", "env", "timeout", "5", "sh", "-c", "exec", "\\", "*", "é", "cd", "<<<",
    ])
}

fn wrapper() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::select(vec![
        vec!["env"],
        vec!["env", "-i", "A=1"],
        vec!["env", "-C", "/tmp"],
        vec!["env", "--chdir=x"],
        vec!["nice", "-n", "5"],
        vec!["nice", "-5"],
        vec!["nohup"],
        vec!["timeout", "-k", "1", "5"],
        vec!["timeout", "--signal=KILL", "5"],
        vec!["setsid", "-f"],
        vec!["stdbuf", "-oL"],
        vec!["sudo", "-u", "x"],
        vec!["sudo", "-E"],
        vec!["sudo"],
        vec!["xargs", "-n", "1"],
        vec!["xargs", "-I", "{}"],
        vec!["command"],
        vec!["command", "-v"],
        vec!["exec"],
        vec!["exec", "-a", "x"],
        vec!["unbuffer"],
        vec!["time", "-p"],
        vec!["ionice", "-c", "3"],
        vec!["taskset", "1"],
        vec!["doas", "-u", "x"],
        vec!["chroot", "/"],
        vec!["busybox"],
        vec!["strace", "-f"],
        vec!["chpst", "-u", "x"],
        vec!["npx"],
        vec!["poetry", "run"],
        vec!["find", ".", "-exec"],
        vec!["git", "-C", "x"],
        vec!["--"],
        vec!["tmux"],
        vec!["watch"],
    ])
}

fn program() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::select(vec![
        vec!["ls", "-l"],
        vec!["git", "status"],
        vec!["git", "-c", "a=b", "x"],
        vec!["sh", "-c", "id"],
        vec!["rsync", "-ave", "ssh", "a", "b"],
        vec!["tar", "xIf", "id", "a"],
        vec!["sort", "x"],
        vec!["find", ".", "-exec", "id", ";"],
        vec!["python3", "x.py"],
        vec!["{}"],
        vec!["env"],
        vec![],
        vec!["git", "bisect", "run", "id"],
        vec!["/usr/bin/env", "id"],
        vec!["ls", "--", "x"],
    ])
}

proptest! {
    #[test]
    fn rules_and_detection_see_the_same_commands(
        pieces in prop::collection::vec(piece(), 0..14),
        gap in prop::sample::select(vec!["", " "]),
    ) {
        check_list(&pieces.join(gap));
    }

    #[test]
    fn rules_and_allow_lists_see_the_same_programs(
        wrappers in prop::collection::vec(wrapper(), 0..WRAPPERS_MAX),
        program in program(),
    ) {
        let words = wrappers.into_iter().flatten().chain(program);
        let words: Vec<ByteString> = words.map(ByteString::from).collect();
        if !words.is_empty() {
            check_listed(&words);
        }
    }

    #[test]
    fn a_program_behind_wrappers_of_a_list_is_found(
        wrappers in prop::collection::vec(wrapper(), 0..WRAPPERS_MAX),
    ) {
        let words = wrappers.iter().flatten().copied().chain(["target"]);
        let words: Vec<ByteString> = words.map(ByteString::from).collect();
        let looks_up = wrappers.iter().any(|it| it == &["command", "-v"]);
        let is_git = wrappers.iter().any(|it| it[0] == "git");
        let dashes = wrappers.iter().any(|it| it == &["--"]);
        if let Some(programs) = listed_programs(&words) {
            let last = programs.last().map(|it| base_name(it).to_owned());
            prop_assert!(
                looks_up || is_git || dashes || last.as_deref() == Some("target"),
                "{words:?}: {programs:?}"
            );
        }
    }
}
