//! The options of programs that run the rest of their words (data).

/// How to separate a wrapper's own words from the command it runs.
pub(super) struct WrapperOptions {
    pub(super) name: &'static str,
    /// Options without a value.
    pub(super) flags: &'static [&'static str],
    /// Options whose value is the next word, or joined.
    pub(super) valued: &'static [&'static str],
    /// How many positional words precede the command.
    pub(super) positional: usize,
    /// Whether `NAME=value` words may precede the command.
    pub(super) assignments: bool,
    /// Whether it leaves the command's user and directory unchanged.
    pub(super) transparent: bool,
}

const fn without_options(name: &'static str) -> WrapperOptions {
    WrapperOptions {
        name,
        flags: &[],
        valued: &[],
        positional: 0,
        assignments: false,
        transparent: true,
    }
}

pub(super) const WRAPPERS: [WrapperOptions; 30] = [
    WrapperOptions {
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
        assignments: true,
        ..without_options("env")
    },
    WrapperOptions {
        valued: &["-n", "--adjustment"],
        ..without_options("nice")
    },
    without_options("nohup"),
    WrapperOptions {
        flags: &["-v", "--verbose", "--foreground", "--preserve-status"],
        valued: &["-k", "--kill-after", "-s", "--signal"],
        positional: 1,
        ..without_options("timeout")
    },
    WrapperOptions {
        flags: &["-p", "--portability"],
        ..without_options("time")
    },
    WrapperOptions {
        flags: &["-c", "-f", "-w", "--ctty", "--fork", "--wait"],
        ..without_options("setsid")
    },
    WrapperOptions {
        valued: &["-i", "--input", "-o", "--output", "-e", "--error"],
        ..without_options("stdbuf")
    },
    WrapperOptions {
        flags: &["-t", "--ignore"],
        valued: &["-c", "--class", "-n", "--classdata"],
        ..without_options("ionice")
    },
    WrapperOptions {
        flags: &["-c", "--cpu-list"],
        positional: 1,
        ..without_options("taskset")
    },
    WrapperOptions {
        flags: &["-p"],
        ..without_options("command")
    },
    without_options("builtin"),
    WrapperOptions {
        flags: &["-c", "-l"],
        ..without_options("exec")
    },
    WrapperOptions {
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
        ..without_options("xargs")
    },
    WrapperOptions {
        flags: &["-u", "-E", "--unbuffered"],
        ..without_options("unbuffer")
    },
    without_options("catchsegv"),
    WrapperOptions {
        transparent: false,
        flags: &[
            "-n",
            "-H",
            "-k",
            "-b",
            "-E",
            "-S",
            "-i",
            "--non-interactive",
            "--set-home",
            "--preserve-env",
            "--login",
        ],
        valued: &[
            "-u", "--user", "-g", "--group", "-p", "--prompt", "-D", "--chdir",
        ],
        assignments: true,
        ..without_options("sudo")
    },
    WrapperOptions {
        transparent: false,
        flags: &["-n", "-L"],
        valued: &["-u", "-C"],
        ..without_options("doas")
    },
    WrapperOptions {
        transparent: false,
        flags: &["--skip-chdir"],
        valued: &["--userspec", "--groups"],
        positional: 1,
        ..without_options("chroot")
    },
    WrapperOptions {
        transparent: false,
        ..without_options("busybox")
    },
    WrapperOptions {
        transparent: false,
        ..without_options("toybox")
    },
    WrapperOptions {
        transparent: false,
        flags: &[
            "-f", "-ff", "-q", "-c", "-C", "-y", "-t", "-r", "-T", "-v", "-x",
        ],
        valued: &["-e", "-o", "-s", "-p", "-u", "-E", "-P"],
        ..without_options("strace")
    },
    WrapperOptions {
        transparent: false,
        flags: &["-f", "-c", "-C", "-S"],
        valued: &["-e", "-o", "-s", "-p", "-u", "-l"],
        ..without_options("ltrace")
    },
    WrapperOptions {
        transparent: false,
        flags: &[
            "-U",
            "-m",
            "-p",
            "-i",
            "-n",
            "-u",
            "-C",
            "-f",
            "-r",
            "--user",
            "--mount",
            "--pid",
            "--ipc",
            "--net",
            "--uts",
            "--cgroup",
            "--fork",
            "--map-root-user",
            "--mount-proc",
            "-Ur",
            "-rm",
            "-Urm",
        ],
        ..without_options("unshare")
    },
    WrapperOptions {
        transparent: false,
        flags: &[
            "-m", "-u", "-i", "-n", "-p", "-U", "-C", "-a", "--all", "-F",
        ],
        valued: &["-t", "--target"],
        ..without_options("nsenter")
    },
    WrapperOptions {
        transparent: false,
        flags: &[
            "--user",
            "--scope",
            "--pty",
            "--wait",
            "-P",
            "-t",
            "-q",
            "--quiet",
            "--collect",
        ],
        valued: &[
            "-p",
            "--property",
            "--unit",
            "-u",
            "-E",
            "--setenv",
            "--uid",
            "--gid",
        ],
        ..without_options("systemd-run")
    },
    WrapperOptions {
        transparent: false,
        flags: &["-f", "-o", "-b", "-r", "-i"],
        positional: 1,
        ..without_options("chrt")
    },
    WrapperOptions {
        transparent: false,
        flags: &["-p", "-v"],
        valued: &["-o"],
        ..without_options("prlimit")
    },
    WrapperOptions {
        transparent: false,
        flags: &["--no-new-privs", "--clear-groups"],
        valued: &["--reuid", "--regid", "--bounding-set", "--inh-caps"],
        ..without_options("setpriv")
    },
    WrapperOptions {
        transparent: false,
        flags: &["-l", "-m", "-p", "-"],
        valued: &["-u", "-g", "-G", "-s"],
        ..without_options("runuser")
    },
    WrapperOptions {
        transparent: false,
        flags: &["-v", "-q", "--leak-check=full"],
        ..without_options("valgrind")
    },
];

