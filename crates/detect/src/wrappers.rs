//! Removes programs that run the command in their arguments: wrappers, shells, module runners.

use ostler_policy::{
    FirstWord, ShellInput, Wrapper, WrapperClass, package_program, shell_input, wrappers_of,
};

use super::arguments::{base_name, is_option};
use super::simple_command::SimpleCommand;
use super::table::DetectionTable;
use super::table_file::WrapperDefinition;

/// Wrappers that are not removed: `xargs` adds arguments from its input, and the words of the others
/// name a part of the program itself.
const KEPT_WRAPPERS: [&str; 3] = ["xargs", "busybox", "toybox"];

/// Removes one wrapper; returns whether there was one.
pub(super) fn strip_wrapper(call: &mut SimpleCommand, table: &DetectionTable) -> bool {
    let program = base_name(call.program());
    // `command -v` only looks a program up.
    let looks_up = call
        .args()
        .first()
        .is_some_and(|it| it == "-v" || it == "-V");
    let is_lookup = program == "command" && looks_up;
    if is_lookup || KEPT_WRAPPERS.contains(&program) || as_another_user(call).is_some() {
        return false;
    }
    let words = texts(&call.words);
    let added = table
        .wrappers(program)
        .find_map(|definition| WrappedWords::by_definition(definition, &words));
    let found = added.or_else(|| wrappers_of(program).find_map(|it| WrappedWords::by(it, &words)));
    let Some(found) = found else {
        return false;
    };
    let mut words = call.words.split_off(found.command_at);
    let dashed = call.words.iter().chain(&words).any(|word| word == "--");
    if let Some(first) = words.first_mut() {
        *first = found.first_word.program(first).into_owned();
    }
    if let (true, false, Some(lead)) = (found.keeps_options, dashed, &mut call.argument_prefix) {
        lead.push("--".to_owned());
    }
    for directory in &found.directories {
        call.change_dir(directory);
    }
    call.env.extend(found.env);
    call.words = words;
    true
}

/// What a wrapper's own words say, and where its command begins.
struct WrappedWords {
    command_at: usize,
    directories: Vec<String>,
    env: Vec<(String, String)>,
    first_word: FirstWord,
    keeps_options: bool,
}

impl WrappedWords {
    fn by(wrapper: &Wrapper<'_>, words: &[&str]) -> Option<Self> {
        let found = wrapper.match_words(words)?;
        let owned = |it: &&str| (*it).to_owned();
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        (found.command_at < words.len()).then(|| Self {
            command_at: found.command_at,
            directories: found.directories.iter().map(owned).collect(),
            env: found.variables.iter().map(pair).collect(),
            first_word: wrapper.first_word,
            keeps_options: wrapper.keeps_options,
        })
    }

    /// By a wrapper of a user's table.
    fn by_definition(definition: &WrapperDefinition, words: &[&str]) -> Option<Self> {
        let own = texts(&definition.words);
        let wrapper = Wrapper {
            valued: &texts(&definition.takes),
            directories: &texts(&definition.chdir),
            operands: definition.operands,
            assigns: definition.assigns,
            needs_dashes: definition.dashes,
            first_word: match definition.package {
                true => FirstWord::Package,
                false => FirstWord::Program,
            },
            keeps_options: definition.keeps_options,
            ..Wrapper::new(&own, WrapperClass::Launcher)
        };
        Self::by(&wrapper, words)
    }
}

fn texts(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// The script of `sh -c 'script'`, `sh dev.sh` and `./dev.sh`.
pub(super) fn shell_script(call: &SimpleCommand) -> Option<ShellScript<'_>> {
    let program = call.program();
    if program.ends_with(".sh") {
        return Some(ShellScript::File(program));
    }
    if let Some(text) = as_another_user(call) {
        return Some(ShellScript::Text(text));
    }
    match shell_input(base_name(program), &texts(call.args()))? {
        ShellInput::Script(at) => call.args().get(at).map(|text| ShellScript::Text(text)),
        ShellInput::File(at) => call.args().get(at).map(|path| ShellScript::File(path)),
    }
}

/// The script of `su - ann -c 'script'`.
fn as_another_user(call: &SimpleCommand) -> Option<&str> {
    if !["su", "runuser"].contains(&base_name(call.program())) {
        return None;
    }
    let is_command_flag = |arg: &String| arg == "-c" || arg == "--command";
    let at = call.args().iter().position(is_command_flag)?;
    call.args().get(at + 1).map(String::as_str)
}

/// The script of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellScript<'a> {
    Text(&'a str),
    /// The name of its file.
    File(&'a str),
}

/// Removes one module runner; returns whether there was one. `python -m module …` becomes the words
/// of the module, `node node_modules/vite/bin/vite.js` those of the package.
pub(super) fn strip_module_runner(call: &mut SimpleCommand) -> bool {
    let at = match base_name(call.program()) {
        "python" | "pypy" | "py" | "coverage" => python_module(call.args()),
        "node" | "bun" => {
            let at = call.args().iter().position(|arg| !is_option(arg));
            let in_modules = |at: &usize| {
                call.args()
                    .get(*at)
                    .is_some_and(|it| it.contains("node_modules/"))
            };
            at.filter(in_modules)
        }
        _ => None,
    };
    let Some(at) = at else { return false };
    let mut words: Vec<String> = call.args().iter().skip(at).cloned().collect();
    if let Some(first) = words.first_mut() {
        *first = bin_name(first);
    }
    call.words = words;
    true
}

fn python_module(args: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        match args.get(at)?.as_str() {
            "-m" => return args.get(at + 1).map(|_| at + 1),
            "-X" | "-W" => at += 2,
            arg if is_option(arg) => at += 1,
            _ => return None,
        }
    }
}

/// `node_modules/.bin/vite` and `node_modules/vite/bin/vite.js` are `vite`.
fn bin_name(path: &str) -> String {
    let Some((_, inside)) = path.rsplit_once("node_modules/") else {
        return path.to_owned();
    };
    let inside = inside.strip_prefix(".bin/").unwrap_or(inside);
    let parts = if inside.starts_with('@') { 2 } else { 1 };
    let package: Vec<&str> = inside.split('/').take(parts).collect();
    package_program(&package.join("/")).to_owned()
}
