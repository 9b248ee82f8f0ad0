//! Interpreters, and options of ordinary programs that run others (data).

use std::borrow::Cow;

use super::InnerCommands;
use super::command_wrappers::shell_input;
use super::options::{OTHER_SHELLS, POSIX_SHELLS};
use crate::flags::is_flag;
use crate::word::CommandWord;

/// Interpreters, with their options that take or load code.
const INTERPRETERS: [(&str, &[&str]); 27] = [
    ("python", &["-c", "-i", "-X"]),
    ("pypy", &["-c", "-i"]),
    ("ipython", &["-c"]),
    (
        "perl",
        &["-e", "-E", "-M", "-m", "-I", "-n", "-p", "-i", "-d", "-x"],
    ),
    ("ruby", &["-e", "-r", "-I", "-n", "-p", "-x"]),
    ("irb", &[]),
    (
        "node",
        &[
            "-e",
            "--eval",
            "-p",
            "--print",
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "-i",
            "--env-file",
        ],
    ),
    (
        "nodejs",
        &[
            "-e",
            "--eval",
            "-p",
            "--print",
            "-r",
            "--require",
            "--import",
        ],
    ),
    ("bun", &["-e", "--eval", "-p", "--print", "-r", "--preload"]),
    ("deno", &["-A", "--allow-run", "--allow-all"]),
    ("php", &["-r", "-B", "-R", "-E", "-d", "-a"]),
    ("lua", &["-e", "-l", "-i"]),
    ("luajit", &["-e", "-l", "-i"]),
    ("Rscript", &["-e"]),
    ("R", &["-e", "-f"]),
    ("julia", &["-e", "-E", "-L"]),
    ("groovy", &["-e"]),
    ("scala", &["-e"]),
    ("elixir", &["-e", "--eval", "--rpc-eval"]),
    ("erl", &["-eval", "-run", "-s"]),
    ("ghc", &["-e"]),
    ("ocaml", &["-e"]),
    ("guile", &["-c", "-e", "-l"]),
    (
        "emacs",
        &[
            "-eval",
            "--eval",
            "-f",
            "--funcall",
            "-l",
            "--load",
            "--script",
            "--batch",
        ],
    ),
    ("tclsh", &[]),
    ("osascript", &["-e"]),
    ("jshell", &[]),
];

