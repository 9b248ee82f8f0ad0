//! Attempts to bypass the policy, by class: none is allowed under a shipped policy, in any
//! wrapping.

use std::fmt::Write as _;
use std::path::Path;

use crate::judge::{judge, lines, shipped};
use ostler_policy::{PolicyDecision, RuleSet, RuleSource};

/// How many attempts there are at least.
const LEAST: usize = 1_000;

/// How many ordinary commands there are at least.
const LEAST_INNOCENT: usize = 100;

/// Every attempt with its class: the name of its file.
fn attempts() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/attempts");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let class = path.file_stem().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(&path).expect("a corpus file");
        all.extend(lines(&text).map(|line| (class.to_string(), line)));
    }
    all.sort();
    all
}

/// Grouped by class, which shows at a glance what is missed.
fn report(missed: &[(String, String)]) -> String {
    let mut actual = format!("{} are allowed:\n", missed.len());
    for (class, line) in missed {
        writeln!(actual, "{class}: {line:?}").expect("a string grows");
    }
    actual
}

/// Everyday commands that the shipped policy allows, and must continue to allow.
#[test]
fn daily_work_is_allowed() {
    let set = shipped();
    let text = include_str!("../corpus/innocent.txt");
    let missed: Vec<String> = lines(text)
        .map(|line| (judge(&set, &line), line))
        .filter(|(verdict, _)| verdict.decision != PolicyDecision::Allow)
        .map(|(verdict, line)| format!("{line:?}: {verdict}"))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(lines(text).count() >= LEAST_INNOCENT);
}

#[test]
fn no_attempt_of_any_class_is_allowed() {
    let attempts = attempts();
    assert!(attempts.len() >= LEAST, "{}", attempts.len());
    for sources in [RuleSource::shipped(), RuleSource::claude_only()] {
        let set = RuleSet::load(&sources).expect("the shipped rules");
        let allowed = |line: &str| judge(&set, line).decision == PolicyDecision::Allow;
        let missed: Vec<_> = attempts
            .iter()
            .filter(|(_, line)| allowed(line))
            .cloned()
            .collect();
        assert!(missed.is_empty(), "{}", report(&missed));
    }
}

/// Ways to wrap a command line without running anything else.
const WRAPPINGS: [&str; 34] = [
    "{}",
    "ls; {}",
    "ls && {}",
    "ls || {}",
    "ls | {}",
    "ls␤{}",
    "{}; ls",
    "{} | cat",
    "{} || true",
    "{} &",
    "({}␤)",
    "{ {}␤}",
    "! {}",
    "if {}␤then ls; fi",
    "if ls; then {}␤fi",
    "while {}␤do ls; done",
    "for i in 1; do {}␤done",
    "case a in a) {}␤;; esac",
    "time {}",
    "sh -c '{'}'",
    "bash -c '{'}'",
    "sh -c 'sh -c '{''}''",
    "env sh -c '{'}'",
    "nohup bash -c '{'}'",
    "timeout 5 sh -c '{'}'",
    "nice bash -ec '{'}'",
    "eval '{'}'",
    "command eval '{'}'",
    "f() { {}␤}; f",
    "alias x='{'}'␤x",
    "trap '{'}' EXIT",
    "PROMPT_COMMAND='{'}'",
    "echo \"$({}␤)\"",
    "echo '{'}' | sh",
];

/// `{}` stands for the line, `{'}` for the line between the single quotes that are there, and
/// `{''}` for it in two of them.
fn wrapped(wrapping: &str, line: &str) -> String {
    let quoted = |text: &str| text.replace('\'', "'\\''");
    let twice = quoted(&format!("'{}'", quoted(line)));
    wrapping
        .replace('␤', "\n")
        .replace("'{''}'", &twice)
        .replace("{'}", &quoted(line))
        .replace("{}", line)
}

/// How many times fewer wrappings the quick tier tries for each attempt.
const QUICK_STRIDE: usize = 3;

/// Every attempt of a class, in every `stride`th wrapping, of which each attempt begins with another.
fn none_is_allowed_wrapped(class: &str, stride: usize) {
    let set = shipped();
    let mut missed = Vec::new();
    let lines = attempts().into_iter().filter(|(it, _)| it == class);
    for (number, (_, line)) in lines.enumerate() {
        if line.starts_with("argv ") || line.starts_with("set ") {
            continue;
        }
        for wrapping in WRAPPINGS.into_iter().skip(number % stride).step_by(stride) {
            // Lines that only shells other than bash read differently.
            if class == "keywords" && wrapping.contains("bash") {
                continue;
            }
            let script = wrapped(wrapping, &line);
            if judge(&set, &script).decision == PolicyDecision::Allow {
                missed.push((class.to_owned(), script));
            }
        }
    }
    assert!(missed.is_empty(), "{}", report(&missed));
}

macro_rules! wrapped_classes {
    ($($test:ident: $class:literal,)*) => {
        const CLASSES: &[&str] = &[$($class),*];
        $(#[test]
        fn $test() {
            none_is_allowed_wrapped($class, QUICK_STRIDE);
        })*
    };
}

wrapped_classes! {
    arithmetic_in_whatever_it_is_wrapped: "arithmetic",
    build_files_in_whatever_they_are_wrapped: "build-files",
    continuations_in_whatever_they_are_wrapped: "continuations",
    git_in_whatever_it_is_wrapped: "git",
    keywords_in_whatever_they_are_wrapped: "keywords",
    loads_in_whatever_they_are_wrapped: "loads",
    outputs_in_whatever_they_are_wrapped: "outputs",
    places_in_whatever_they_are_wrapped: "places",
    relative_paths_in_whatever_they_are_wrapped: "relative_paths",
    shells_in_whatever_they_are_wrapped: "shells",
    standard_input_in_whatever_it_is_wrapped: "stdin",
    wrappers_in_whatever_they_are_wrapped: "wrappers",
}

#[test]
fn full_every_attempt_in_every_wrapping() {
    for class in CLASSES {
        none_is_allowed_wrapped(class, 1);
    }
}

#[test]
fn every_class_is_wrapped() {
    let mut classes: Vec<String> = attempts().into_iter().map(|(class, _)| class).collect();
    classes.dedup();
    assert_eq!(classes, CLASSES);
}
