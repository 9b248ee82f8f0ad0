//! What must work inside: the counterpart of each denial.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ostler_model::{ByteString, NetworkAccess};

use super::support::{JailFixture, has, run};

#[test]
fn a_shell_writes_to_its_workspace_and_the_host_sees_it_as_the_callers() {
    let fixture = JailFixture::new();
    let out = fixture
        .sh("echo hello > file && cat file && pwd && rm -rf d && mkdir d")
        .ok();
    assert!(out.starts_with("hello\n"), "{out}");
    let file = fixture.workspace.join("file");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello\n");
    let own = std::fs::metadata(&fixture.workspace).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().uid(), own.uid());
}

#[test]
fn private_directories_are_writable_and_empty() {
    let fixture = JailFixture::new();
    let script = "for d in /tmp /var/tmp /dev/shm /run \"$HOME\"; do \
        echo x > \"$d/x\" && cat \"$d/x\" >/dev/null || exit 1; done; \
        mkdir -p \"$HOME/.cache/a/b\" && ls -A \"$HOME\"";
    assert_eq!(fixture.sh(script).ok(), ".cache\nx\n");
    assert!(!fixture.home.join("x").exists());
}

#[test]
fn devices_work() {
    let fixture = JailFixture::new();
    fixture.sh(
        "echo x > /dev/null && head -c 8 /dev/urandom | wc -c && head -c 1 /dev/zero >/dev/null \
             && ! echo x > /dev/full && test -c /dev/tty && test -e /dev/ptmx",
    )
    .ok();
    assert_eq!(
        fixture
            .sh("echo out > /dev/stdout; echo err > /dev/stderr")
            .ok(),
        "out\nerr\n"
    );
}

#[test]
fn processes_see_themselves_in_proc() {
    let fixture = JailFixture::new();
    let out = fixture.sh("cat /proc/self/comm && ls /proc/self/fd >/dev/null && (sleep 0 & wait) && \
                       grep -c processor /proc/cpuinfo > /dev/null && nproc > /dev/null && echo done");
    assert!(out.ok().ends_with("done\n"));
}

#[test]
fn names_of_people_and_packages_are_known() {
    let fixture = JailFixture::new();
    fixture.sh(
        "id > /dev/null && getent passwd root > /dev/null && ls /usr/bin > /dev/null && uname -a",
    )
    .ok();
    if has("dpkg") {
        fixture
            .sh("dpkg -l coreutils | tail -1 | grep -q coreutils")
            .ok();
    }
}

#[test]
fn compilers_work() {
    if !has("cc") {
        return;
    }
    let fixture = JailFixture::new();
    let script =
        "printf '#include <stdio.h>\\nint main(){puts(\"built\");}' > a.c && cc -o a a.c && ./a";
    assert_eq!(fixture.sh(script).ok(), "built\n");
}

#[test]
fn git_works() {
    if !has("git") {
        return;
    }
    let fixture = JailFixture::new();
    let script = "git init -q . && echo a > a && git add a && \
        git -c user.name=a -c user.email=a@b commit -qm first && git log --oneline | wc -l && git status --short";
    assert_eq!(fixture.sh(script).ok().trim(), "1");
}