/// Options of ordinary programs whose value is a program to run, or may name one.
const COMMAND_OPTIONS: [(&str, &[&str]); 24] = [
    ("nodemon", &["-x", "--exec"]),
    (
        "tar",
        &[
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    ),
    ("bsdtar", &["--use-compress-program"]),
    ("cpio", &["--rsh-command"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o", "-F"]),
    ("sftp", &["-S", "-o", "-F", "-D"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("ag", &["--pager"]),
    ("ack", &["--pager"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("wget", &["--use-askpass", "-e", "--execute"]),
    ("go", &["-exec", "-toolexec", "-vettool"]),
    (
        "npm",
        &["--script-shell", "--shell", "--git", "--editor", "--viewer"],
    ),
    ("pnpm", &["--script-shell"]),
    ("yarn", &["--script-shell"]),
    ("gcc", &["-wrapper"]),
    ("cc", &["-wrapper"]),
    (
        "ctest",
        &["--build-and-test", "--test-command", "--build-makeprogram"],
    ),
];

/// Options of ordinary programs that load code, or write to another file.
const CODE_OPTIONS: [(&str, &[&str]); 39] = [
    (
        "tar",
        &[
            "--index-file",
            "--volno-file",
            "-T",
            "--files-from",
            "-g",
            "--listed-incremental",
            "--delete",
            // The prompt for another volume runs a shell.
            "-M",
            "--multi-volume",
            "-L",
            "--tape-length",
        ],
    ),
    ("sftp", &["-b"]),
    ("vim", &["-c", "-S", "-s", "-u", "--cmd"]),
    ("vi", &["-c", "-S", "-s", "-u", "--cmd"]),
    ("nvim", &["-c", "-S", "-s", "-u", "--cmd", "-l"]),
    ("ex", &["-c", "-S", "-s", "--cmd"]),
    ("view", &["-c", "-S", "--cmd"]),
    ("man", &["-C", "-X"]),
    ("less", &["-k", "--lesskey-file", "--lesskey-src"]),
    ("git-upload-pack", &[]),
    ("zip", &["-T", "--test"]),
    ("curl", &["-K", "--config", "--proxy", "--unix-socket"]),
    ("wget", &["--config"]),
    (
        "make",
        &[
            "--eval",
            "-f",
            "--file",
            "--makefile",
            "-I",
            "--include-dir",
            "-E",
        ],
    ),
    ("gmake", &["--eval", "-f", "--file", "--makefile"]),
    (
        "cmake",
        &[
            "-P",
            "-E",
            "-C",
            "--preset",
            "--toolchain",
            "--install",
            "--open",
            "--graphviz",
            "--trace-redirect",
            "--profiling-output",
            "--system-information",
            "--workflow",
            "--debugger",
            "--debugger-dap-log",
            "--debugger-pipe",
        ],
    ),
    (
        "cargo",
        &[
            "--config",
            "-C",
            "-Z",
            "--config-file",
            "--tool-config-file",
            "--archive-file",
            "--open",
            "--print-config",
        ],
    ),
    (
        "cargo-nextest",
        &["--config-file", "--tool-config-file", "--archive-file"],
    ),
    ("rustfmt", &["--print-config"]),
    ("gofmt", &["-cpuprofile"]),
    (
        "go",
        &[
            "-overlay",
            "-ldflags",
            "-gcflags",
            "-modfile",
            "-C",
            "-gccgoflags",
            "-asmflags",
            "-compiler",
        ],
    ),
    (
        "npm",
        &[
            "--node-options",
            "--userconfig",
            "--globalconfig",
            "--prefix",
            "--init-module",
            "--location",
            "--registry",
            "--logs-dir",
            "--proxy",
            "--https-proxy",
        ],
    ),
    ("pnpm", &["--node-options", "-C", "--dir"]),
    ("yarn", &["--cwd", "--use-yarnrc"]),
    (
        "pytest",
        &[
            "-p",
            "-c",
            "--rootdir",
            "-o",
            "--override-ini",
            "--confcutdir",
            "--pdbcls",
            "--basetemp",
            "--config-file",
            "--pdb",
            "--trace",
            "--pastebin",
            "--doctest-glob",
        ],
    ),
    ("gcc", &["-specs", "-B", "-fplugin"]),
    ("cc", &["-specs", "-B", "-fplugin"]),
    ("clang", &["-fplugin", "-load", "-B"]),
    (
        "ctest",
        &[
            "-S",
            "-SP",
            "-SN",
            "--script",
            "--script-new-process",
            "--overwrite",
            "-D",
            "--dashboard",
            "-T",
            "-M",
            "--submit-index",
            "--interactive-debug-mode",
            "--output-log",
            "--output-junit",
            "--extra-submit",
            "-O",
        ],
    ),
    ("ninja", &["-f", "-t"]),
    (
        "flake8",
        &["--append-config", "--config", "--enable-extensions"],
    ),
    (
        "isort",
        &["--settings-path", "--settings-file", "--sp", "--settings"],
    ),
    ("journalctl", &["--file", "-D"]),
    ("date", &["-s", "--set", "-f"]),
    ("file", &["-C", "--compile", "-m", "--magic-file"]),
    (
        "mypy",
        &[
            "--config-file",
            "--python-executable",
            "--install-types",
            "--custom-typing-module",
        ],
    ),
    ("ruff", &["--config"]),
    (
        "eslint",
        &[
            "-c",
            "--config",
            "--rulesdir",
            "--plugin",
            "--parser",
            "--resolve-plugins-relative-to",
            "-f",
            "--format",
            "-o",
            "--init",
        ],
    ),
    (
        "tsc",
        &[
            "--outdir",
            "--outfile",
            "-b",
            "--build",
            "--init",
            "--tsbuildinfofile",
            "--generatetrace",
            "--generatecpuprofile",
        ],
    ),
];

/// Options of other programs whose value is a file of commands or code.
const FILE_OPTIONS: [(&str, &[&str]); 10] = [
    ("awk", &["-f", "--file", "-E", "--exec", "-i", "--include"]),
    ("gawk", &["-f", "--file", "-E", "--exec", "-i", "--include"]),
    ("mawk", &["-f"]),
    ("sed", &["-f", "--file"]),
    ("gsed", &["-f", "--file"]),
    ("jq", &["-f", "--from-file", "-L"]),
    ("psql", &["-f", "--file"]),
    ("sqlite3", &["-init"]),
    ("gdb", &["-x", "--command", "-ix"]),
    ("ninja", &["-f"]),
];

/// The options by which a program loads code from files; some of them take code itself.
pub(crate) fn loads_files(name: &str) -> Vec<&'static str> {
    let base = without_version(name);
    let tables = INTERPRETERS
        .iter()
        .chain(&COMMAND_OPTIONS)
        .chain(&CODE_OPTIONS)
        .chain(&FILE_OPTIONS);
    let known = tables.filter(|(known, _)| *known == name || *known == base);
    known.flat_map(|(_, flags)| flags.iter().copied()).collect()
}

/// Whether a program runs the file that its first operand names.
pub(crate) fn runs_its_operand(name: &str) -> bool {
    let base = without_version(name);
    let interpreter = INTERPRETERS
        .iter()
        .any(|(known, _)| *known == name || *known == base);
    interpreter
        || POSIX_SHELLS.contains(&name)
        || OTHER_SHELLS.contains(&name)
        || [".", "source", "expect", "wish", "ts-node", "tsx", "crontab"].contains(&name)
}

/// Whether a shell or an interpreter takes its code from standard input.
pub(crate) fn reads_code_from_input(name: &str, args: &[CommandWord]) -> bool {
    let texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    let is_shell = POSIX_SHELLS.contains(&name) || OTHER_SHELLS.contains(&name);
    if is_shell {
        let reads_input = |word: &&str| !word.starts_with("--") && is_flag(word, "-s");
        return shell_input(name, &texts).is_none() || texts.iter().any(reads_input);
    }
    let is_file = |word: &&str| !word.starts_with('-') && *word != "/dev/stdin";
    runs_its_operand(name) && !texts.iter().any(is_file)
}

/// A program name without its version.
fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Unresolved parts of a program that takes code or runs others by an option.
pub(super) fn analyze(name: &str, args: &[CommandWord]) -> InnerCommands {
    let base = without_version(name);
    let known = |(known, _): &&(&str, &[&str])| *known == name || *known == base;
    if let Some((_, flags)) = INTERPRETERS.iter().find(known) {
        return analyze_interpreter(base, args, flags);
    }
    let tables = COMMAND_OPTIONS.iter().chain(&CODE_OPTIONS);
    let flags: Vec<&str> = tables
        .filter(known)
        .flat_map(|(_, it)| it.iter().copied())
        .collect();
    match find_flag(&plain_options(name, args), &flags) {
        Some(word) => InnerCommands::unresolved(format!("'{word}' of '{name}'")),
        None => InnerCommands::default(),
    }
}

/// The arguments of `tar` with a dash before the options that stand first without one; those of
/// `tsc`, to which the case of an option is the same, in small letters.
fn plain_options<'a>(name: &str, args: &'a [CommandWord]) -> Cow<'a, [CommandWord]> {
    if name == "tsc" {
        let lower = args.iter().map(|word| CommandWord {
            text: word.text.to_ascii_lowercase(),
            ..word.clone()
        });
        return Cow::Owned(lower.collect());
    }
    match args.first() {
        Some(first) if matches!(name, "tar" | "bsdtar") && !first.text.starts_with('-') => {
            let mut dashed = args.to_vec();
            dashed[0].text.insert(0, '-');
            Cow::Owned(dashed)
        }
        Some(_) | None => Cow::Borrowed(args),
    }
}

/// The options of a program whose value is a program to run.
pub(super) fn command_options(name: &str) -> Vec<&'static str> {
    let base = without_version(name);
    let known = |(known, _): &&(&str, &[&str])| *known == name || *known == base;
    let tables = COMMAND_OPTIONS.iter().filter(known);
    tables
        .flat_map(|(_, flags)| flags.iter().copied())
        .collect()
}

/// The word of a command line that makes a program run another.
pub(super) fn command_option(name: &str, args: &[CommandWord]) -> Option<String> {
    find_flag(&plain_options(name, args), &command_options(name)).map(str::to_owned)
}

pub(super) fn find_flag<'a>(args: &'a [CommandWord], flags: &[&str]) -> Option<&'a str> {
    args.iter()
        .map(|word| word.text.as_str())
        .find(|word| flags.iter().any(|flag| is_flag(word, flag)))
}

/// The options with which an interpreter prints information and reads no input.
fn info_flags(name: &str) -> &'static [&'static str] {
    match name {
        "python" | "pypy" | "ipython" => &["--version", "--help", "-V", "-VV", "-h"],
        "perl" | "php" | "ruby" | "lua" | "luajit" | "bun" | "julia" => {
            &["--version", "--help", "-v", "-h"]
        }
        "node" | "nodejs" => &["--version", "--help", "-v", "-h", "--v8-options"],
        "deno" | "guile" => &["--version", "--help", "-V", "-v", "-h"],
        _ => &["--version", "--help"],
    }
}

