//! Wrappers, shells, and what evaluates its words.

use super::Given;
use super::git::is_inside;
use super::table::{CODE_BUILTINS, OPAQUE, OTHER_SHELLS, POSIX_SHELLS, WRAPPERS, Wrapper};
use crate::flags::is_flag;
use crate::seen::{Value, Variable};
use crate::word::{Word, texts};

/// What a wrapper runs; none where `name` is no wrapper.
pub(super) fn look(name: &str, args: &[Word]) -> Option<Given> {
    let tells = |word: &Word| matches!(word.text.as_str(), "-v" | "-V");
    if name == "command" && args.first().is_some_and(tells) {
        return Some(Given::default());
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|known| known.name == name) {
        return Some(unwrap(wrapper, args));
    }
    if POSIX_SHELLS.contains(&name) {
        return Some(Given {
            bash: matches!(name, "bash" | "rbash"),
            ..shell(args, true)
        });
    }
    if OTHER_SHELLS.contains(&name) {
        return Some(shell(args, false));
    }
    if CODE_BUILTINS.contains(&name) {
        return Some(Given {
            scripts: vec![texts(args).join(" ")],
            ..Given::doubt(format!("'{name}'"))
        });
    }
    if OPAQUE.contains(&name) {
        return Some(Given {
            scripts: script_words(args),
            ..Given::doubt(format!("'{name}' runs what it is given"))
        });
    }
    match name {
        "su" | "script" | "flock" => Some(takes_script(name, args)),
        "watch" => Some(watch(args)),
        "ssh" => Some(Given {
            scripts: script_words(args),
            ..Given::doubt("'ssh' runs it on another machine")
        }),
        _ => None,
    }
}

fn script_words(args: &[Word]) -> Vec<String> {
    let from = args.iter().position(|word| !word.text.starts_with('-'));
    let words = from.and_then(|from| args.get(from..)).unwrap_or_default();
    vec![texts(words).join(" ")]
}

fn unwrap(wrapper: &Wrapper, args: &[Word]) -> Given {
    let mut given = Given {
        transparent: wrapper.transparent,
        ..Given::default()
    };
    let rest = match own_words(wrapper, args, &mut given) {
        Ok(rest) => rest,
        Err(word) => {
            given.doubts.push(format!("'{word}' of '{}'", wrapper.name));
            given.transparent = false;
            return given;
        }
    };
    let mut command = rest.to_vec();
    let own = args.get(..args.len() - rest.len()).unwrap_or_default();
    if wrapper.name == "env" {
        moves_or_unsets(own, &mut given);
    }
    if wrapper.name == "xargs" {
        replace(own, &mut command);
        if command.is_empty() {
            command.push(Word::sure("echo"));
        }
        command.push(Word::opaque("…"));
    }
    if let Some(program) = command.first() {
        if !program.is_sure() {
            given
                .doubts
                .push("a program that cannot be seen".to_owned());
        }
        given.commands.push(command);
    } else if wrapper.name == "exec" {
        given.doubts.push("'exec' without a command".to_owned());
    }
    given
}

/// What `env` changes besides setting variables.
fn moves_or_unsets(own: &[Word], given: &mut Given) {
    if own.iter().any(|word| !word.is_sure()) {
        let what = "an option of 'env' that cannot be seen";
        given.doubts.push(what.to_owned());
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
            let what = "'env' leaves the working directory";
            given.doubts.push(what.to_owned());
        }
        if let Some(name) = value("-u", "--unset") {
            given.variables.push(Variable {
                name: name.to_owned(),
                value: Value::Kept,
            });
        }
    }
}

/// Of the words that `xargs -I` replaces parts of, nothing is known.
fn replace(own: &[Word], command: &mut [Word]) {
    for (at, word) in own.iter().enumerate() {
        let replaced = match word.text.strip_prefix("-I") {
            Some("") => own.get(at + 1).map_or("", |it| it.text.as_str()),
            Some(joined) => joined,
            None => continue,
        };
        for word in command.iter_mut().filter(|it| it.text.contains(replaced)) {
            *word = Word::opaque(word.text.clone());
        }
    }
}

/// What remains behind the wrapper's own words.
fn own_words<'a>(
    wrapper: &Wrapper,
    args: &'a [Word],
    given: &mut Given,
) -> Result<&'a [Word], String> {
    let mut positional = wrapper.positional;
    let mut options = true;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        let begins = options && text.starts_with('-') && text.len() > usize::from(text != "-");
        if !word.is_sure() {
            return Err(text.to_owned());
        } else if begins && text == "--" {
            options = false;
        } else if begins {
            at += usize::from(takes_next(wrapper, text)?);
        } else if let (true, Some((name, value))) = (wrapper.assignments, assignment(text)) {
            given.variables.push(Variable {
                name: name.to_owned(),
                value: Value::of(value),
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
fn takes_next(wrapper: &Wrapper, word: &str) -> Result<bool, String> {
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

fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=')
        .filter(|(name, _)| !name.is_empty() && !name.contains('/'))
}

/// A shell: only `-c` with one script that is understood.
fn shell(args: &[Word], posix: bool) -> Given {
    let Some(first) = args.first() else {
        return Given::doubt("a script on standard input");
    };
    if matches!(first.text.as_str(), "--version" | "--help") && args.len() == 1 {
        return Given::default();
    }
    let place = args.iter().position(|word| {
        word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c')
    });
    let Some(place) = place else {
        return Given::doubt("a script in a file or on standard input");
    };
    let mut given = Given {
        transparent: true,
        ..Given::default()
    };
    let before_is_plain = place == 0 && matches!(first.text.as_str(), "-c" | "-ec" | "-ce" | "-lc");
    if !before_is_plain {
        given
            .doubts
            .push(format!("options of a shell: '{}'", first.text));
    }
    if first.text == "-lc" {
        given.doubts.push("a login shell".to_owned());
    }
    match args.get(place + 1) {
        Some(script) => {
            if !posix || !script.is_sure() {
                given.doubts.push("a script that cannot be seen".to_owned());
            }
            given.scripts.push(script.text.clone());
        }
        None => given.doubts.push("a shell without its script".to_owned()),
    }
    given
}

/// `su -c SCRIPT`, `script -c SCRIPT`, `flock FILE -c SCRIPT` and `flock FILE COMMAND…`.
fn takes_script(name: &str, args: &[Word]) -> Given {
    let mut given = Given::doubt(format!("'{name}' runs what it is given"));
    for (at, word) in args.iter().enumerate() {
        let joined = word.text.strip_prefix("--command=");
        let next = is_flag(&word.text, "-c") || word.text == "--command";
        let script = joined.map(str::to_owned);
        let script = script.or_else(|| {
            next.then(|| args.get(at + 1))
                .flatten()
                .map(|it| it.text.clone())
        });
        given.scripts.extend(script);
    }
    given
}

fn watch(args: &[Word]) -> Given {
    let mut given = Given {
        transparent: true,
        ..Given::default()
    };
    let wrapper = Wrapper {
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
    match own_words(&wrapper, args, &mut given) {
        Ok(rest) => {
            if rest.iter().any(|word| !word.is_sure()) {
                given.doubts.push("a script that cannot be seen".to_owned());
            }
            given.scripts.push(texts(rest).join(" "));
        }
        Err(word) => given.doubts.push(format!("'{word}' of 'watch'")),
    }
    given
}
