//! Landlock and seccomp, each installed on one thread and tested from that thread: both refusals
//! and permissions.
#![expect(unsafe_code, reason = "system calls that no wrapper makes")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;

use ostler_model::sandbox_spec::SandboxSpec;
use ostler_model::{ByteString, Capability};
use ostler_sandbox::landlock::{self, LandlockRuleset};
use ostler_sandbox::seccomp;

/// Runs a check on a separate thread after `raise` has restricted it: both apply to the thread that
/// installs them and to its children.
fn behind<T: Send + 'static>(
    raise: impl FnOnce() + Send + 'static,
    check: impl FnOnce() -> T + Send + 'static,
) -> T {
    let behind = thread::spawn(move || {
        rustix::thread::set_no_new_privs(true).expect("always allowed");
        raise();
        check()
    });
    behind.join().expect("the check holds")
}

fn behind_seccomp<T: Send + 'static>(check: impl FnOnce() -> T + Send + 'static) -> T {
    let program = seccomp::build_filter(&SandboxSpec::default());
    behind(move || program.install().expect("installed"), check)
}

/// The errno of a system call; 0 where it succeeded.
fn errno(number: libc::c_long, arguments: [libc::c_long; 4]) -> i32 {
    let [a, b, c, d] = arguments;
    // SAFETY: the calls here take numbers, or pointers that are null.
    let done = unsafe { libc::syscall(number, a, b, c, d) };
    if done >= 0 {
        return 0;
    }
    io::Error::last_os_error().raw_os_error().unwrap_or(-1)
}

#[test]
fn seccomp_refuses_what_only_escapes_need() {
    behind_seccomp(|| {
        let namespaces = libc::c_long::from(libc::CLONE_NEWUSER);
        for (name, number, arguments) in [
            ("ptrace", libc::SYS_ptrace, [0; 4]),
            ("unshare", libc::SYS_unshare, [namespaces, 0, 0, 0]),
            ("clone", libc::SYS_clone, [namespaces | 17, 0, 0, 0]),
            ("mount", libc::SYS_mount, [0; 4]),
            ("fsopen", libc::SYS_fsopen, [0; 4]),
            ("io_uring", libc::SYS_io_uring_setup, [1, 0, 0, 0]),
            ("bpf", libc::SYS_bpf, [0; 4]),
            ("keyctl", libc::SYS_keyctl, [0; 4]),
            ("perf", libc::SYS_perf_event_open, [0; 4]),
            ("userfaultfd", libc::SYS_userfaultfd, [0; 4]),
            ("handles", libc::SYS_open_by_handle_at, [0; 4]),
            ("pidfd_getfd", libc::SYS_pidfd_getfd, [0; 4]),
            ("typing", libc::SYS_ioctl, [0, 0x5412, 0, 0]),
            (
                "typing, high bits",
                libc::SYS_ioctl,
                [0, 0x1_0000_5412, 0, 0],
            ),
            ("vsock", libc::SYS_socket, [40, 1, 0, 0]),
            ("packet", libc::SYS_socket, [17, 3, 0, 0]),
            ("raw", libc::SYS_socket, [2, 3, 1, 0]),
            ("algorithms", libc::SYS_socket, [38, 5, 0, 0]),
        ] {
            assert_eq!(errno(number, arguments), libc::EPERM, "{name}");
        }
        assert_eq!(errno(libc::SYS_clone3, [0; 4]), libc::ENOSYS);
        assert_eq!(errno(libc::SYS_openat2, [0; 4]), libc::ENOSYS);
    });
}

#[test]
fn seccomp_lets_no_file_give_its_owners_rights() {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("file");
    behind_seccomp(move || {
        let refused = |result: io::Result<()>| {
            assert_eq!(
                result.expect_err("refused").raw_os_error(),
                Some(libc::EPERM)
            );
        };
        let open = |mode| {
            OpenOptions::new()
                .write(true)
                .create(true)
                .mode(mode)
                .open(&path)
        };
        refused(open(0o4755).map(drop));
        assert!(!path.exists());
        open(0o755).expect("an ordinary file");
        let chmod = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode));
        refused(chmod(0o4755));
        refused(chmod(0o2755));
        chmod(0o1755).expect("the sticky bit");
        let chmod = format!("chmod u+s {}", path.display());
        let status = Command::new("sh")
            .args(["-c", &chmod])
            .stderr(std::process::Stdio::null())
            .status();
        assert!(
            !status.expect("started").success(),
            "inherited by what it starts"
        );
    });
}

