//! Wrappers, shells, and builtins that evaluate their words.

use super::InnerCommands;
use super::git::is_inside;
use super::launchers::LAUNCHERS;
use super::options::{CODE_BUILTINS, OPAQUE, OTHER_SHELLS, POSIX_SHELLS, WRAPPERS};
use super::wrapper::{FirstWord, Wrapper, WrapperClass};
use crate::analysis::{ValueClass, VariableAssignment};
use crate::flags::is_flag;
use crate::word::{CommandWord, texts};

/// What a wrapper runs; none where `name` is not a wrapper.
pub(super) fn analyze(name: &str, args: &[CommandWord]) -> Option<InnerCommands> {
    let only_reports = |word: &CommandWord| matches!(word.text.as_str(), "-v" | "-V");
    if name == "command" && args.first().is_some_and(only_reports) {
        return Some(InnerCommands::default());
    }
    if name == "runuser" && runs_login_script(args) {
        return Some(analyze_command_option(name, args));
    }
    let wrapper = WRAPPERS.iter().find(|known| known.name() == name);
    if let Some(wrapper) = wrapper.filter(|it| it.class != WrapperClass::Opaque) {
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
    if OPAQUE.contains(&name) || wrapper.is_some() {
        return Some(InnerCommands {
            scripts: script_words(args),
            rewritten_args: (name == "ostler").then(|| without_global_options(args)),
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

/// The commands that a launcher runs.
pub(super) fn launched_commands(name: &str, args: &[CommandWord]) -> Vec<Vec<CommandWord>> {
    let words = std::iter::once(name).chain(args.iter().map(|word| word.text.as_str()));
    let words: Vec<&str> = words.collect();
    let launchers = LAUNCHERS.iter().filter(|it| it.name() == name);
    let command = |launcher: &Wrapper<'_>| {
        let at = launcher.match_words(&words)?.command_at;
        let mut command = args.get(at.checked_sub(1)?..)?.to_vec();
        let program = command.first_mut()?;
        if launcher.first_word != FirstWord::Program {
            *program = CommandWord::certain(launcher.first_word.program(&program.text));
        }
        Some(command)
    };
    launchers.filter_map(command).collect()
}

/// What may be a script: the words from the first that is no option, and each with a blank in it.
fn script_words(args: &[CommandWord]) -> Vec<String> {
    let from = args.iter().position(|word| !word.text.starts_with('-'));
    let words = from.and_then(|from| args.get(from..)).unwrap_or_default();
    let joined = texts(words).join(" ");
    let values = args.iter().map(|word| match word.text.split_once('=') {
        Some((_, value)) if word.text.starts_with('-') => value,
        Some(_) | None => &word.text,
    });
    let spaced = values.filter(|it| it.contains(' ') && *it != joined);
    let spaced: Vec<String> = spaced.map(str::to_owned).collect();
    std::iter::once(joined).chain(spaced).collect()
}

/// The arguments of `ostler` without the options that may stand before and behind every subcommand.
fn without_global_options(args: &[CommandWord]) -> Vec<CommandWord> {
    const GLOBAL_OPTIONS: [&str; 4] = ["--state-dir", "--runtime-dir", "--config", "--set"];
    let mut rest = args.iter();
    let mut plain = Vec::new();
    while let Some(word) = rest.next() {
        let name = word.text.split('=').next().unwrap_or_default();
        if word.text == "--" {
            plain.push(word.clone());
            break;
        }
        if !GLOBAL_OPTIONS.contains(&name) {
            plain.push(word.clone());
        } else if name == word.text {
            rest.next();
        }
    }
    plain.extend(rest.cloned());
    plain
}

fn analyze_wrapper(wrapper: &Wrapper<'_>, args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands {
        transparent: matches!(
            wrapper.class,
            WrapperClass::Transparent | WrapperClass::Timing
        ),
        ..InnerCommands::default()
    };
    let rest = match skip_own_words(wrapper, args, &mut inner) {
        Ok(rest) => rest,
        Err(word) => {
            inner
                .unresolved
                .push(format!("'{word}' of '{}'", wrapper.name()));
            inner.transparent = false;
            return inner;
        }
    };
    let mut command = rest.to_vec();
    let own = args.get(..args.len() - rest.len()).unwrap_or_default();
    if wrapper.name() == "env" {
        check_env_options(own, &mut inner);
    }
    if wrapper.name() == "xargs" {
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
    } else if wrapper.name() == "exec" {
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

/// The words after the wrapper's own, of which each must be known; the value of an option must be
/// one word.
pub(super) fn skip_own_words<'a>(
    wrapper: &Wrapper<'_>,
    args: &'a [CommandWord],
    inner: &mut InnerCommands,
) -> Result<&'a [CommandWord], String> {
    let words = std::iter::once(wrapper.name()).chain(args.iter().map(|word| word.text.as_str()));
    let words: Vec<&str> = words.collect();
    let found = wrapper.match_words(&words).unwrap_or_default();
    let variables = found
        .variables
        .iter()
        .map(|(name, value)| VariableAssignment {
            name: (*name).to_owned(),
            value: ValueClass::of(value),
        });
    inner.variables.extend(variables);
    let own = found.command_at.saturating_sub(1);
    let is_hidden = |(at, word): (usize, &CommandWord)| {
        let is_value = found.values_at.contains(&(at + 1));
        !word.is_certain() && (!is_value || word.unknown.may_split)
    };
    let mut own_and_program = args.iter().take(own + 1).enumerate();
    let uncertain = own_and_program.find(|it| is_hidden(*it)).map(|(at, _)| at);
    let unknown = found.unknown_at.map(|at| at - 1);
    match uncertain.into_iter().chain(unknown).min() {
        Some(at) => Err(args
            .get(at)
            .map_or_else(String::new, |word| word.text.clone())),
        None => Ok(args.get(own..).unwrap_or_default()),
    }
}

/// What a shell is given to run, by the index of its argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellInput {
    /// A script.
    Script(usize),
    /// The name of a file with one.
    File(usize),
}

/// What a shell is given to run; none where `program` is another one, or reads standard input.
#[must_use]
pub fn shell_input(program: &str, args: &[&str]) -> Option<ShellInput> {
    let is_shell = POSIX_SHELLS.contains(&program) || OTHER_SHELLS.contains(&program);
    is_shell.then(|| find_script(args)).flatten()
}

fn find_script(args: &[&str]) -> Option<ShellInput> {
    /// Long options with a value.
    const VALUED: [&str; 2] = ["--rcfile", "--init-file"];
    let mut words = args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        let is_option = word.len() > 1 && word.starts_with(['-', '+']);
        if !is_option {
            return Some(ShellInput::File(at));
        }
        let is_short = !word.starts_with("--");
        if is_short && word.starts_with('-') && word.contains('c') {
            return args.get(at + 1).map(|_| ShellInput::Script(at + 1));
        }
        if VALUED.contains(word) || (is_short && word.ends_with(['o', 'O'])) {
            words.next();
        }
    }
    None
}

/// A shell: only `-c` with one script is understood.
fn analyze_shell(args: &[CommandWord], posix: bool) -> InnerCommands {
    let Some(first) = args.first() else {
        return InnerCommands::unresolved("a script on standard input");
    };
    if matches!(first.text.as_str(), "--version" | "--help") && args.len() == 1 {
        return InnerCommands::default();
    }
    let texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    let looks_like_script =
        |text: &&str| text.starts_with('-') && !text.starts_with("--") && text.contains('c');
    let place = match find_script(&texts) {
        Some(ShellInput::Script(at)) => Some(at - 1),
        // Options that are not known may take a value.
        Some(ShellInput::File(_)) | None => texts.iter().position(looks_like_script),
    };
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

/// Whether `runuser` is used like `su`, with a script for the shell of the user.
fn runs_login_script(args: &[CommandWord]) -> bool {
    let has = |short: &str, long: &str| {
        args.iter()
            .any(|word| word.text.starts_with(short) || word.text.starts_with(long))
    };
    has("-c", "--command") && !has("-u", "--user")
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

/// `watch` joins the rest of its words to a script.
const WATCH: Wrapper<'static> = Wrapper {
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
    ..Wrapper::new(&["watch"], WrapperClass::Transparent)
};

fn analyze_watch(args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands {
        transparent: true,
        ..InnerCommands::default()
    };
    match skip_own_words(&WATCH, args, &mut inner) {
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
