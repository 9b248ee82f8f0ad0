//! What must not work, tested from inside.

use std::process::{Command, Stdio};

use ostler_model::{ByteString, NetworkAccess};

use super::support::{JailFixture, has, is_root};

#[test]
fn writing_outside_the_workspace() {
    let fixture = JailFixture::new();
    let outside = fixture.outside.join("file");
    let script = format!(
        "echo x > '{}' ; echo x > /etc/ostler-test ; echo x > /usr/x ; echo x > /x ; mkdir /home/x ; echo x > /sys/x; true",
        outside.display()
    );
    fixture.sh(&script).ok();
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "host");
    for path in ["/etc/ostler-test", "/usr/x", "/x"] {
        assert!(!std::path::Path::new(path).exists(), "{path}");
    }
}

#[test]
fn reading_what_is_not_shown() {
    let fixture = JailFixture::new();
    fixture.sh("cat /etc/shadow").refused();
    fixture.sh("cat ~/.ssh/id").refused();
    fixture
        .sh(&format!("cat '{}/file'", fixture.outside.display()))
        .refused();
    assert_eq!(
        fixture
            .sh("ls -A /root /home 2>/dev/null | grep -v : ")
            .refused(),
        ""
    );
}

/// A process of the host; it ends with the test, however that ends.
struct Victim(std::process::Child);