#[test]
fn seccomp_is_not_in_the_way_of_ordinary_programs() {
    behind_seccomp(|| {
        let sum = thread::spawn(|| 2 + 2).join().expect("threads");
        assert_eq!(sum, 4);
        let script = "echo a | cat >/dev/null & wait; test $(id -u | wc -l) = 1";
        let status = Command::new("sh")
            .args(["-c", script])
            .status()
            .expect("started");
        assert!(status.success());
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        std::net::TcpStream::connect(address).expect("connected");
        UnixStream::pair().expect("socketpair");
        // NETLINK_ROUTE, which the C library uses to list addresses.
        assert_eq!(errno(libc::SYS_socket, [16, 3, 0, 0]), 0);
    });
}

#[test]
fn seccomp_stands_in_for_a_missing_network_namespace() {
    let confinement = SandboxSpec {
        without: vec![Capability::NetworkNamespace],
        ..SandboxSpec::default()
    };
    let program = seccomp::build_filter(&confinement);
    behind(
        move || program.install().expect("installed"),
        || {
            for family in [2, 10] {
                assert_eq!(errno(libc::SYS_socket, [family, 1, 0, 0]), libc::EPERM);
            }
            UnixStream::pair().expect("unix sockets go on");
        },
    );
}

/// The rules of a workspace below a directory that is in no allow list.
fn landlocked<T: Send + 'static>(
    workspace: &Path,
    check: impl FnOnce(&Path) -> T + Send + 'static,
) -> Option<T> {
    let abi = landlock::abi();
    if abi < landlock::rights::ABI_MIN {
        return None;
    }
    let workspace = workspace.to_owned();
    let text = workspace.to_str().expect("test paths are text").to_owned();
    let confinement = SandboxSpec {
        workspace: Some(ByteString::from(text)),
        ..SandboxSpec::default()
    };
    let rules = LandlockRuleset::new(&confinement, abi);
    let raise = move || rules.install().expect("installed");
    Some(behind(raise, move || check(&workspace)))
}

/// Not below /tmp, which is a command's own, wherever these tests were built.
fn beside_private_directories() -> tempfile::TempDir {
    let candidates = ["/srv", "/var/lib", env!("CARGO_TARGET_TMPDIR")];
    let mut made = candidates.iter().map(tempfile::tempdir_in);
    made.find_map(Result::ok).expect("a directory")
}

#[test]
fn landlock_shuts_what_is_not_in_the_list() {
    let outside = beside_private_directories();
    let workspace = outside.path().join("workspace");
    fs::create_dir_all(workspace.join("deep")).expect("made");
    fs::write(outside.path().join("secret"), "s").expect("written");
    fs::hard_link(outside.path().join("secret"), workspace.join("linked")).expect("linked");
    landlocked(&workspace, |workspace| {
        let outside = workspace.parent().expect("made above");
        let refused = |result: io::Result<()>, errno: i32| {
            assert_eq!(result.expect_err("refused").raw_os_error(), Some(errno));
        };
        refused(fs::read(outside.join("secret")).map(drop), libc::EACCES);
        refused(fs::write(outside.join("new"), ""), libc::EACCES);
        refused(fs::remove_file(outside.join("secret")), libc::EACCES);
        refused(
            fs::rename(workspace.join("deep"), outside.join("moved")),
            libc::EACCES,
        );
        refused(fs::write("/usr/bin/ostler-was-here", ""), libc::EACCES);
        fs::write(workspace.join("one"), "1").expect("written");
        fs::rename(workspace.join("one"), workspace.join("deep/one")).expect("moved");
        fs::hard_link(workspace.join("deep/one"), workspace.join("two")).expect("linked");
        fs::remove_file(workspace.join("two")).expect("removed");
        let mut null = File::options()
            .write(true)
            .open("/dev/null")
            .expect("a device");
        null.write_all(b"x").expect("written");
        assert!(Command::new("/bin/true").status().expect("run").success());
    });
}

#[test]
fn landlock_keeps_signals_and_abstract_sockets_inside() {
    if landlock::abi() < 6 {
        return;
    }
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let name = format!("ostler-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).expect("short");
    let _listener = UnixListener::bind_addr(&address).expect("bound");
    let mut outside = Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("run");
    let pid = libc::c_long::from(outside.id());
    let workspace = tempfile::tempdir().expect("made");
    landlocked(workspace.path(), move |_| {
        let error = UnixStream::connect_addr(&address).expect_err("refused");
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        assert_eq!(errno(libc::SYS_kill, [pid, 15, 0, 0]), libc::EPERM);
        let mut inside = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("run");
        inside.kill().expect("its own child");
        inside.wait().expect("ended");
    });
    drop(outside.stdin.take());
    assert!(outside.wait().expect("ended").success(), "never signalled");
}
