//! Scripts in the options of programs that otherwise run what follows, or nothing.

use super::launchers::LAUNCHERS;
use crate::flags::is_flag;
use crate::word::{CommandWord, texts};

/// The scripts that options of a program contain.
pub(super) fn option_scripts(name: &str, args: &[CommandWord]) -> Vec<String> {
    match name {
        "env" => split_string(args).into_iter().collect(),
        "npx" | "npm" => call_script(name, args).into_iter().collect(),
        "nodemon" => values(args, "-x", "--exec").collect(),
        "less" | "more" | "vi" | "vim" | "nvim" | "view" | "ex" => start_commands(args),
        _ => Vec::new(),
    }
}

/// The command of `env -S`: the value and all that follows.
fn split_string(args: &[CommandWord]) -> Option<String> {
    const VALUED: [&str; 4] = ["-u", "--unset", "-C", "--chdir"];
    let mut at = 0;
    while let Some(word) = args.get(at).filter(|word| word.text.starts_with('-')) {
        at += 1 + usize::from(VALUED.contains(&word.text.as_str()));
        if is_flag(&word.text, "-S") || is_flag(&word.text, "--split-string") {
            let rest = texts(args.get(at..).unwrap_or_default());
            let joined = joined_value(&word.text, 'S').map(str::to_owned);
            return Some(joined.into_iter().chain(rest).collect::<Vec<_>>().join(" "));
        }
    }
    None
}

/// The script of `npx -c`, and of `npm exec -c`, whose options may follow the command.
fn call_script(name: &str, args: &[CommandWord]) -> Option<String> {
    let own = args.iter().take_while(|word| word.text != "--").count();
    let all = std::iter::once(name).chain(args.iter().map(|word| word.text.as_str()));
    let all: Vec<&str> = all.collect();
    let mut launchers = LAUNCHERS
        .iter()
        .filter(|it| it.words.first() == Some(&name));
    let launcher = launchers.find(|it| it.may_match(&all))?;
    let own = if launcher.keeps_options {
        own
    } else {
        let found = launcher.match_words(&all)?;
        found.command_at.saturating_sub(1).min(own)
    };
    // An unknown option is skipped without its value.
    values(&args[..(own + 1).min(args.len())], "-c", "--call").next()
}

/// The values of an option, joined or in the next word.
fn values<'a>(
    args: &'a [CommandWord],
    short: &'a str,
    long: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let letter = short.chars().nth(1).unwrap_or_default();
    args.iter().enumerate().filter_map(move |(at, word)| {
        let is_option = is_flag(&word.text, short) || is_flag(&word.text, long);
        let next = || args.get(at + 1).map(|it| it.text.as_str());
        let value = joined_value(&word.text, letter).or_else(next);
        value.filter(|_| is_option).map(str::to_owned)
    })
}

/// The value that is joined to an option: `--name=value`, `-avalue`.
fn joined_value(option: &str, letter: char) -> Option<&str> {
    let value = if option.starts_with("--") {
        option.split_once('=').map(|(_, value)| value)
    } else {
        option.split_once(letter).map(|(_, value)| value)
    };
    value.filter(|it| !it.is_empty())
}

/// The shell commands of `+!command` and `+:!command`, which pagers and editors run first.
fn start_commands(args: &[CommandWord]) -> Vec<String> {
    let command = |word: &CommandWord| {
        let command = word.text.strip_prefix('+')?.trim_start_matches(['+', ':']);
        command.strip_prefix('!').map(str::to_owned)
    };
    args.iter().filter_map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_in_every_spelling() {
        for (line, script) in [
            ("env|-S|rm -rf /", Some("rm -rf /")),
            ("env|-Srm -rf /", Some("rm -rf /")),
            ("env|-S|rm -rf|/", Some("rm -rf /")),
            ("env|-iS|rm x", Some("rm x")),
            ("env|-u|A|--split-string=rm x", Some("rm x")),
            ("env|--split|rm x", Some("rm x")),
            ("env|A=1|ls|-S|rm x", None),
            ("env|ls|-S", None),
            ("npx|-c|rm x", Some("rm x")),
            ("npx|--call=rm x", Some("rm x")),
            ("npx|-p|other|-c|rm x", Some("rm x")),
            ("npx|vite|-c|rm x", None),
            ("npm|exec|-c|rm x", Some("rm x")),
            ("npm|exec|--call|rm x", Some("rm x")),
            ("npm|exec|vite|-c|rm x", Some("rm x")),
            ("npm|exec|--|vite|-c|rm x", None),
            ("npm|test|-c|rm x", None),
            ("nodemon|--exec|rm x|a.js", Some("rm x")),
            ("nodemon|-xrm", Some("rm")),
            ("less|+!rm x|f", Some("rm x")),
            ("less|++!rm x", Some("rm x")),
            ("vim|+:!rm x", Some("rm x")),
            ("less|+F|f", None),
            ("cat|+!rm", None),
        ] {
            let words: Vec<CommandWord> = line.split('|').map(CommandWord::certain).collect();
            let found = option_scripts(&words[0].text, &words[1..]);
            assert_eq!(found, script.into_iter().collect::<Vec<_>>(), "{line}");
        }
    }
}