#[test]
fn python_and_its_pool_of_processes_work() {
    if !has("python3") {
        return;
    }
    let fixture = JailFixture::new();
    let script = "python3 -c 'import multiprocessing as m, tempfile, os
with m.Pool(2) as p: print(sum(p.map(abs, [-1, 2])))
with tempfile.NamedTemporaryFile() as f: f.write(b\"x\")
'";
    assert_eq!(fixture.sh(script).ok(), "3\n");
}

#[test]
fn node_works() {
    if has("node") {
        assert_eq!(
            JailFixture::new().sh("node -e 'console.log(1+1)'").ok(),
            "2\n"
        );
    }
}

#[test]
fn a_virtual_environment_can_be_made() {
    if has("python3") {
        let fixture = JailFixture::new();
        fixture
            .sh("python3 -m venv --without-pip v && v/bin/python -c 'import json'")
            .ok();
    }
}

#[test]
fn servers_on_loopback_work() {
    if !has("python3") {
        return;
    }
    let fixture = JailFixture::new();
    let script = "python3 -c 'import socket, threading
for family, address in ((socket.AF_INET, \"127.0.0.1\"), (socket.AF_INET6, \"::1\")):
  s = socket.socket(family); s.bind((address, 0)); s.listen()
  threading.Thread(target=lambda: s.accept()[0].sendall(b\"hi\")).start()
  c = socket.create_connection(s.getsockname()[:2]); print(c.recv(2).decode())
'";
    assert_eq!(fixture.sh(script).ok(), "hi\nhi\n");
}

#[test]
fn names_are_resolved_by_the_proxy() {
    let fixture = JailFixture::new();
    let mut confinement = fixture.confinement();
    confinement.network = NetworkAccess::AllowList { hosts: Vec::new() };
    let ran = fixture.sh_in(confinement, "cat /etc/resolv.conf");
    assert_eq!(ran.ok(), "nameserver 198.18.0.1\n");
}

#[test]
fn the_whole_network_is_the_hosts() {
    let fixture = JailFixture::new();
    let mut confinement = fixture.confinement();
    confinement.network = NetworkAccess::Full;
    let inside = fixture
        .sh_in(
            confinement,
            "readlink /proc/self/ns/net; cat /etc/resolv.conf > /dev/null",
        )
        .ok();
    let host = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(inside.trim(), host.to_str().unwrap());
}

#[test]
fn what_is_named_is_shown() {
    let fixture = JailFixture::new();
    let mut confinement = fixture.confinement();
    let tools = fixture.home.join(".tools/bin");
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::write(tools.join("tool"), "#!/bin/sh\necho tool").unwrap();
    super::support::executable(&tools.join("tool"));
    std::os::unix::fs::symlink(&fixture.outside, fixture.home.join("linked")).unwrap();
    confinement.read = vec![
        ByteString::from(tools.as_path()),
        ByteString::from(fixture.home.join("linked")),
        ByteString::from(fixture.home.join("missing")),
    ];
    confinement.write = vec![ByteString::from(fixture.home.join(".cargo"))];
    std::fs::create_dir(fixture.home.join(".cargo")).unwrap();
    let script = "\"$HOME/.tools/bin/tool\" && cat \"$HOME/linked/file\" && echo x > \"$HOME/.cargo/x\" && \
        ! echo x > \"$HOME/linked/file\" && ! test -e \"$HOME/.ssh\"";
    let out = fixture.sh_in(confinement, script).ok();
    assert!(out.starts_with("tool\nhost"), "{out}");
    assert!(fixture.home.join(".cargo/x").exists());
}

#[test]
fn without_a_workspace_a_private_directory_will_do() {
    let fixture = JailFixture::new();
    let mut confinement = fixture.confinement();
    confinement.workspace = None;
    let ran = run(
        confinement,
        "echo x > x && pwd && ls",
        Path::new("/tmp"),
        &fixture.home,
    );
    assert_eq!(ran.unwrap().ok(), "/tmp\nx\n");
}

#[test]
fn a_workspace_below_home_and_others_beside_it() {
    let fixture = JailFixture::new();
    let workspace = fixture.home.join("projects/a");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::create_dir(fixture.home.join("projects/b")).unwrap();
    let mut confinement = fixture.confinement();
    confinement.workspace = Some(ByteString::from(workspace.as_path()));
    let ran = run(
        confinement,
        "echo x > x; ls -A ..; ls -A ~",
        &workspace,
        &fixture.home,
    );
    assert_eq!(ran.unwrap().ok(), "a\nprojects\n");
    assert!(workspace.join("x").exists());
}

#[test]
fn what_the_command_left_behind_goes_with_the_child() {
    let fixture = JailFixture::new();
    // The pipe ends only when no process has it open any more.
    fixture
        .sh("setsid sleep 1000 > /dev/null 2>&1 & echo started")
        .ok();
}

#[test]
fn commands_are_killed_before_their_init_when_memory_runs_out() {
    assert_eq!(
        JailFixture::new().sh("cat /proc/self/oom_score_adj").ok(),
        "100\n"
    );
}

#[test]
fn a_builder_that_is_killed_takes_everything_along() {
    // A copy of this test that builds a jail, prints the pids in it, and is killed.
    if std::env::var_os("OSTLER_TEST_BUILDER").is_some() {
        let fixture = JailFixture::new();
        fixture
            .sh("echo inside; setsid sleep 1000 & sleep 1000")
            .ok();
        return;
    }
    let name = "jail::works::a_builder_that_is_killed_takes_everything_along";
    let mut builder = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("OSTLER_TEST_BUILDER", "1")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let inside = super::support::until_sleepers(builder.id());
    builder.kill().unwrap();
    builder.wait().unwrap();
    for pidfd in inside {
        let mut gone = [rustix::event::PollFd::new(
            &pidfd,
            rustix::event::PollFlags::IN,
        )];
        let patience = rustix::event::Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        assert_eq!(rustix::event::poll(&mut gone, Some(&patience)), Ok(1));
    }
}

#[test]
fn many_jails_at_once() {
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(|| {
                let fixture = JailFixture::new();
                for _ in 0..5 {
                    assert!(
                        fixture
                            .sh("echo $$ > x; cat x")
                            .ok()
                            .trim()
                            .parse::<u32>()
                            .is_ok()
                    );
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn the_probe_finds_every_wall_of_this_machine() {
    use ostler_model::Capability;
    let (_subtree, abilities) = ostler_sandbox::probe(false);
    for ability in [
        Capability::NoNewPrivileges,
        Capability::Namespaces,
        Capability::OwnRoot,
        Capability::FreshProc,
        Capability::NoCapabilities,
        Capability::Landlock,
        Capability::Seccomp,
        Capability::NetworkNamespace,
        Capability::Overlay,
        Capability::DiskLimit,
    ] {
        assert!(abilities.has(ability), "{:?}", abilities.missing);
    }
    assert_eq!(
        abilities.has(Capability::SpareIds),
        super::support::is_root()
    );
}
