//! Terminals: the command's own, and those it opens.

use std::ffi::CString;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

use ostler_model::Limits;
use ostler_sandbox::{Sandbox, SandboxCommand, SandboxStdio};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

use super::support::{JailFixture, environment, has};

fn on_a_terminal(fixture: &JailFixture, script: &str) -> String {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("done");
    unlockpt(&master).expect("done");
    let slave = ioctl_tiocgptpeer(&master, flags).expect("done");
    let argv = ["sh", "-c", script].map(|it| CString::new(it).expect("done"));
    let env = environment(&fixture.home);
    let command = SandboxCommand {
        program: Path::new("/bin/sh"),
        argv: &argv,
        env: &env,
        cwd: &fixture.workspace,
        stdio: SandboxStdio::Terminal(slave.as_fd()),
        overlay: None,
    };
    let sandbox = Sandbox::new(fixture.confinement(), Limits::default());
    let mut child = sandbox.spawn(&command).expect("done");
    drop(slave);
    let mut output = Vec::new();
    // Reading ends with an error when no process has the other side open.
    let _hung_up = std::fs::File::from(master).read_to_end(&mut output);
    child.wait().expect("done");
    String::from_utf8_lossy(&output).replace('\r', "")
}

#[test]
fn the_terminal_has_a_name_and_can_be_opened_by_it() {
    let fixture = JailFixture::new();
    let actual = on_a_terminal(
        &fixture,
        "tty; echo by-name > $(tty); echo tty > /dev/tty; test -t 0 && echo is",
    );
    assert_eq!(actual, "/dev/console\nby-name\ntty\nis\n");
}

#[test]
fn terminals_can_be_made_inside() {
    if !has("python3") {
        return;
    }
    let fixture = JailFixture::new();
    let script = "python3 -c 'import pty, os
m, s = pty.openpty(); print(os.ttyname(s))'";
    assert_eq!(fixture.sh(script).ok(), "/dev/pts/0\n");
}

#[test]
fn nothing_can_be_typed_into_the_callers_terminal() {
    if !has("python3") {
        return;
    }
    let fixture = JailFixture::new();
    let script = "python3 -c 'import fcntl, termios
fcntl.ioctl(0, termios.TIOCSTI, b\"x\")' 2>&1 | tail -1";
    let actual = on_a_terminal(&fixture, script);
    assert!(actual.contains("PermissionError"), "{actual}");
}
