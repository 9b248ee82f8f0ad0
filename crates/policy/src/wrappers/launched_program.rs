//! What a launcher runs, for an allow list: hidden wherever a word that decides it is not known.

use ostler_model::ByteString;

use super::launchers::{LAUNCHERS, SCRIPT_LAUNCHERS, split_version};
use super::wrapper::{FirstWord, Wrapper};
use super::{InnerCommands, InnerProgram, command_wrappers};
use crate::word::CommandWord;

/// The program that the launcher `name` runs; none where it is not used as a launcher.
pub(super) fn launched_program(
    name: &str,
    args: &[ByteString],
    words: &[CommandWord],
) -> Option<InnerProgram> {
    let all = std::iter::once(name).chain(words.iter().map(|word| word.text.as_str()));
    let all: Vec<&str> = all.collect();
    let mut launchers = LAUNCHERS
        .iter()
        .filter(|it| it.words.first() == Some(&name));
    let launcher = launchers.find(|it| it.may_match(&all))?;
    let [_, texts @ ..] = all.as_slice() else {
        return None;
    };
    if matches!(texts, [] | ["--help" | "--version"]) {
        return None;
    }
    let has_no_operand = || {
        let found = launcher.match_words(&all);
        found.is_some_and(|found| found.command_at == all.len())
    };
    if launcher.first_word == FirstWord::Creation && has_no_operand() {
        // `npm init -y` writes a package file itself.
        return None;
    }
    let result = find_command(launcher, &all, words).and_then(|command| {
        let (at, variables) = command;
        let mut command = args.get(at..).unwrap_or_default().to_vec();
        let program = texts.get(at).copied().unwrap_or_default();
        if !is_plain(launcher.first_word, program) {
            return Err(program.to_owned());
        }
        if let Some(first) = command.first_mut() {
            *first = ByteString::from(launcher.first_word.program(program).as_ref());
        }
        Ok(InnerProgram::Command {
            variables,
            words: command,
        })
    });
    Some(result.unwrap_or_else(InnerProgram::Hidden))
}

/// The index of the command among the arguments, and the names of the variables set for it.
///
/// # Errors
/// The word or words that hide the command.
fn find_command(
    launcher: &Wrapper<'_>,
    all: &[&str],
    words: &[CommandWord],
) -> Result<(usize, Vec<String>), String> {
    let texts = all.get(1..).unwrap_or_default();
    if launcher.match_words(all).is_none() {
        // An unknown option may have the subcommand as its value, or `--` is missing.
        let word = texts.iter().find(|it| is_option(it)).or(texts.last());
        return Err(word.map_or_else(String::new, |it| (*it).to_owned()));
    }
    let mut inner = InnerCommands::default();
    let command = command_wrappers::skip_own_words(launcher, words, &mut inner)?;
    let at = words.len() - command.len();
    let (own, command) = texts.split_at(at);
    if SCRIPT_LAUNCHERS
        .iter()
        .any(|it| launcher.words.first() == Some(it))
    {
        return Err("arguments: it runs them in a shell".to_owned());
    }
    let is_dashed = own.last() == Some(&"--");
    // Not every word before `--` was read; options after the command may be the launcher's.
    let unread = if launcher.needs_dashes { own } else { &[] };
    let trailing = if launcher.keeps_options && !is_dashed {
        command
    } else {
        &[]
    };
    let unread = unread.iter().take_while(|word| **word != "--");
    let trailing = trailing.iter().take_while(|word| **word != "--");
    if let Some(word) = unread.chain(trailing).find(|word| is_option(word)) {
        return Err((*word).to_owned());
    }
    if command.is_empty() {
        return Err("no command".to_owned());
    }
    let variables = inner.variables.into_iter().map(|it| it.name);
    Ok((at, variables.collect()))
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word != "--"
}

/// Whether a first word names what is run by itself: a package by name and version, not one from
/// elsewhere (`vite@npm:other`, `vite@../other`, `vite@other.tgz`).
fn is_plain(first_word: FirstWord, word: &str) -> bool {
    let (name, version) = split_version(word);
    let is_plain_name = match first_word {
        FirstWord::Program => return true,
        FirstWord::Package => true,
        FirstWord::Creation => is_created_name(name),
    };
    let is_plain_version = version.is_none_or(|version| {
        let is_tag = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let number = version.trim_start_matches(['^', '~', '=']);
        let is_number = number.starts_with(|c: char| c.is_ascii_digit())
            && number
                .bytes()
                .all(|byte| is_tag(byte) || b".+".contains(&byte));
        let is_archive = number.to_ascii_lowercase().contains(".t");
        (!version.is_empty() && version.bytes().all(is_tag)) || (is_number && !is_archive)
    });
    is_plain_name && is_plain_version
}

/// Whether the packages that make this are named after it: not those of a repository, a directory
/// or an archive, and not `create-vite`, which not all package managers read alike.
fn is_created_name(name: &str) -> bool {
    let (scope, name) = match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
        Some(Some((scope, name))) => (scope, name),
        Some(None) => (name.trim_start_matches('@'), "name"),
        None => ("scope", name),
    };
    let is_part = |part: &str| {
        let is_part_char = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        !part.is_empty() && part.bytes().all(is_part_char)
    };
    is_part(scope) && is_part(name) && !name.starts_with("create-")
}

