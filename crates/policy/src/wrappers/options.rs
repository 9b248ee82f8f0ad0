//! Programs that run the rest of their words, or code (data).

use super::wrapper::{Wrapper, WrapperClass};

const fn transparent(words: &'static [&'static str]) -> Wrapper<'static> {
    Wrapper::new(words, WrapperClass::Transparent)
}

const fn timing(words: &'static [&'static str]) -> Wrapper<'static> {
    Wrapper::new(words, WrapperClass::Timing)
}

const fn privileged(words: &'static [&'static str]) -> Wrapper<'static> {
    Wrapper::new(words, WrapperClass::Privileged)
}

const fn opaque(words: &'static [&'static str]) -> Wrapper<'static> {
    Wrapper::new(words, WrapperClass::Opaque)
}

/// Programs of the shell and the system that run the rest of their words.
pub(super) const WRAPPERS: [Wrapper<'static>; 44] = [
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
        directories: &["-C", "--chdir"],
        assigns: true,
        ..transparent(&["env"])
    },
    Wrapper {
        valued: &["-n", "--adjustment"],
        ..transparent(&["nice"])
    },
    transparent(&["nohup"]),
    Wrapper {
        flags: &["-v", "--verbose", "--foreground", "--preserve-status"],
        valued: &["-k", "--kill-after", "-s", "--signal"],
        operands: 1,
        ..transparent(&["timeout"])
    },
    Wrapper {
        flags: &["-p", "--portability"],
        other_valued: &["-f", "-o", "--format", "--output"],
        ..timing(&["time"])
    },
    Wrapper {
        flags: &["-c", "-f", "-w", "--ctty", "--fork", "--wait"],
        ..transparent(&["setsid"])
    },
    Wrapper {
        valued: &["-i", "--input", "-o", "--output", "-e", "--error"],
        ..transparent(&["stdbuf"])
    },
    Wrapper {
        flags: &["-t", "--ignore"],
        valued: &["-c", "--class", "-n", "--classdata"],
        ..timing(&["ionice"])
    },
    Wrapper {
        flags: &["-c", "--cpu-list"],
        operands: 1,
        ..timing(&["taskset"])
    },
    Wrapper {
        flags: &["-p"],
        ..transparent(&["command"])
    },
    transparent(&["builtin"]),
    Wrapper {
        flags: &["-c", "-l"],
        other_valued: &["-a"],
        ..transparent(&["exec"])
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
        ..transparent(&["xargs"])
    },
    Wrapper {
        flags: &["-u", "-E", "--unbuffered"],
        ..transparent(&["unbuffer"])
    },
    transparent(&["catchsegv"]),
    Wrapper {
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
        other_valued: &["-C", "-T", "-r", "-t"],
        directories: &["-D", "--chdir"],
        assigns: true,
        ..Wrapper::new(
            &["sudo"],
            WrapperClass::Substitute {
                refused: &[
                    "-E",
                    "-S",
                    "-i",
                    "-p",
                    "-D",
                    "--preserve-env",
                    "--login",
                    "--prompt",
                    "--chdir",
                ],
            },
        )
    },
    Wrapper {
        flags: &["-n", "-L"],
        valued: &["-u", "-C"],
        ..privileged(&["doas"])
    },
    Wrapper {
        flags: &["--skip-chdir"],
        valued: &["--userspec", "--groups"],
        operands: 1,
        ..privileged(&["chroot"])
    },
    privileged(&["busybox"]),
    privileged(&["toybox"]),
    Wrapper {
        flags: &[
            "-f", "-ff", "-q", "-c", "-C", "-y", "-t", "-r", "-T", "-v", "-x",
        ],
        valued: &["-e", "-o", "-s", "-p", "-u", "-E", "-P"],
        ..privileged(&["strace"])
    },
    Wrapper {
        flags: &["-f", "-c", "-C", "-S"],
        valued: &["-e", "-o", "-s", "-p", "-u", "-l"],
        ..privileged(&["ltrace"])
    },
    Wrapper {
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
        other_valued: &["-S", "-G", "--setuid", "--setgid", "-R", "--root"],
        directories: &["-w", "--wd"],
        ..privileged(&["unshare"])
    },
    Wrapper {
        flags: &[
            "-m", "-u", "-i", "-n", "-p", "-U", "-C", "-a", "--all", "-F",
        ],
        valued: &["-t", "--target"],
        ..privileged(&["nsenter"])
    },
    Wrapper {
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
        ..privileged(&["systemd-run"])
    },
    Wrapper {
        flags: &["-f", "-o", "-b", "-r", "-i"],
        operands: 1,
        ..privileged(&["chrt"])
    },
    Wrapper {
        flags: &["-p", "-v"],
        valued: &["-o"],
        ..privileged(&["prlimit"])
    },
    Wrapper {
        flags: &["--no-new-privs", "--clear-groups"],
        valued: &["--reuid", "--regid", "--bounding-set", "--inh-caps"],
        other_valued: &[
            "--groups",
            "--ambient-caps",
            "--securebits",
            "--pdeathsig",
            "--selinux-label",
            "--apparmor-profile",
        ],
        ..privileged(&["setpriv"])
    },
    Wrapper {
        flags: &["-l", "-m", "-p", "-"],
        valued: &["-u", "-g", "-G", "-s"],
        other_valued: &["--user", "--group", "--supp-group", "-w"],
        ..privileged(&["runuser"])
    },
    Wrapper {
        flags: &["-v", "-q", "--leak-check=full"],
        ..privileged(&["valgrind"])
    },
    Wrapper {
        operands: 1,
        ..opaque(&["gosu"])
    },
    Wrapper {
        operands: 1,
        ..opaque(&["su-exec"])
    },
    Wrapper {
        operands: 1,
        ..opaque(&["setuidgid"])
    },
    Wrapper {
        operands: 1,
        ..opaque(&["s6-setuidgid"])
    },
    Wrapper {
        valued: &[
            "-u", "-U", "-b", "-e", "-/", "-n", "-l", "-L", "-m", "-d", "-o", "-p", "-f", "-c",
        ],
        ..opaque(&["chpst"])
    },
    Wrapper {
        operands: 1,
        ..opaque(&["setarch"])
    },
    Wrapper {
        valued: &["-N", "-m", "-C", "-i", "-p"],
        ..opaque(&["numactl"])
    },
    opaque(&["catatonit"]),
    Wrapper {
        valued: &["-p", "-e"],
        ..opaque(&["tini"])
    },
    opaque(&["dumb-init"]),
    Wrapper {
        valued: &[
            "-e",
            "-f",
            "-n",
            "-p",
            "-s",
            "--server-args",
            "--server-num",
            "--error-file",
            "--auth-file",
        ],
        ..opaque(&["xvfb-run"])
    },
    Wrapper {
        valued: &["-t", "-w"],
        ..opaque(&["caffeinate"])
    },
    opaque(&["systemd-inhibit"]),
    opaque(&["winpty"]),
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
pub(super) const OPAQUE: [&str; 60] = [
    "parallel",
    "entr",
    "firejail",
    "bwrap",
    "capsh",
    // The names of setarch(8).
    "linux32",
    "linux64",
    "x86_64",
    "i386",
    "i486",
    "i586",
    "i686",
    "athlon",
    "uname26",
    "choom",
    "coresched",
    "ostler",
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
    "softlimit",
    "chronic",
    "perf",
    "hyperfine",
    "watchexec",
    "systemd-cat",
    "eatmydata",
    "cpulimit",
    "proxychains",
    "proxychains4",
    "torsocks",
    "torify",
    "ifne",
    "cgexec",
];
