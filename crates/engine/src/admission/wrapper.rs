//! Programs that run other programs (`env`, `nice`): which program they would run, where the
//! arguments show it.

/// What a program would run besides itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WrappedCommand<'a> {
    /// Nothing we know of.
    None,
    /// This command, with these variables set.
    Command {
        /// Names of the variables.
        variables: Vec<&'a [u8]>,
        /// Program and arguments.
        command: Vec<&'a [u8]>,
    },
    /// Something that cannot be seen through: what it was given.
    Opaque(String),
}

/// How a wrapper's own options are told from the command it runs.
struct WrapperSpec {
    name: &'static str,
    /// Options without a value, and with one joined by `=` or to a short letter.
    flags: &'static [&'static str],
    /// Options whose value is the next word (unless joined).
    valued: &'static [&'static str],
    /// Words of its own before the command.
    positional: usize,
    /// Whether `NAME=value` words may stand before the command.
    assignments: bool,
}

const WRAPPERS: [WrapperSpec; 8] = [
    WrapperSpec {
        name: "env",
        flags: &[
            "-i",
            "-",
            "-0",
            "-v",
            "--ignore-environment",
            "--null",
            "--debug",
        ],
        valued: &["-u", "--unset", "-C", "--chdir"],
        positional: 0,
        assignments: true,
    },
    WrapperSpec {
        name: "nice",
        flags: &[],
        valued: &["-n", "--adjustment"],
        positional: 0,
        assignments: false,
    },
    WrapperSpec {
        name: "nohup",
        flags: &[],
        valued: &[],
        positional: 0,
        assignments: false,
    },
    WrapperSpec {
        name: "timeout",
        flags: &["-v", "--verbose", "--foreground", "--preserve-status"],
        valued: &["-k", "--kill-after", "-s", "--signal"],
        positional: 1,
        assignments: false,
    },
    WrapperSpec {
        name: "setsid",
        flags: &["-c", "-f", "-w", "--ctty", "--fork", "--wait"],
        valued: &[],
        positional: 0,
        assignments: false,
    },
    WrapperSpec {
        name: "stdbuf",
        flags: &[],
        valued: &["-i", "--input", "-o", "--output", "-e", "--error"],
        positional: 0,
        assignments: false,
    },
    WrapperSpec {
        name: "sudo",
        flags: &["-n", "-H", "-k", "-b", "--non-interactive", "--set-home"],
        valued: &["-u", "--user", "-g", "--group"],
        positional: 0,
        assignments: true,
    },
    WrapperSpec {
        name: "xargs",
        flags: &[
            "-0",
            "-r",
            "-t",
            "-x",
            "--null",
            "--no-run-if-empty",
            "--verbose",
        ],
        valued: &[
            "-n",
            "--max-args",
            "-P",
            "--max-procs",
            "-I",
            "-L",
            "--max-lines",
            "-s",
            "--max-chars",
            "-d",
            "--delimiter",
            "-a",
            "--arg-file",
            "-E",
        ],
        positional: 0,
        assignments: false,
    },
];

/// Shells: whatever they are given is a script, and scripts are refused while a list is set.
const SHELLS: [&str; 12] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "pwsh",
];

/// Programs that run the program they are given, in ways not seen through here.
const OPAQUE: [&str; 32] = [
    "su",
    "doas",
    "runuser",
    "chroot",
    "unshare",
    "nsenter",
    "setpriv",
    "capsh",
    "bwrap",
    "firejail",
    "flock",
    "script",
    "ionice",
    "chrt",
    "taskset",
    "prlimit",
    "setarch",
    "linux32",
    "linux64",
    "time",
    "watch",
    "strace",
    "ltrace",
    "gdb",
    "valgrind",
    "parallel",
    "entr",
    "busybox",
    "toybox",
    "systemd-run",
    "start-stop-daemon",
    "ld.so",
];

/// Options of ordinary programs that run a program named by their value.
const DANGEROUS: [(&str, &[&str]); 5] = [
    ("find", &["-exec", "-execdir", "-ok", "-okdir"]),
    (
        "git",
        &[
            "-c",
            "--config-env",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--ext-diff",
        ],
    ),
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
        ],
    ),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("sort", &["--compress-program"]),
];

/// What `name` with these arguments would run.
pub(super) fn wrapped_command<'a>(name: &[u8], args: &[&'a [u8]]) -> WrappedCommand<'a> {
    let Ok(name) = std::str::from_utf8(name) else {
        return WrappedCommand::None;
    };
    if SHELLS.contains(&name) {
        return match args {
            [b"--version" | b"--help"] => WrappedCommand::None,
            _ => WrappedCommand::Opaque("a script: a shell can run anything".to_owned()),
        };
    }
    if OPAQUE.contains(&name) && !args.is_empty() {
        return WrappedCommand::Opaque("arguments: it runs what it is given".to_owned());
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|known| known.name == name) {
        return parse_wrapper(wrapper, args);
    }
    dangerous_option(name, args).map_or(WrappedCommand::None, WrappedCommand::Opaque)
}

