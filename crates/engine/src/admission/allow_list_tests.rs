//! The allow list, and the ways around it.

use std::os::unix::fs::symlink;

use ostler_model::{ByteString, Command, ErrorCode};
use tempfile::TempDir;

use super::tests::{allowing, refused, try_admit, words};
use crate::request::StartRequest;

fn passes(list: &[&str], command: &[&str]) -> bool {
    match try_admit(&allowing(list), words(command)) {
        Ok(_) => true,
        Err(error) => {
            let code = error.code();
            assert_eq!(code, ErrorCode::Security, "{command:?}: {error}");
            false
        }
    }
}

#[test]
fn the_allow_list_lets_its_names_run_from_the_trusted_path() {
    let mut request = words(&["ls", "-l"]);
    request.base_env = vec![("PATH".into(), "/tmp/evil".into())];
    let admitted = try_admit(&allowing(&["ls", "git"]), request).expect("listed");
    let plan = admitted.template.plan(ostler_model::ExecutionId::mint(), 1);
    assert_eq!(plan.program, ByteString::from("/usr/bin/ls"));
    let path = super::environment::value(&plan.env, b"PATH");
    assert_eq!(path, Some(&ByteString::from(crate::settings::TRUSTED_PATH)));
}

#[test]
fn the_allow_list_cannot_be_passed_by_paths() {
    let dir = TempDir::new().expect("a directory");
    let evil = dir.path().join("ls");
    symlink("/bin/sh", &evil).expect("a link");
    let evil = evil.to_string_lossy().into_owned();
    for program in [
        evil.as_str(),
        "./ls",
        "/usr/bin/../bin/ls",
        "/bin/ls",
        "../ls",
        "ls/",
    ] {
        assert!(!passes(&["ls", "git"], &[program]), "{program}");
    }
    assert!(passes(&["/usr/bin/ls"], &["/usr/bin/ls"]));
    assert!(!passes(&["/usr/bin/ls"], &["/usr//bin/ls"]));
    assert!(!passes(&["/usr/bin/ls"], &["ls"]));
}

#[test]
fn the_allow_list_cannot_be_passed_by_quoting_or_control_characters() {
    for program in [
        "ls ", " ls", "ls;id", "ls\nid", "'ls'", "l\\s", "LS", "ls\t", "$(ls)",
    ] {
        assert!(!passes(&["ls"], &[program]), "{program:?}");
    }
    let (code, _) = refused(&allowing(&["ls"]), words(&["ls\0id"]));
    assert_eq!(code, ErrorCode::Value);
}

/// An allow list of programs that run other programs, and of `ls`.
const WRAPPERS: &[&str] = &[
    "ls",
    "git",
    "env",
    "nice",
    "nohup",
    "timeout",
    "setsid",
    "stdbuf",
    "sudo",
    "xargs",
    "sh",
    "bash",
    "find",
    "tar",
    "chroot",
    "unshare",
    "command",
    "unbuffer",
    "exec",
    "rsync",
    "fd",
    "split",
    "rg",
    "ssh",
    "nu",
    "osh",
    "tmux",
    "gosu",
    "tini",
    "ld-linux-x86-64.so.2",
];

#[test]
fn the_allow_list_cannot_be_passed_by_wrappers() {
    let all: &[&[&str]] = &[
        &["env", "id"],
        &["env", "-i", "A=1", "id"],
        &["env", "-S", "id -u"],
        &["env", "-Sid"],
        &["env", "--split-string=id"],
        &["env", "-u", "A", "id"],
        &["env", "--", "id"],
        &["env", "env", "nice", "id"],
        &["env", "/tmp/evil/ls"],
        &["env", "./ls"],
        &["env", "PATH=/tmp/evil", "ls"],
        &["env", "LD_PRELOAD=/x.so", "ls"],
        &["nice", "-n", "5", "id"],
        &["nice", "-5", "id"],
        &["nohup", "id"],
        &["timeout", "5", "id"],
        &["timeout", "-k", "1", "5", "id"],
        &["setsid", "-f", "id"],
        &["stdbuf", "-oL", "id"],
        &["sudo", "id"],
        &["sudo", "-u", "x", "id"],
        &["sudo", "-s"],
        &["sudo", "-i"],
        &["xargs", "id"],
        &["xargs", "-I", "{}", "id", "{}"],
        &["xargs", "-I", "ls", "ls", "x"],
        &["xargs", "-Is", "ls"],
        &["xargs", "-I", "ls", "env", "ls"],
        &["xargs", "env"],
        &["xargs", "sh", "-c"],
        &["xargs"],
        &["sh", "-c", "id"],
        &["bash", "script.sh"],
        &["bash"],
        &["find", "/", "-exec", "id", ";"],
        &["find", "/", "-execdir", "id", ";"],
        &["git", "-c", "alias.x=!id", "x"],
        &["git", "--exec-path=/tmp/evil", "x"],
        &["tar", "--to-command=id", "-xf", "x"],
        &["tar", "--to-com=id", "-xf", "x"],
        &["tar", "-I", "id", "-xf", "x"],
        &["chroot", "/", "id"],
        &["unshare", "id"],
        &["command", "id"],
        &["unbuffer", "id"],
        &["exec", "id"],
        &["command", "sudo", "-E", "ls"],
        &["rsync", "-ave", "id", "a", "b"],
        &["tar", "-xIf", "id", "x"],
        &["tar", "xIf", "id", "x"],
        &["fd", "-x", "id"],
        &["split", "--filter=id", "x"],
        &["rg", "--pre", "id", "x"],
        &["git", "bisect", "run", "id"],
        &["git", "rebase", "-x", "id", "x"],
        &["git", "submodule", "foreach", "id"],
        &["git", "grep", "--open-files-in-pager=id", "x"],
        &["ssh", "-oProxyCommand=id", "x"],
        &["nu", "-c", "id"],
        &["osh", "x"],
        &["tmux", "new", "id"],
        &["gosu", "x", "id"],
        &["tini", "--", "id"],
        &["ld-linux-x86-64.so.2", "/bin/id"],
        &["xargs", "fd"],
        &["xargs", "tmux"],
    ];
    for command in all {
        assert!(!passes(WRAPPERS, command), "{command:?}");
    }
}

