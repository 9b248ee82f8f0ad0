//! Warnings for programs that run other programs named in their arguments: an allow list that
//! contains one of them allows more than it names.
//!
//! The table is closed, by the classes public catalogues of such programs use. It is no promise
//! that other programs run nothing.

/// Why a program of a class can run others.
struct EscapeClass {
    reason: &'static str,
    programs: &'static [&'static str],
}

const CLASSES: [EscapeClass; 5] = [
    EscapeClass {
        reason: "what it is given is a program in its language",
        programs: &[
            "awk",
            "bun",
            "cpan",
            "dc",
            "deno",
            "dotnet",
            "elixir",
            "emacs",
            "erl",
            "expect",
            "gawk",
            "gdb",
            "ghc",
            "ghci",
            "gnuplot",
            "go",
            "groovy",
            "guile",
            "iex",
            "ipython",
            "irb",
            "java",
            "jjs",
            "jrunscript",
            "jshell",
            "julia",
            "lldb",
            "lua",
            "luajit",
            "m4",
            "mariadb",
            "mawk",
            "mongosh",
            "mysql",
            "nawk",
            "node",
            "nodejs",
            "ocaml",
            "octave",
            "perl",
            "php",
            "psql",
            "pypy",
            "python",
            "R",
            "Rscript",
            "ruby",
            "scala",
            "sed",
            "sqlite",
            "tclsh",
            "wish",
        ],
    },
    EscapeClass {
        reason: "it offers a shell to whoever uses it",
        programs: &[
            "ed", "elinks", "ex", "ftp", "info", "joe", "less", "lftp", "lynx", "man", "more",
            "most", "mutt", "nano", "nvim", "pg", "pico", "rview", "rvim", "sftp", "telnet", "vi",
            "view", "vim", "vimdiff", "w3m",
        ],
    },
    EscapeClass {
        reason: "it runs what files of the workspace or of a package say",
        programs: &[
            "ansible",
            "ansible-playbook",
            "bazel",
            "bundle",
            "bundler",
            "cargo",
            "cmake",
            "composer",
            "ctest",
            "easy_install",
            "gem",
            "gmake",
            "gradle",
            "hatch",
            "jest",
            "just",
            "make",
            "meson",
            "mocha",
            "mvn",
            "ninja",
            "nox",
            "npm",
            "npx",
            "pip",
            "pipx",
            "pnpm",
            "pnpx",
            "poetry",
            "puppet",
            "pytest",
            "rake",
            "rpm",
            "run-parts",
            "rustc",
            "scons",
            "task",
            "terraform",
            "tox",
            "uv",
            "uvx",
            "vagrant",
            "vitest",
            "yarn",
        ],
    },
    EscapeClass {
        reason: "its options, settings or variables name programs it runs",
        programs: &[
            "ack",
            "ag",
            "apt",
            "apt-get",
            "aria",
            "cpio",
            "crontab",
            "dnf",
            "dpkg",
            "fd",
            "fdfind",
            "find",
            "git",
            "hg",
            "journalctl",
            "logrotate",
            "lualatex",
            "latex",
            "nmap",
            "openssl",
            "pdflatex",
            "pdftex",
            "pkg",
            "rg",
            "rsync",
            "scp",
            "service",
            "snap",
            "socat",
            "sort",
            "split",
            "ssh",
            "svn",
            "systemctl",
            "tar",
            "tcpdump",
            "tex",
            "wget",
            "xelatex",
            "yum",
            "zip",
            "zypper",
        ],
    },
    EscapeClass {
        reason: "it runs the commands it is given",
        programs: &[
            "at", "batch", "bwrap", "docker", "env", "kubectl", "nerdctl", "nice", "nohup",
            "podman", "rlwrap", "screen", "setsid", "stdbuf", "sudo", "timeout", "tmux", "xargs",
        ],
    },
];

/// A warning for each program of an allow list that can run programs that are not on it.
#[must_use]
pub fn warnings(list: &[String]) -> Vec<String> {
    let warning = |program: &String| {
        let why = escape_reason(program)?;
        Some(format!("'{program}' can run any program: {why}"))
    };
    list.iter().filter_map(warning).collect()
}

/// Why a program, given by name or path, can run others.
fn escape_reason(program: &str) -> Option<&'static str> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let class = CLASSES
        .iter()
        .find(|class| class.programs.contains(&name) || class.programs.contains(&family))?;
    Some(class.reason)
}

#[cfg(test)]
mod tests {
    use super::warnings;

    #[test]
    fn programs_that_run_others_are_reported_by_name() {
        let list =
            |words: &[&str]| warnings(&words.iter().map(|it| (*it).into()).collect::<Vec<_>>());
        assert!(list(&["ls", "cat", "grep", "/usr/bin/ls", "echo"]).is_empty());
        for program in [
            "awk",
            "vim",
            "python3.11",
            "/usr/bin/git",
            "find",
            "xargs",
            "env",
            "tar",
            "sqlite3",
            "less",
            "make",
            "ssh",
            "sed",
        ] {
            let actual = list(&["ls", program]);
            assert_eq!(actual.len(), 1, "{program}");
            assert!(
                actual[0].contains(&format!("'{program}' can run any program: ")),
                "{actual:?}"
            );
        }
    }
}
