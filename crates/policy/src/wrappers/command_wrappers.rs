//! Wrappers, shells, and builtins that evaluate their words.

use super::InnerCommands;
use super::git::is_inside;
use super::options::{CODE_BUILTINS, OPAQUE, OTHER_SHELLS, POSIX_SHELLS, WRAPPERS, WrapperOptions};
use crate::analysis::{ValueClass, VariableAssignment};
use crate::flags::is_flag;
use crate::word::{CommandWord, texts};

/// What a wrapper runs; none where `name` is not a wrapper.
pub(super) fn analyze(name: &str, args: &[CommandWord]) -> Option<InnerCommands> {
    let only_reports = |word: &CommandWord| matches!(word.text.as_str(), "-v" | "-V");
    if name == "command" && args.first().is_some_and(only_reports) {
        return Some(InnerCommands::default());
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|known| known.name == name) {
        return Some(analyze_wrapper(wrapper, args));
    }
    if POSIX_SHELLS.contains(&name) {
        return Some(InnerCommands {
            bash: matches!(name, "bash" | "rbash"),
            ..analyze_shell(args, true)
        });
    }
    if OTHER_SHELLS.contains(&name) {
        return Some(analyze_shell(args, false));
    }
    if CODE_BUILTINS.contains(&name) {
        return Some(InnerCommands {
            scripts: vec![texts(args).join(" ")],
            ..InnerCommands::unresolved(format!("'{name}'"))
        });
    }
    if OPAQUE.contains(&name) {
        return Some(InnerCommands {
            scripts: script_words(args),
            ..InnerCommands::unresolved(format!("'{name}' runs what it is given"))
        });
    }
    match name {
        "su" | "script" | "flock" => Some(analyze_command_option(name, args)),
        "watch" => Some(analyze_watch(args)),
        "ssh" => Some(InnerCommands {
            scripts: script_words(args),
            ..InnerCommands::unresolved("'ssh' runs it on another machine")
        }),
        _ => None,
    }
}

fn script_words(args: &[CommandWord]) -> Vec<String> {
    let from = args.iter().position(|word| !word.text.starts_with('-'));
    let words = from.and_then(|from| args.get(from..)).unwrap_or_default();
    vec![texts(words).join(" ")]
}

fn analyze_wrapper(wrapper: &WrapperOptions, args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands {
        transparent: wrapper.transparent,
        ..InnerCommands::default()
    };
    let rest = match skip_own_words(wrapper, args, &mut inner) {
        Ok(rest) => rest,
        Err(word) => {
            inner
                .unresolved
                .push(format!("'{word}' of '{}'", wrapper.name));
            inner.transparent = false;
            return inner;
        }
    };
    let mut command = rest.to_vec();
    let own = args.get(..args.len() - rest.len()).unwrap_or_default();
    if wrapper.name == "env" {
        check_env_options(own, &mut inner);
    }
    if wrapper.name == "xargs" {
        mark_replaced_opaque(own, &mut command);
        if command.is_empty() {
            command.push(CommandWord::certain("echo"));
        }
        command.push(CommandWord::opaque("…"));
    }
    if let Some(program) = command.first() {
        if !program.is_certain() {
            inner
                .unresolved
                .push("a program that cannot be seen".to_owned());
        }
        inner.commands.push(command);
    } else if wrapper.name == "exec" {
        inner.unresolved.push("'exec' without a command".to_owned());
    }
    inner
}

/// Checks what `env` changes besides setting variables.
fn check_env_options(own: &[CommandWord], inner: &mut InnerCommands) {
    if own.iter().any(|word| !word.is_certain()) {
        let reason = "an option of 'env' that cannot be seen";
        inner.unresolved.push(reason.to_owned());
    }
    for (at, word) in own.iter().enumerate() {
        let next = own.get(at + 1).map_or("", |it| it.text.as_str());
        let value = |short: &str, long: &str| match word.text.as_str() {
            text if text == short || text == long => Some(next),
            text => text
                .strip_prefix(long)
                .and_then(|rest| rest.strip_prefix('='))
                .or_else(|| text.strip_prefix(short).filter(|_| !text.starts_with("--"))),
        };
        if value("-C", "--chdir").is_some_and(|to| !is_inside(to)) {
            let reason = "'env' leaves the working directory";
            inner.unresolved.push(reason.to_owned());
        }
        if let Some(name) = value("-u", "--unset") {
            inner.variables.push(VariableAssignment {
                name: name.to_owned(),
                value: ValueClass::Unchanged,
            });
        }
    }
}

/// Marks words in which `xargs -I` replaces parts as unknown.
fn mark_replaced_opaque(own: &[CommandWord], command: &mut [CommandWord]) {
    for (at, word) in own.iter().enumerate() {
        let replaced = match word.text.strip_prefix("-I") {
            Some("") => own.get(at + 1).map_or("", |it| it.text.as_str()),
            Some(joined) => joined,
            None => continue,
        };
        for word in command.iter_mut().filter(|it| it.text.contains(replaced)) {
            *word = CommandWord::opaque(word.text.clone());
        }
    }
}

