//! `git`: its options before the subcommand, and what runs programs.

use super::Given;
use crate::word::Word;

/// Options before the subcommand that change nothing about what runs.
const HARMLESS: [&str; 9] = [
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
/// Settings `-c` may set.
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

/// The subcommand without the options before it, and what is doubtful among those.
pub(super) fn look(args: &[Word]) -> Given {
    let mut given = Given::default();
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        if !word.is_sure() {
            given
                .doubts
                .push("a subcommand that cannot be seen".to_owned());
            break;
        }
        if !text.starts_with('-') || matches!(text, "--version" | "--help" | "-v" | "-h") {
            break;
        }
        at += 1;
        let next = args.get(at).map(|word| word.text.as_str());
        match text {
            _ if HARMLESS.contains(&text) => {}
            "-C" => {
                let is_known = args.get(at).is_some_and(Word::is_sure);
                at += 1;
                if !is_known || !next.is_some_and(is_inside) {
                    given
                        .doubts
                        .push("'-C' leads out of the working directory".to_owned());
                }
            }
            "-c" => {
                if args.get(at).is_some_and(|word| !word.is_sure()) {
                    given
                        .doubts
                        .push("a setting that cannot be seen".to_owned());
                }
                at += 1;
                setting(next.unwrap_or_default(), &mut given);
            }
            other => {
                if let Some(joined) = other.strip_prefix("-c") {
                    setting(joined, &mut given);
                } else {
                    given.doubts.push(format!("'{other}' of 'git'"));
                }
            }
        }
    }
    let plain = args.get(at..).unwrap_or_default().to_vec();
    runs_programs(&plain, &mut given);
    given.plain = Some(plain);
    given
}

fn setting(text: &str, given: &mut Given) {
    let lower = text.to_ascii_lowercase();
    if !HARMLESS_KEYS.iter().any(|key| lower.starts_with(key)) {
        given.doubts.push(format!("'-c {text}' of 'git'"));
    }
    if let Some((_, value)) = text.split_once('=') {
        let script = value.strip_prefix('!').unwrap_or(value);
        given.scripts.extend(
            (lower.starts_with("alias.") || value.contains(' ')).then(|| script.to_owned()),
        );
    }
}

/// Subcommands whose words hold a script.
fn runs_programs(plain: &[Word], given: &mut Given) {
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
            given.doubts.push("'git' runs what it is given".to_owned());
            given.scripts.push(joined(2));
        }
        ("filter-branch", _) | ("difftool" | "mergetool" | "web--browse" | "instaweb", _) => {
            given.doubts.push("'git' runs what it is given".to_owned());
        }
        ("rebase", _) => {
            for (at, word) in plain.iter().enumerate() {
                if matches!(word.text.as_str(), "-x" | "--exec") {
                    given
                        .doubts
                        .push("'git rebase' runs what it is given".to_owned());
                    given.scripts.push(text(at + 1).to_owned());
                }
            }
        }
        _ => {}
    }
}

/// A relative path that does not climb.
pub(super) fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '~']) && !path.split('/').any(|part| part == "..")
}
