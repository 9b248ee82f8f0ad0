//! The options of programs that run the rest of their words (data).

/// How a wrapper's own words are told from the command it runs.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Options without a value.
    pub(super) flags: &'static [&'static str],
    /// Options whose value is the next word, or joined.
    pub(super) valued: &'static [&'static str],
    /// Words of its own before the command.
    pub(super) positional: usize,
    /// Whether `NAME=value` words may stand before the command.
    pub(super) assignments: bool,
    /// Whether it leaves who runs it, and where, as it is.
    pub(super) transparent: bool,
}

const fn plain(name: &'static str) -> Wrapper {
    Wrapper {
        name,
        flags: &[],
        valued: &[],
        positional: 0,
        assignments: false,
        transparent: true,
    }
}

pub(super) const WRAPPERS: [Wrapper; 30] = [
    Wrapper {
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
        ..plain("env")
    },
    Wrapper {
        valued: &["-n", "--adjustment"],
        ..plain("nice")
    },
    plain("nohup"),
    Wrapper {
        flags: &["-v", "--verbose", "--foreground", "--preserve-status"],
        valued: &["-k", "--kill-after", "-s", "--signal"],
        positional: 1,
        ..plain("timeout")
    },
    Wrapper {
        flags: &["-p", "--portability"],
        ..plain("time")
    },
    Wrapper {
        flags: &["-c", "-f", "-w", "--ctty", "--fork", "--wait"],
        ..plain("setsid")
    },
    Wrapper {
        valued: &["-i", "--input", "-o", "--output", "-e", "--error"],
        ..plain("stdbuf")
    },
    Wrapper {
        flags: &["-t", "--ignore"],
        valued: &["-c", "--class", "-n", "--classdata"],
        ..plain("ionice")
    },
    Wrapper {
        flags: &["-c", "--cpu-list"],
        positional: 1,
        ..plain("taskset")
    },
    Wrapper {
        flags: &["-p"],
        ..plain("command")
    },
    plain("builtin"),
    Wrapper {
        flags: &["-c", "-l"],
        ..plain("exec")
    },
    Wrapper {
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
        ..plain("xargs")
    },
    Wrapper {
        flags: &["-u", "-E", "--unbuffered"],
        ..plain("unbuffer")
    },
    plain("catchsegv"),
    Wrapper {
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
        ..plain("sudo")
    },
    Wrapper {
        transparent: false,
        flags: &["-n", "-L"],
        valued: &["-u", "-C"],
        ..plain("doas")
    },
    Wrapper {
        transparent: false,
        flags: &["--skip-chdir"],
        valued: &["--userspec", "--groups"],
        positional: 1,
        ..plain("chroot")
    },
    Wrapper {
        transparent: false,
        ..plain("busybox")
    },
    Wrapper {
        transparent: false,
        ..plain("toybox")
    },
    Wrapper {
        transparent: false,
        flags: &[
            "-f", "-ff", "-q", "-c", "-C", "-y", "-t", "-r", "-T", "-v", "-x",
        ],
        valued: &["-e", "-o", "-s", "-p", "-u", "-E", "-P"],
        ..plain("strace")
    },
    Wrapper {
        transparent: false,
        flags: &["-f", "-c", "-C", "-S"],
        valued: &["-e", "-o", "-s", "-p", "-u", "-l"],
        ..plain("ltrace")
    },
    Wrapper {
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
        ..plain("unshare")
    },
    Wrapper {
        transparent: false,
        flags: &[
            "-m", "-u", "-i", "-n", "-p", "-U", "-C", "-a", "--all", "-F",
        ],
        valued: &["-t", "--target"],
        ..plain("nsenter")
    },
    Wrapper {
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
        ..plain("systemd-run")
    },
    Wrapper {
        transparent: false,
        flags: &["-f", "-o", "-b", "-r", "-i"],
        positional: 1,
        ..plain("chrt")
    },
    Wrapper {
        transparent: false,
        flags: &["-p", "-v"],
        valued: &["-o"],
        ..plain("prlimit")
    },
    Wrapper {
        transparent: false,
        flags: &["--no-new-privs", "--clear-groups"],
        valued: &["--reuid", "--regid", "--bounding-set", "--inh-caps"],
        ..plain("setpriv")
    },
    Wrapper {
        transparent: false,
        flags: &["-l", "-m", "-p", "-"],
        valued: &["-u", "-g", "-G", "-s"],
        ..plain("runuser")
    },
    Wrapper {
        transparent: false,
        flags: &["-v", "-q", "--leak-check=full"],
        ..plain("valgrind")
    },
];

/// Shells whose `-c` takes a script this crate reads.
pub(super) const POSIX_SHELLS: [&str; 5] = ["sh", "bash", "dash", "ash", "rbash"];
/// Shells whose language is another.
pub(super) const OTHER_SHELLS: [&str; 15] = [
    "mksh", "zsh", "ksh", "ksh93", "fish", "csh", "tcsh", "pwsh", "nu", "elvish", "xonsh", "yash",
    "rc", "oksh", "osh",
];
/// Words a shell takes for code, or that change what later words mean.
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
/// Programs that run what they are given in ways not seen through here.
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