fn dangerous_option(name: &str, args: &[&[u8]]) -> Option<String> {
    let (_, options) = DANGEROUS.iter().find(|(known, _)| *known == name)?;
    let found = args
        .iter()
        .find(|word| options.iter().any(|option| is_option(word, option)))?;
    Some(String::from_utf8_lossy(found).into_owned())
}

/// Whether `word` is `option`, alone, with its value joined, or abbreviated as getopt_long(3)
/// lets long options be.
fn is_option(word: &[u8], option: &str) -> bool {
    const SHORTEST_ABBREVIATION: usize = 4;
    let option = option.as_bytes();
    let name = word.split(|byte| *byte == b'=').next().unwrap_or(word);
    if option.starts_with(b"--") && name.len() >= SHORTEST_ABBREVIATION && option.starts_with(name)
    {
        return true;
    }
    let long = option.starts_with(b"--") || option.len() > 2;
    match word.strip_prefix(option) {
        Some([]) => true,
        Some(rest) => !long || rest.starts_with(b"="),
        None => false,
    }
}

fn parse_wrapper<'a>(wrapper: &WrapperSpec, args: &[&'a [u8]]) -> WrappedCommand<'a> {
    let refused = |word: &[u8]| WrappedCommand::Opaque(String::from_utf8_lossy(word).into_owned());
    let mut variables = Vec::new();
    let mut positional = wrapper.positional;
    let mut words = args.iter().copied().peekable();
    let mut options = true;
    while let Some(word) = words.peek().copied() {
        if options && word == b"--" {
            options = false;
        } else if options && word.starts_with(b"-") {
            match own_option(wrapper, word) {
                OwnOption::Flag => {}
                OwnOption::TakesNext => {
                    words.next();
                }
                OwnOption::Unknown => return refused(word),
            }
        } else if let (true, Some(name)) = (wrapper.assignments, assignment(word)) {
            variables.push(name);
            options = false;
        } else if positional > 0 {
            positional -= 1;
            options = false;
        } else {
            break;
        }
        words.next();
    }
    let command: Vec<&[u8]> = words.collect();
    let own = args.get(..args.len() - command.len()).unwrap_or_default();
    if wrapper.name == "xargs" && replaces_program(own, &command) {
        return refused(b"-I");
    }
    into_wrapped(wrapper, variables, command)
}

/// Whether `xargs -I` puts its input in place of the program, or of a part of it.
fn replaces_program(own: &[&[u8]], command: &[&[u8]]) -> bool {
    let program = command.first().copied().unwrap_or_default();
    let program = String::from_utf8_lossy(program);
    own.iter().enumerate().any(|(at, word)| {
        let replaced = match word.strip_prefix(b"-I") {
            Some([]) => own.get(at + 1).copied(),
            joined => joined,
        };
        let replaced = replaced.map(String::from_utf8_lossy);
        replaced.is_some_and(|it| program.contains(&*it))
    })
}

fn into_wrapped<'a>(
    wrapper: &WrapperSpec,
    variables: Vec<&'a [u8]>,
    mut command: Vec<&'a [u8]>,
) -> WrappedCommand<'a> {
    if wrapper.name == "xargs" {
        // Further arguments come from its input: what they make another wrapper run is unseen.
        let program = command.first().copied().unwrap_or(b"echo");
        let program = program
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or(program);
        if is_runner(program) {
            return WrappedCommand::Opaque(String::from_utf8_lossy(program).into_owned());
        }
        if command.is_empty() {
            command.push(b"echo");
        }
    }
    WrappedCommand::Command { variables, command }
}

fn is_runner(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    SHELLS.contains(&name)
        || OPAQUE.contains(&name)
        || WRAPPERS.iter().any(|known| known.name == name)
        || DANGEROUS.iter().any(|(known, _)| *known == name)
}

enum OwnOption {
    Flag,
    TakesNext,
    Unknown,
}

fn own_option(wrapper: &WrapperSpec, word: &[u8]) -> OwnOption {
    let is = |known: &&str| known.as_bytes() == word;
    if wrapper.flags.iter().any(is) {
        return OwnOption::Flag;
    }
    if wrapper.valued.iter().any(is) {
        return OwnOption::TakesNext;
    }
    let joined = |known: &&str| is_option(word, known) && word.len() > known.len();
    let niceness = wrapper.name == "nice" && word[1..].iter().all(u8::is_ascii_digit);
    if wrapper.valued.iter().any(joined) || niceness {
        return OwnOption::Flag;
    }
    OwnOption::Unknown
}

/// The name, where the word is `NAME=value`.
fn assignment(word: &[u8]) -> Option<&[u8]> {
    let index = word.iter().position(|byte| *byte == b'=')?;
    (index > 0 && !word[..index].contains(&b'/')).then(|| &word[..index])
}
