//! Prefix commands that run the command in their arguments.

use super::arguments::{base_name, is_option};
use super::simple_command::{SimpleCommand, name_and_value};
use super::table::DetectionTable;
use super::table_file::WrapperDefinition;

/// Programs whose packages are called otherwise.
const PACKAGES: [(&str, &str); 15] = [
    ("@angular/cli", "ng"),
    ("@nestjs/cli", "nest"),
    ("@vue/cli-service", "vue-cli-service"),
    ("@11ty/eleventy", "eleventy"),
    ("@rspack/cli", "rspack"),
    ("@rsbuild/core", "rsbuild"),
    ("@tauri-apps/cli", "tauri"),
    ("@ionic/cli", "ionic"),
    ("@tailwindcss/cli", "tailwindcss"),
    ("@stoplight/prism-cli", "prism"),
    ("@playwright/mcp", "playwright-mcp"),
    ("@web/dev-server", "wds"),
    ("@docusaurus/core", "docusaurus"),
    ("netlify-cli", "netlify"),
    ("firebase-tools", "firebase"),
];

/// Takes one wrapper off; whether there was one.
pub(super) fn strip_wrapper(call: &mut SimpleCommand, table: &DetectionTable) -> bool {
    // `command -v` only looks a program up.
    let looks_up = call
        .args()
        .first()
        .is_some_and(|it| it == "-v" || it == "-V");
    if (call.program() == "command" && looks_up) || as_another_user(call).is_some() {
        return false;
    }
    let found = table
        .wrappers(call.program())
        .find_map(|wrapper| Some((wrapper, match_wrapper(wrapper, &call.words)?)));
    let Some((wrapper, stripped)) = found else {
        return false;
    };
    let mut words = call.words.split_off(stripped.at);
    let dashed = call.words.iter().chain(&words).any(|word| word == "--");
    if let (true, Some(first)) = (wrapper.package, words.first_mut()) {
        *first = package_program(first);
    }
    if let (true, false, Some(lead)) = (wrapper.keeps_options, dashed, &mut call.argument_prefix) {
        lead.push("--".to_owned());
    }
    for directory in &stripped.directories {
        call.change_dir(directory);
    }
    call.env.extend(stripped.env);
    call.words = words;
    true
}

#[derive(Debug, Default)]
struct WrapperMatch {
    at: usize,
    directories: Vec<String>,
    env: Vec<(String, String)>,
}

/// Where the command begins that a wrapper runs.
fn match_wrapper(wrapper: &WrapperDefinition, words: &[String]) -> Option<WrapperMatch> {
    let mut stripped = WrapperMatch {
        at: 1,
        ..WrapperMatch::default()
    };
    for subcommand in wrapper.words.iter().skip(1) {
        skip_options(wrapper, words, &mut stripped);
        if words.get(stripped.at)? != subcommand {
            return None;
        }
        stripped.at += 1;
    }
    skip_options(wrapper, words, &mut stripped);
    if wrapper.dashes {
        let rest = words.get(stripped.at..)?;
        stripped.at += rest.iter().position(|word| word == "--")? + 1;
    } else {
        skip_dashes(words, &mut stripped);
        stripped.at += wrapper.operands;
        skip_dashes(words, &mut stripped);
    }
    let pair = |at: usize| words.get(at).and_then(|it| name_and_value(it));
    let assigned = |at: usize| pair(at).filter(|_| wrapper.assigns);
    while let Some((name, value)) = assigned(stripped.at) {
        stripped.env.push((name.to_owned(), value.to_owned()));
        stripped.at += 1;
    }
    (stripped.at < words.len()).then_some(stripped)
}

fn skip_dashes(words: &[String], stripped: &mut WrapperMatch) {
    if words.get(stripped.at).is_some_and(|word| word == "--") {
        stripped.at += 1;
    }
}

fn skip_options(wrapper: &WrapperDefinition, words: &[String], stripped: &mut WrapperMatch) {
    let has = |list: &[String], name: &str| list.iter().any(|it| it == name);
    while let Some(word) = words.get(stripped.at) {
        if !is_option(word) || word == "--" {
            return;
        }
        stripped.at += 1;
        let (name, mut value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let is_chdir = has(&wrapper.chdir, name);
        if value.is_none() && (is_chdir || has(&wrapper.takes, name)) {
            value = words.get(stripped.at).cloned();
            stripped.at += 1;
        }
        if is_chdir {
            stripped.directories.extend(value);
        }
    }
}

/// The program of a package: `vite@5` is `vite`, `@angular/cli` is `ng`.
fn package_program(word: &str) -> String {
    let name = match word.rfind('@') {
        Some(at) if at > 0 => word.get(..at).unwrap_or(word),
        Some(_) | None => word,
    };
    let package_entry = PACKAGES.iter().find(|(package, _)| *package == name);
    package_entry
        .map_or(name, |(_, program)| program)
        .to_owned()
}

/// `sh -c 'script'`: the script; or the file of one, `./dev.sh`.
pub(super) fn shell_script(call: &SimpleCommand) -> Option<ShellScript<'_>> {
    let program = call.program();
    if program.ends_with(".sh") {
        return Some(ShellScript::File(program));
    }
    if let Some(text) = as_another_user(call) {
        return Some(ShellScript::Text(text));
    }
    if !["sh", "bash", "zsh", "dash", "ksh", "ash"].contains(&base_name(program)) {
        return None;
    }
    let mut args = call.args().iter();
    while let Some(arg) = args.next() {
        if !is_option(arg) {
            return Some(ShellScript::File(arg));
        }
        if !arg.starts_with("--") && arg.ends_with('c') {
            return args.next().map(|text| ShellScript::Text(text));
        }
        if arg == "-o" {
            args.next();
        }
    }
    None
}

/// `su - ann -c 'script'`: the script.
fn as_another_user(call: &SimpleCommand) -> Option<&str> {
    if !["su", "runuser"].contains(&base_name(call.program())) {
        return None;
    }
    let is_command_flag = |arg: &String| arg == "-c" || arg == "--command";
    let at = call.args().iter().position(is_command_flag)?;
    call.args().get(at + 1).map(String::as_str)
}

/// What a shell is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellScript<'a> {
    Text(&'a str),
    /// The name of a file of one.
    File(&'a str),
}

/// `python -m module …`: the words of the module; `node node_modules/vite/bin/vite.js`: those
/// of the package. Whether there was one.
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
    package_program(&package.join("/"))
}