impl Victim {
    fn new() -> Self {
        let mut sleep = Command::new("sleep");
        sleep
            .arg("1000")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(sleep.spawn().expect("it starts"))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn processes_of_the_host() {
    let fixture = JailFixture::new();
    let mut victim = Victim::new();
    let pid = victim.0.id();
    fixture.sh(&format!("kill -9 {pid}")).refused();
    let out = fixture.sh("ls /proc | grep '^[0-9]' | wc -l").ok();
    assert!(out.trim().parse::<u32>().unwrap() < 8, "{out}");
    // Not even the init.
    fixture.sh("kill -9 1; cat /proc/1/cmdline").refused();
    fixture.sh("cat /proc/1/environ").refused();
    fixture.sh("head -c 1 /proc/1/maps | grep .").refused();
    let _nobody_is_there_to_be_killed = fixture.sh("kill -9 -1");
    assert!(victim.0.try_wait().unwrap().is_none());
}

#[test]
fn new_namespaces_and_mounts() {
    let fixture = JailFixture::new();
    fixture.sh("unshare -U true").refused();
    fixture.sh("unshare -m true").refused();
    fixture.sh("mount -t tmpfs x /tmp").refused();
    fixture.sh("umount /tmp").refused();
    fixture.sh("mount -o remount,rw /usr").refused();
    fixture.sh("chroot / true").refused();
}

#[test]
fn capabilities_and_setuid() {
    let fixture = JailFixture::new();
    let status = fixture.sh("cat /proc/self/status").ok();
    for line in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(
            status.contains(&format!("{line}:\t0000000000000000")),
            "{status}"
        );
    }
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert!(status.contains("Seccomp:\t2"), "{status}");
    fixture.sh("cp /bin/true t && chmod u+s t").refused();
    fixture.sh("cp /bin/true t && chmod 2755 t").refused();
}

#[test]
fn the_network() {
    let fixture = JailFixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    if has("python3") {
        let script = format!(
            "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
        );
        fixture.sh(&script).refused();
        fixture
            .sh("python3 -c 'import socket; socket.create_connection((\"198.51.100.1\", 80), 5)'")
            .refused();
        fixture.sh("python3 -c 'import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b\"x\", (\"198.51.100.1\", 53))'").refused();
    }
    assert_eq!(
        fixture
            .sh("cat /proc/net/dev | tail -n +3 | grep -v ' lo:' | wc -l")
            .ok()
            .trim(),
        "0"
    );
}

#[test]
fn abstract_sockets_of_the_host() {
    if !has("python3") {
        return;
    }
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let name = format!("ostler-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let fixture = JailFixture::new();
    let script =
        format!("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'");
    fixture.sh(&script).refused();
    // Landlock's scope, where the network is shared.
    let mut confinement = fixture.confinement();
    confinement.network = NetworkAccess::Full;
    fixture.sh_in(confinement, &script).refused();
}

#[test]
fn what_protects_the_workspace() {
    let fixture = JailFixture::new();
    let git = fixture.workspace.join(".git");
    std::fs::create_dir(&git).unwrap();
    std::fs::write(git.join("config"), "mine").unwrap();
    std::fs::write(fixture.workspace.join(".env"), "secret").unwrap();
    let mut confinement = fixture.confinement();
    confinement.protect = vec![
        ".git/hooks".into(),
        ".git/config".into(),
        "missing/x".into(),
    ];
    confinement.hide = vec![ByteString::from(fixture.workspace.join(".env"))];
    let sh = |script: &str| fixture.sh_in(confinement.clone(), script);
    sh("echo '#!/bin/sh' > .git/hooks/pre-commit").refused();
    sh("echo x > .git/config").refused();
    sh("mv .git other").refused();
    sh("rm -rf .git").refused();
    sh("rmdir .git/hooks").refused();
    sh("mv .git/hooks .git/h2").refused();
    sh("mv .git/config .git/c2").refused();
    assert!(
        !sh("cat .env; echo x > .env; cat .env; true")
            .ok()
            .contains("secret")
    );
    sh("echo x > .git/index && echo y > other").ok();
    assert_eq!(std::fs::read_to_string(git.join("config")).unwrap(), "mine");
    assert!(git.join("hooks").is_dir());
    assert_eq!(
        std::fs::read_to_string(fixture.workspace.join(".env")).unwrap(),
        "secret"
    );
}

#[test]
fn links_in_protected_paths_are_not_followed_and_do_not_abort() {
    let fixture = JailFixture::new();
    std::os::unix::fs::symlink(&fixture.outside, fixture.workspace.join(".git")).unwrap();
    std::os::unix::fs::symlink("nowhere", fixture.workspace.join("dangling")).unwrap();
    let mut confinement = fixture.confinement();
    confinement.protect = vec![".git/hooks".into(), "dangling".into()];
    confinement.hide = vec![ByteString::from(fixture.workspace.join("dangling"))];
    fixture.sh_in(confinement, "true").ok();
    assert!(!fixture.outside.join("hooks").exists());
}

#[test]
fn a_git_file_of_a_worktree_cannot_be_redirected() {
    let fixture = JailFixture::new();
    std::fs::write(fixture.workspace.join(".git"), "gitdir: /x").unwrap();
    let mut confinement = fixture.confinement();
    confinement.protect = vec![".git/hooks".into()];
    fixture
        .sh_in(confinement.clone(), "echo gitdir: /tmp > .git")
        .refused();
    fixture.sh_in(confinement, "mv .git x").refused();
}

#[test]
fn links_out_of_the_workspace_lead_nowhere() {
    let fixture = JailFixture::new();
    std::os::unix::fs::symlink(&fixture.outside, fixture.workspace.join("out")).unwrap();
    fixture.sh("cat out/file").refused();
    fixture
        .sh("ln -s /proc/1/root r && ls r/etc/hostname")
        .refused();
    fixture
        .sh(&format!("ln '{}/file' hard", fixture.outside.display()))
        .refused();
}

#[test]
fn ids_of_root_are_nobodys() {
    let fixture = JailFixture::new();
    let map = fixture.sh("cat /proc/self/uid_map").ok();
    let numbers: Vec<u32> = map
        .split_whitespace()
        .map(|it| it.parse().unwrap())
        .collect();
    if is_root() {
        assert_eq!((numbers[0], numbers[2]), (0, 65_536), "{map}");
        assert!(numbers[1] > 1_000_000_000, "{map}");
    } else {
        assert_eq!((numbers[0], numbers[2]), (numbers[1], 1), "{map}");
    }
}

#[test]
fn a_workspace_that_is_gone_is_an_error_with_its_path() {
    let fixture = JailFixture::new();
    let mut confinement = fixture.confinement();
    confinement.workspace = Some(ByteString::from(fixture.outside.join("gone")));
    let error = fixture.try_sh(confinement, "true").unwrap_err().to_string();
    assert!(
        error.starts_with("workspace on ") && error.contains("gone"),
        "{error}"
    );
}

#[test]
fn a_link_to_a_repository_inside_is_followed_and_cannot_be_replaced() {
    let fixture = JailFixture::new();
    std::fs::create_dir(fixture.workspace.join("real")).unwrap();
    std::os::unix::fs::symlink("real", fixture.workspace.join(".git")).unwrap();
    let mut confinement = fixture.confinement();
    confinement.protect = vec![".git/hooks".into(), ".git/config".into()];
    let sh = |script: &str| fixture.sh_in(confinement.clone(), script);
    sh("echo x > .git/hooks/pre-commit").refused();
    sh("echo x > real/hooks/pre-commit").refused();
    sh("mv real other").refused();
    sh("echo x > .git/index && cat real/index").ok();
    sh("rm .git").refused();
    sh("mv .git other").refused();
}