/// Checks options up to the program file; without one the interpreter reads standard input.
fn analyze_interpreter(name: &str, args: &[CommandWord], flags: &[&str]) -> InnerCommands {
    let module = |word: &CommandWord| name == "python" && word.text == "-m";
    let own = args
        .iter()
        .position(|word| !word.text.starts_with('-') || word.text == "-" || module(word))
        .unwrap_or(args.len());
    let (options, rest) = args.split_at(own);
    if let Some(word) = find_flag(options, flags) {
        let code = rest.first().map(|word| word.text.clone());
        return InnerCommands {
            scripts: Vec::new(),
            ..InnerCommands::unresolved(format!(
                "code for '{name}': '{word} {}'",
                code.unwrap_or_default()
            ))
        };
    }
    let is_info = |word: &CommandWord| info_flags(name).contains(&word.text.as_str());
    let input = |word: &CommandWord| matches!(word.text.as_str(), "-" | "/dev/stdin");
    let only_info = rest.is_empty() && options.iter().any(is_info);
    if rest.first().is_none_or(input) && !only_info {
        return InnerCommands::unresolved(format!("code for '{name}' on standard input"));
    }
    match rest {
        [option, program, args @ ..] if module(option) => analyze(&program.text, args),
        _ => InnerCommands::default(),
    }
}
