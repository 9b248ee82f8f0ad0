//! `git`: its options before the subcommand, and the ways it runs programs.

use super::InnerCommands;
use crate::flags::is_flag;
use crate::word::CommandWord;

/// Options before the subcommand that do not change what runs.
const HARMLESS_OPTIONS: [&str; 9] = [
    "--no-pager",
    "-P",
    "--no-optional-locks",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "--no-replace-objects",
    "--no-advice",
];
/// Harmless settings for `-c`.
const HARMLESS_KEYS: [&str; 10] = [
    "color.",
    "advice.",
    "core.quotepath=",
    "user.name=",
    "user.email=",
    "log.date=",
    "init.defaultbranch=",
    "column.ui=",
    "diff.renames=",
    "commit.gpgsign=false",
];

/// The subcommand without the options before it, and the unresolved ones among those.
pub(super) fn analyze(args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands::default();
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        if !word.is_certain() {
            inner
                .unresolved
                .push("a subcommand that cannot be seen".to_owned());
            break;
        }
        if !text.starts_with('-') || matches!(text, "--version" | "--help" | "-v" | "-h") {
            break;
        }
        at += 1;
        let next = args.get(at).map(|word| word.text.as_str());
        match text {
            _ if HARMLESS_OPTIONS.contains(&text) => {}
            "-C" => {
                let is_certain = args.get(at).is_some_and(CommandWord::is_certain);
                at += 1;
                if !is_certain || !next.is_some_and(is_inside) {
                    inner
                        .unresolved
                        .push("'-C' leads out of the working directory".to_owned());
                }
            }
            "-c" => {
                if args.get(at).is_some_and(|word| !word.is_certain()) {
                    inner
                        .unresolved
                        .push("a setting that cannot be seen".to_owned());
                }
                at += 1;
                check_setting(next.unwrap_or_default(), &mut inner);
            }
            other => {
                if let Some(joined) = other.strip_prefix("-c") {
                    check_setting(joined, &mut inner);
                } else {
                    inner.unresolved.push(format!("'{other}' of 'git'"));
                }
            }
        }
    }
    let plain = args.get(at..).unwrap_or_default().to_vec();
    check_subcommand(&plain, &mut inner);
    inner.rewritten_args = Some(plain);
    inner
}

fn check_setting(text: &str, inner: &mut InnerCommands) {
    let lower = text.to_ascii_lowercase();
    if !HARMLESS_KEYS.iter().any(|key| lower.starts_with(key)) {
        inner.unresolved.push(format!("'-c {text}' of 'git'"));
    }
    if let Some((_, value)) = text.split_once('=') {
        let script = value.strip_prefix('!').unwrap_or(value);
        inner.scripts.extend(
            (lower.starts_with("alias.") || value.contains(' ')).then(|| script.to_owned()),
        );
    }
}

/// Checks subcommands whose words contain a script.
fn check_subcommand(plain: &[CommandWord], inner: &mut InnerCommands) {
    let text = |at: usize| plain.get(at).map_or("", |word| word.text.as_str());
    let joined = |from: usize| {
        let words = plain.get(from..).unwrap_or_default();
        words
            .iter()
            .map(|word| word.text.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    match (text(0), text(1)) {
        ("bisect", "run") | ("submodule", "foreach") => {
            inner
                .unresolved
                .push("'git' runs what it is given".to_owned());
            inner.scripts.push(joined(2));
        }
        ("filter-branch", _) | ("difftool" | "mergetool" | "web--browse" | "instaweb", _) => {
            inner
                .unresolved
                .push("'git' runs what it is given".to_owned());
        }
        ("rebase", _) => {
            for (at, word) in plain.iter().enumerate() {
                if matches!(word.text.as_str(), "-x" | "--exec") {
                    inner
                        .unresolved
                        .push("'git rebase' runs what it is given".to_owned());
                    inner.scripts.push(text(at + 1).to_owned());
                }
            }
        }
        _ => {}
    }
}

/// The word of a command line by which `git` runs a program, or may run one.
pub(super) fn hidden_program(args: &[CommandWord]) -> Option<String> {
    /// Options with the name of a program, wherever they stand.
    const OPTIONS: [&str; 6] = [
        "--config-env",
        "--exec-path",
        "--upload-pack",
        "--receive-pack",
        "--ext-diff",
        "--open-files-in-pager",
    ];
    let names_program = |word: &&CommandWord| {
        let is_setting = word.text.starts_with("-c");
        is_setting || OPTIONS.iter().any(|option| is_flag(&word.text, option))
    };
    if let Some(word) = args.iter().find(names_program) {
        return Some(word.text.clone());
    }
    let subcommand = args.iter().position(|word| !word.text.starts_with('-'));
    let plain = args.get(subcommand?..).unwrap_or_default();
    let mut inner = InnerCommands::default();
    check_subcommand(plain, &mut inner);
    let runs = !inner.unresolved.is_empty();
    runs.then(|| {
        plain
            .first()
            .map_or_else(String::new, |word| word.text.clone())
    })
}

/// Whether a path is relative and without `..`.
pub(super) fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '~']) && !path.split('/').any(|part| part == "..")
}