#[test]
fn wrappers_with_options_that_change_more_than_the_command_are_refused() {
    let list = ["ls", "sudo", "timeout", "time", "ionice", "env"];
    for command in [
        &["sudo", "-E", "ls"][..],
        &["sudo", "--preserve-env=A", "ls"],
        &["sudo", "-D", "/tmp", "ls"],
        &["sudo", "-i", "ls"],
        &["timeout", "--sig=KILL", "5", "ls"],
        &["time", "ls"],
        &["ionice", "-c", "3", "ls"],
        &["env", "-S", "ls"],
    ] {
        assert!(!passes(&list, command), "{command:?}");
    }
    assert!(is_listed(&list, &["sudo", "-n", "-u", "x", "ls"]));
}

/// Whether the list alone permits the command; its programs need not be installed.
fn is_listed(list: &[&str], command: &[&str]) -> bool {
    let settings = allowing(list);
    let list = settings.allowed_commands.expect("a list");
    super::allow_list::check(&list, &words(command).command, &[]).is_ok()
}

#[test]
fn options_that_name_no_program_are_permitted() {
    let list = ["ls", "command", "rsync", "git", "npx", "vite", "python3"];
    for command in [
        &["command", "-v", "id"][..],
        &["command", "ls"],
        &["rsync", "-a", "--delete", "a", "b"],
        &["git", "commit", "-mfix"],
        &["npx", "vite"],
        &["python3", "-c", "pass"],
    ] {
        assert!(is_listed(&list, command), "{command:?}");
    }
}

#[test]
fn what_a_launcher_starts_has_to_be_listed() {
    let list = [
        "npx",
        "npm",
        "uv",
        "poetry",
        "vite",
        "create-vite",
        "pytest",
    ];
    for command in [
        &["npx", "--yes", "vite@5"][..],
        &["uv", "run", "pytest", "-x"],
        &["uv", "sync"],
        &["poetry", "run", "pytest"],
        &["npm", "init", "-y"],
        &["npm", "create", "vite@latest", "app"],
    ] {
        assert!(is_listed(&list, command), "{command:?}");
    }
    for command in [
        &["npx", "other"][..],
        &["npx", "-p", "other", "vite"],
        &["npx", "vite@npm:other"],
        &["npx", "-c", "vite"],
        &["uv", "run", "other.py"],
        &["uv", "run", "--with", "other", "pytest"],
        &["poetry", "run", "sh", "-c", "pytest"],
        &["bunx", "vite"],
        &["npm", "init", "other"],
        &["npm", "create", "user/create-vite"],
    ] {
        assert!(!is_listed(&list, command), "{command:?}");
    }
}

#[test]
fn listed_programs_behind_listed_wrappers_run() {
    let list = ["ls", "env", "nice", "timeout", "xargs", "find", "git"];
    for command in [
        &["env", "A=1", "ls", "-l"][..],
        &["nice", "-n", "5", "ls"],
        &["timeout", "--signal=KILL", "5", "nice", "ls"],
        &["find", "/", "-maxdepth", "0"],
        &["env", "-C", "/tmp", "ls"],
        &["xargs", "-I", "{}", "ls", "{}"],
    ] {
        assert!(passes(&list, command), "{command:?}");
    }
}

#[test]
fn the_allow_list_cannot_be_passed_by_variables() {
    for name in [
        "PATH",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "BASH_ENV",
        "ENV",
        "IFS",
        "GIT_SSH_COMMAND",
        "PAGER",
        "PYTHONPATH",
        "BASH_FUNC_ls%%",
    ] {
        let mut request = words(&["ls"]);
        request.options.set_env = vec![(name.into(), "x".into())];
        let (code, _) = refused(&allowing(&["ls"]), request);
        assert_eq!(code, ErrorCode::Security, "{name}");
    }
    let mut request = words(&["ls"]);
    request.options.inherit_env = Some(true);
    let admitted = try_admit(&allowing(&["ls"]), request).expect("admitted");
    let env = admitted
        .template
        .plan(ostler_model::ExecutionId::mint(), 1)
        .env;
    assert_eq!(super::environment::value(&env, b"LD_PRELOAD"), None);
}

#[test]
fn scripts_are_refused_while_a_list_is_set() {
    let command = Command::Shell {
        shell: "/bin/sh".into(),
        script: "ls".into(),
    };
    let request = StartRequest::new(command, "/");
    let error = try_admit(&allowing(&["ls", "sh", "/bin/sh"]), request).expect_err("a script");
    assert_eq!(error.code(), ErrorCode::Security);
    assert!(error.hint().is_some_and(|it| it.contains("ls")));
}