/// Shells whose `-c` scripts are parsed by this crate.
pub(super) const POSIX_SHELLS: [&str; 5] = ["sh", "bash", "dash", "ash", "rbash"];
/// Shells with another language.
pub(super) const OTHER_SHELLS: [&str; 15] = [
    "mksh", "zsh", "ksh", "ksh93", "fish", "csh", "tcsh", "pwsh", "nu", "elvish", "xonsh", "yash",
    "rc", "oksh", "osh",
];
/// Builtins that evaluate their words as code, or change the meaning of later words.
pub(super) const CODE_BUILTINS: [&str; 18] = [
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "unalias",
    "enable",
    "hash",
    "bind",
    "complete",
    "coproc",
    "shopt",
    "fc",
    "mapfile",
    "readarray",
    "let",
    "function",
    "compgen",
];
/// Programs that run others in ways that are not analysed here.
pub(super) const OPAQUE: [&str; 44] = [
    "parallel",
    "entr",
    "firejail",
    "bwrap",
    "capsh",
    "setarch",
    "linux32",
    "linux64",
    "gdb",
    "lldb",
    "start-stop-daemon",
    "ld.so",
    "ld-linux.so.2",
    "ld-linux-x86-64.so.2",
    "at",
    "batch",
    "crontab",
    "expect",
    "screen",
    "tmux",
    "dbus-launch",
    "dbus-run-session",
    "xvfb-run",
    "daemonize",
    "fakeroot",
    "faketime",
    "proot",
    "socat",
    "ncat",
    "pkexec",
    "sg",
    "newgrp",
    "mosh",
    "rsh",
    "rlogin",
    "ssh-agent",
    "gpg-agent",
    "rlwrap",
    "chpst",
    "softlimit",
    "s6-setuidgid",
    "tini",
    "dumb-init",
    "gosu",
];
