//! `git`: its options before the subcommand, and the ways it runs programs.

use super::InnerCommands;
use super::git_commit::opens_editor;
use crate::flags::is_flag;
use crate::word::{CommandWord, texts};

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

/// Options before the subcommand whose value is the next word.
const VALUED_OPTIONS: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--attr-source",
    "--super-prefix",
    "--config-env",
];

/// The subcommand without the options before it, and the unresolved ones among those.
pub(super) fn analyze(args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands::default();
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        if !word.is_certain() {
            let reason = "a subcommand that cannot be seen";
            inner.unresolved.push(reason.to_owned());
            break;
        }
        if !text.starts_with('-') || matches!(text, "--version" | "--help" | "-v" | "-h") {
            break;
        }
        at += 1;
        check_option(text, args.get(at), &mut inner);
        at += usize::from(VALUED_OPTIONS.contains(&text));
    }
    let plain = args.get(at..).unwrap_or_default().to_vec();
    check_subcommand(&plain, &mut inner);
    if let Some((subcommand, args)) = plain.split_first()
        && subcommand.text == "commit"
        && opens_editor(args)
    {
        let reason = "an editor of 'git commit', which reads its input";
        inner.unresolved.push(reason.to_owned());
    }
    inner.rewritten_args = Some(plain);
    inner
}

/// Checks an option before the subcommand; `next` is the word behind it.
fn check_option(option: &str, next: Option<&CommandWord>, inner: &mut InnerCommands) {
    let is_certain = next.is_some_and(CommandWord::is_certain);
    let value = next.map_or("", |word| word.text.as_str());
    match option {
        _ if HARMLESS_OPTIONS.contains(&option) => {}
        "-C" => {
            if !is_certain || !is_inside(value) {
                let reason = "'-C' leads out of the working directory";
                inner.unresolved.push(reason.to_owned());
            }
        }
        "-c" => {
            if next.is_some() && !is_certain {
                let reason = "a setting that cannot be seen";
                inner.unresolved.push(reason.to_owned());
            }
            check_setting(value, inner);
        }
        other => match other.strip_prefix("-c") {
            Some(joined) => check_setting(joined, inner),
            None => inner.unresolved.push(format!("'{other}' of 'git'")),
        },
    }
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
    let Some((subcommand, args)) = plain.split_first() else {
        return;
    };
    let scripts = match subcommand.text.as_str() {
        "bisect" => operand_script(args, "run"),
        "submodule" => operand_script(args, "foreach"),
        "rebase" => rebase_scripts(args),
        "filter-branch" | "difftool" | "mergetool" | "web--browse" | "instaweb" => texts(args),
        _ => return,
    };
    let may_run_none = ["bisect", "submodule", "rebase"].contains(&subcommand.text.as_str());
    if !may_run_none || !scripts.is_empty() {
        let reason = "'git' runs what it is given";
        inner.unresolved.push(reason.to_owned());
    }
    inner.scripts.extend(scripts);
}

/// The words behind an action, as a script; options may precede the action and the script.
fn operand_script(args: &[CommandWord], action: &str) -> Vec<String> {
    let operand = |args: &[CommandWord]| args.iter().position(|it| !it.text.starts_with('-'));
    let Some(at) = operand(args).filter(|at| args[*at].text == action) else {
        return Vec::new();
    };
    let behind = &args[at + 1..];
    let script = behind.get(operand(behind).unwrap_or(0)..);
    vec![texts(script.unwrap_or_default()).join(" ")]
}

/// What `rebase` runs after each commit: `-x CMD`, `-xCMD`, `--exec=CMD`, also abbreviated.
fn rebase_scripts(args: &[CommandWord]) -> Vec<String> {
    let script = |(at, word): (usize, &CommandWord)| {
        let text = word.text.as_str();
        let joined = match text.split_once('=') {
            _ if !text.starts_with("--") => text.split_once('x').map(|(_, script)| script),
            Some((_, script)) => Some(script),
            None => None,
        };
        let is_exec = is_flag(text, "-x") || is_flag(text, "--exec");
        let next = || args.get(at + 1).map(|it| it.text.as_str());
        let script = joined.filter(|it| !it.is_empty()).or_else(next);
        is_exec.then(|| script.unwrap_or_default().to_owned())
    };
    args.iter().enumerate().filter_map(script).collect()
}

/// The arguments from the subcommand on.
fn from_subcommand(args: &[CommandWord]) -> &[CommandWord] {
    let mut at = 0;
    while let Some(word) = args.get(at).filter(|word| word.text.starts_with('-')) {
        at += 1 + usize::from(VALUED_OPTIONS.contains(&word.text.as_str()));
    }
    args.get(at..).unwrap_or_default()
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
    /// Those after one subcommand only.
    const SUBCOMMAND_OPTIONS: [(&str, &str); 2] = [("grep", "-O"), ("clone", "-u")];
    let names_program = |word: &&CommandWord| {
        let is_setting = word.text.starts_with("-c");
        is_setting || OPTIONS.iter().any(|option| is_flag(&word.text, option))
    };
    if let Some(word) = args.iter().find(names_program) {
        return Some(word.text.clone());
    }
    let plain = from_subcommand(args);
    let subcommand = plain.first()?.text.as_str();
    let mut known = SUBCOMMAND_OPTIONS.iter();
    let option = known.find(|(name, _)| *name == subcommand);
    let names_program = |word: &&CommandWord| option.is_some_and(|it| is_flag(&word.text, it.1));
    if let Some(word) = plain.iter().find(names_program) {
        return Some(word.text.clone());
    }
    let mut inner = InnerCommands::default();
    check_subcommand(plain, &mut inner);
    (!inner.unresolved.is_empty()).then(|| subcommand.to_owned())
}

/// Whether a path is relative and without `..`.
pub(super) fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '~']) && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<CommandWord> {
        line.split(' ').map(CommandWord::certain).collect()
    }

    #[test]
    fn a_program_is_found_behind_options_and_in_every_spelling() {
        for line in [
            "rebase -x id HEAD~1",
            "-C . rebase -x id HEAD~1",
            "--git-dir .git --work-tree . rebase -x id",
            "--namespace n bisect run id",
            "rebase -xid",
            "rebase -ix id",
            "rebase --exec=id",
            "rebase --exe id",
            "submodule --quiet foreach id",
            "submodule foreach --recursive id",
            "-C sub submodule -q foreach id",
            "grep -Oid x",
            "grep -nO x",
            "clone -u id x",
            "clone --conf core.sshCommand=id x",
            "difftool",
        ] {
            assert!(hidden_program(&words(line)).is_some(), "{line}");
        }
        for line in [
            "-C . status",
            "--git-dir .git log --oneline",
            "rebase -i HEAD~2",
            "rebase --onto fix main",
            "log -Oorder",
            "submodule status",
            "submodule update foreach",
            "bisect start",
            "grep -n x",
        ] {
            assert_eq!(hidden_program(&words(line)), None, "{line}");
        }
    }

    #[test]
    fn the_script_is_the_value_or_what_follows() {
        for (line, script) in [
            ("rebase -x a", "a"),
            ("rebase -xa", "a"),
            ("rebase -ix a", "a"),
            ("rebase --exec=a", "a"),
            ("rebase --ex a", "a"),
            ("submodule --quiet foreach a b", "a b"),
            ("submodule foreach --recursive a b", "a b"),
            ("bisect run a -b", "a -b"),
            ("-C . --git-dir .git bisect run a", "a"),
        ] {
            assert_eq!(analyze(&words(line)).scripts, [script], "{line}");
        }
    }
}