#[cfg(test)]
mod tests {
    use super::super::{InnerProgram, inner_program};
    use super::*;

    fn of(line: &str) -> InnerProgram {
        let words: Vec<ByteString> = line.split(' ').map(ByteString::from).collect();
        let (program, args) = words.split_first().expect("a program");
        inner_program(program, args)
    }

    #[test]
    fn the_command_behind_known_words_is_found() {
        for (line, command) in [
            ("npx vite --port 3000", "vite --port 3000"),
            ("npx --yes vite@5.1.0-beta.2", "vite"),
            ("npx vite@latest --package=x", "vite --package=x"),
            ("npx @angular/cli@^17 serve", "ng serve"),
            ("npx @other/vite", "@other/vite"),
            ("npx ./vite", "./vite"),
            ("npm exec -- vite --port 3", "vite --port 3"),
            ("npm exec vite -- --port 3", "vite -- --port 3"),
            ("npm --loglevel error x vite", "vite"),
            ("bunx --bun vite", "vite"),
            ("uv run --frozen pytest -x", "pytest -x"),
            ("uv run script.py", "script.py"),
            ("uvx ruff check", "ruff check"),
            ("uv tool run ruff", "ruff"),
            ("pipx run black", "black"),
            ("poetry run env python", "env python"),
            ("pnpm exec vite", "vite"),
            ("cross-env A=1 vite", "vite"),
            ("mise exec node@20 -- vite", "vite"),
            ("corepack pnpm dlx vite", "pnpm dlx vite"),
            ("npm init vite", "create-vite"),
            ("npm create -y vite@latest app", "create-vite app"),
            (
                "npm innit @scope/app -- --own",
                "@scope/create-app -- --own",
            ),
            ("npm init @scope@2", "@scope/create"),
            ("npm init init", "create-init"),
            ("npm create create app", "create-create app"),
            ("pnpm create vite app", "create-vite app"),
            ("yarn create next-app", "create-next-app"),
            ("bun create react", "create-react"),
        ] {
            let words: Vec<ByteString> = command.split(' ').map(ByteString::from).collect();
            match of(line) {
                InnerProgram::Command { words: found, .. } => assert_eq!(found, words, "{line}"),
                other @ (InnerProgram::None | InnerProgram::Hidden(_)) => {
                    panic!("{line}: {other:?}")
                }
            }
        }
    }

    #[test]
    fn what_decides_in_another_way_hides_the_command() {
        for (line, word) in [
            ("npx -p other vite", "-p"),
            ("npx --package=other vite", "--package=other"),
            ("npx -c script", "-c"),
            ("npx --unknown vite", "--unknown"),
            ("npx --prefix /tmp vite", "--prefix"),
            ("npx -y", "no command"),
            ("npx vite@npm:other", "vite@npm:other"),
            ("npx vite@../other", "vite@../other"),
            ("npx vite@other.tgz", "vite@other.tgz"),
            ("npx vite@1.TGZ", "vite@1.TGZ"),
            ("npx vite@.other", "vite@.other"),
            ("npx vite@", "vite@"),
            ("npm exec vite --package=other", "--package=other"),
            ("npm exec vite -c script", "-c"),
            ("npm --unknown value exec vite", "--unknown"),
            ("pnpm exec -c script", "-c"),
            ("uv run -m module", "-m"),
            ("uv run --with other pytest", "--with"),
            ("uv run --env-file x pytest", "--env-file"),
            ("uvx --from other pytest", "--from"),
            ("pipx run --spec other black", "--spec"),
            (
                "npm init git+https://example.org/a",
                "git+https://example.org/a",
            ),
            ("npm init user/repository", "user/repository"),
            ("npm create create-vite", "create-vite"),
            ("npm init vite@npm:other", "vite@npm:other"),
            ("npm init vite --template x", "--template"),
            ("npm --unknown value create vite", "--unknown"),
            ("npm --unknown create create", "--unknown"),
            ("bun create ./template", "./template"),
            ("uv run -", "-"),
            (
                "cross-env-shell A=1 script",
                "arguments: it runs them in a shell",
            ),
            ("hatch run pytest", "arguments: it runs them in a shell"),
            ("mise exec node@20 vite", "vite"),
            ("mise exec node@20 -c script -- vite", "-c"),
            ("doppler run --command script", "--command"),
            ("nix develop -c script -- vite", "-c"),
        ] {
            assert_eq!(of(line), InnerProgram::Hidden(word.to_owned()), "{line}");
        }
    }

    #[test]
    fn what_launches_nothing_is_a_program_as_others() {
        for line in [
            "npm run dev",
            "npm install x",
            "npm ci",
            "npm init",
            "npm init -y",
            "npm init --scope=@scope",
            "npm --loglevel error init",
            "pnpm init",
            "yarn create",
            "yarn vite",
            "uv sync",
            "uv pip install run",
            "poetry --version",
            "npx --version",
            "npx",
        ] {
            assert_eq!(of(line), InnerProgram::None, "{line}");
        }
    }
}