/// The words after the wrapper's own.
fn skip_own_words<'a>(
    wrapper: &WrapperOptions,
    args: &'a [CommandWord],
    inner: &mut InnerCommands,
) -> Result<&'a [CommandWord], String> {
    let mut positional = wrapper.positional;
    let mut options = true;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        let begins = options && text.starts_with('-') && text.len() > usize::from(text != "-");
        if !word.is_certain() {
            return Err(text.to_owned());
        } else if begins && text == "--" {
            options = false;
        } else if begins {
            at += usize::from(takes_next_word(wrapper, text)?);
        } else if let (true, Some((name, value))) = (wrapper.assignments, split_assignment(text)) {
            inner.variables.push(VariableAssignment {
                name: name.to_owned(),
                value: ValueClass::of(value),
            });
            options = false;
        } else if positional > 0 {
            positional -= 1;
            options = false;
        } else {
            break;
        }
        at += 1;
    }
    Ok(args.get(at..).unwrap_or_default())
}

/// Whether an option's value is the next word; an unknown option is an error.
fn takes_next_word(wrapper: &WrapperOptions, word: &str) -> Result<bool, String> {
    if wrapper.flags.contains(&word) {
        return Ok(false);
    }
    if wrapper.valued.contains(&word) {
        return Ok(true);
    }
    let joined = |known: &str| {
        word.strip_prefix(known)
            .is_some_and(|rest| !known.starts_with("--") || rest.starts_with('='))
    };
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let niceness = wrapper.name == "nice" && word.strip_prefix('-').is_some_and(is_number);
    if wrapper.valued.iter().any(|known| joined(known)) || niceness {
        return Ok(false);
    }
    Err(word.to_owned())
}

fn split_assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=')
        .filter(|(name, _)| !name.is_empty() && !name.contains('/'))
}

/// A shell: only `-c` with one script is understood.
fn analyze_shell(args: &[CommandWord], posix: bool) -> InnerCommands {
    let Some(first) = args.first() else {
        return InnerCommands::unresolved("a script on standard input");
    };
    if matches!(first.text.as_str(), "--version" | "--help") && args.len() == 1 {
        return InnerCommands::default();
    }
    let place = args.iter().position(|word| {
        word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c')
    });
    let Some(place) = place else {
        return InnerCommands::unresolved("a script in a file or on standard input");
    };
    let mut inner = InnerCommands {
        transparent: true,
        ..InnerCommands::default()
    };
    let before_is_plain = place == 0 && matches!(first.text.as_str(), "-c" | "-ec" | "-ce" | "-lc");
    if !before_is_plain {
        inner
            .unresolved
            .push(format!("options of a shell: '{}'", first.text));
    }
    if first.text == "-lc" {
        inner.unresolved.push("a login shell".to_owned());
    }
    match args.get(place + 1) {
        Some(script) => {
            if !posix || !script.is_certain() {
                inner
                    .unresolved
                    .push("a script that cannot be seen".to_owned());
            }
            inner.scripts.push(script.text.clone());
        }
        None => inner
            .unresolved
            .push("a shell without its script".to_owned()),
    }
    inner
}

/// `su -c SCRIPT`, `script -c SCRIPT`, `flock FILE -c SCRIPT` and `flock FILE COMMAND…`.
fn analyze_command_option(name: &str, args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands::unresolved(format!("'{name}' runs what it is given"));
    for (at, word) in args.iter().enumerate() {
        let joined = word.text.strip_prefix("--command=");
        let next = is_flag(&word.text, "-c") || word.text == "--command";
        let script = joined.map(str::to_owned);
        let script = script.or_else(|| {
            next.then(|| args.get(at + 1))
                .flatten()
                .map(|it| it.text.clone())
        });
        inner.scripts.extend(script);
    }
    inner
}

fn analyze_watch(args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands {
        transparent: true,
        ..InnerCommands::default()
    };
    let wrapper = WrapperOptions {
        name: "watch",
        flags: &[
            "-d",
            "-t",
            "-g",
            "-e",
            "-c",
            "-b",
            "--color",
            "--differences",
            "--no-title",
        ],
        valued: &["-n", "--interval"],
        positional: 0,
        assignments: false,
        transparent: true,
    };
    match skip_own_words(&wrapper, args, &mut inner) {
        Ok(rest) => {
            if rest.iter().any(|word| !word.is_certain()) {
                inner
                    .unresolved
                    .push("a script that cannot be seen".to_owned());
            }
            inner.scripts.push(texts(rest).join(" "));
        }
        Err(word) => inner.unresolved.push(format!("'{word}' of 'watch'")),
    }
    inner
}
