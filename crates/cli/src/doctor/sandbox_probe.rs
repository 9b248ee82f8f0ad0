//! The sandboxed command: it attempts what must be denied and what must work, and reports each
//! result. Its report counts only for refusals: an attempt that reached its target is reported as
//! not denied.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use serde::{Deserialize, Serialize};

/// The first argument that selects this role.
pub(crate) const PROBE_ARGUMENT: &str = "__witness";
/// The timeout of a connection that should be refused.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The most signals that may be queued in a jail.
const MAX_SIGNALS: u64 = 1_024;
/// `AF_VSOCK` of socket(2).
const VSOCK: AddressFamily = AddressFamily::from_raw(40);
/// Processes of a jail: its init, this one, and one that is just ending.
const OWN_PROCESSES: usize = 3;

/// The targets outside of the sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ProbeTargets {
    /// A process of the host: the doctor itself.
    pub(super) pid: u32,
    /// A TCP server on the host's loopback.
    pub(super) tcp: SocketAddr,
    /// The name of an abstract Unix socket of the host.
    pub(super) unix: String,
    /// A file in the state directory.
    pub(super) state: PathBuf,
    /// A file in the directory of the workspace.
    pub(super) beside: PathBuf,
    pub(super) home: PathBuf,
    pub(super) daemon: PathBuf,
    /// The limit of inotify instances of a user of the host.
    pub(super) inotify_instances: u64,
    /// The workspace; it has a `.git` directory.
    pub(super) workspace: PathBuf,
}

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProbeResult {
    /// The attempted operation.
    pub(super) what: String,
    /// Whether it must be denied; else it must work.
    pub(super) to_deny: bool,
    /// Whether the result is as required.
    #[serde(rename = "held")]
    pub(super) passed: bool,
    /// The error of the system.
    #[serde(rename = "said")]
    pub(super) detail: String,
}

/// Runs all attempts and writes one JSON list to standard output.
pub(crate) fn main() -> u8 {
    let targets = std::env::args().nth(2);
    let targets = targets.and_then(|text| serde_json::from_str::<ProbeTargets>(&text).ok());
    let Some(targets) = targets else {
        return crate::EXIT_USAGE;
    };
    let all: Vec<ProbeResult> = probe_denials(&targets)
        .into_iter()
        .chain(probe_working(&targets))
        .collect();
    let output = serde_json::to_vec(&all).unwrap_or_default();
    #[expect(clippy::disallowed_methods, reason = "a program reads it")]
    let mut stdout = io::stdout();
    match stdout.write_all(&output) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

type ProbeAttempt = (&'static str, io::Result<()>);

fn probe_denials(targets: &ProbeTargets) -> Vec<ProbeResult> {
    let to_result = |(what, result): ProbeAttempt| ProbeResult {
        what: what.to_owned(),
        to_deny: true,
        passed: result.is_err(),
        detail: result
            .err()
            .map_or_else(|| "it worked".to_owned(), |it| it.to_string()),
    };
    let all = probe_files(targets)
        .into_iter()
        .chain(probe_processes(targets));
    all.chain(probe_network(targets)).map(to_result).collect()
}

fn probe_files(targets: &ProbeTargets) -> Vec<ProbeAttempt> {
    let link = targets.workspace.join("link");
    let linked = std::os::unix::fs::symlink(&targets.state, &link).and_then(|()| read(&link));
    let hard = fs::hard_link("/etc/passwd", targets.workspace.join("hard"));
    let hook = targets.workspace.join(".git/hooks/pre-commit");
    let moved = fs::rename(
        targets.workspace.join(".git"),
        targets.workspace.join("git"),
    );
    vec![
        ("write beside the workspace", write(&targets.beside)),
        (
            "write to /usr",
            create_file(Path::new("/usr/ostler-witness")),
        ),
        (
            "write to /etc",
            create_file(Path::new("/etc/ostler-witness")),
        ),
        (
            "write to the home directory's files",
            home_write(&targets.home),
        ),
        ("read /etc/shadow", read(Path::new("/etc/shadow"))),
        ("read ~/.ssh", list(&targets.home.join(".ssh"))),
        ("read our state directory", read(&targets.state)),
        ("follow a link out of the workspace", linked),
        ("hard-link a file of the system", hard),
        ("write a git hook", write(&hook)),
        ("move .git away", moved),
    ]
}

fn probe_processes(targets: &ProbeTargets) -> Vec<ProbeAttempt> {
    let pid = i32::try_from(targets.pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let signal = pid.map_or(Ok(()), |pid| Ok(rustix::process::test_kill_process(pid)?));
    let memory = read(&PathBuf::from(format!("/proc/{}/mem", targets.pid)));
    let nested = run_program("unshare", &["--user", "--map-root-user", "true"]);
    vec![
        ("see processes of the host", host_processes()),
        ("signal a process of the host", signal),
        ("read the memory of a process of the host", memory),
        ("mount", try_mount(&targets.workspace.join("mnt"))),
        ("make a user namespace", nested),
        ("gain rights by a setuid program", privilege_gain()),
        ("hold a capability", capability()),
        ("run without a system call filter", status("Seccomp", "0")),
        ("have more than a share of waiting signals", signal_limit()),
        (
            "have more than a share of inotify instances",
            inotify_limit(targets.inotify_instances),
        ),
        (
            "see network devices of the host",
            list(Path::new("/sys/class/net")),
        ),
    ]
}

fn probe_network(targets: &ProbeTargets) -> Vec<ProbeAttempt> {
    let tcp = TcpStream::connect_timeout(&targets.tcp, CONNECT_TIMEOUT).map(drop);
    let name = UnixAddress::from_abstract_name(targets.unix.as_bytes());
    let unix = name
        .and_then(|name| UnixStream::connect_addr(&name))
        .map(drop);
    let outside = SocketAddr::from(([192, 0, 2, 1], 9));
    let udp = UdpSocket::bind("0.0.0.0:0").and_then(|it| it.send_to(b"ostler", outside).map(drop));
    let socket = |family, kind, protocol| {
        let result = socket_with(family, kind, SocketFlags::CLOEXEC, protocol);
        result.map(drop).map_err(io::Error::from)
    };
    vec![
        ("reach a server on the host's loopback", tcp),
        ("send UDP off the machine", udp),
        ("reach an abstract socket of the host", unix),
        (
            "reach the daemon's socket",
            UnixStream::connect(&targets.daemon).map(drop),
        ),
        (
            "open a raw socket",
            socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)),
        ),
        (
            "open a packet socket",
            socket(AddressFamily::PACKET, SocketType::DGRAM, None),
        ),
        (
            "open a vsock socket",
            socket(VSOCK, SocketType::STREAM, None),
        ),
    ]
}

fn probe_working(targets: &ProbeTargets) -> Vec<ProbeResult> {
    let to_result = |(what, result): ProbeAttempt| ProbeResult {
        what: what.to_owned(),
        to_deny: false,
        passed: result.is_ok(),
        detail: result.err().map_or_else(String::new, |it| it.to_string()),
    };
    let all = [
        (
            "write in the workspace",
            write(&targets.workspace.join("made")),
        ),
        ("write to /tmp", write(Path::new("/tmp/made"))),
        ("write to /dev/shm", write(Path::new("/dev/shm/made"))),
        ("write to /dev/null", append(Path::new("/dev/null"))),
        ("read /dev/urandom", read(Path::new("/dev/urandom"))),
        ("read /etc/passwd", read(Path::new("/etc/passwd"))),
        ("run a program of the system", run_program("true", &[])),
        ("serve on loopback", loopback()),
    ];
    all.into_iter().map(to_result).collect()
}

fn write(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path);
    file.and_then(|mut file| file.write_all(b"witness"))
}

/// Creates and removes a new file: nothing stays if the sandbox does not hold.
fn create_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?;
    fs::remove_file(path)
}

/// Opens a file for appending, which is enough.
fn append(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path).map(drop)
}

/// Mounts and unmounts.
fn try_mount(at: &Path) -> io::Result<()> {
    fs::create_dir_all(at)?;
    mount("none", at, "tmpfs", MountFlags::empty(), None)?;
    Ok(unmount(at, UnmountFlags::DETACH)?)
}

/// Reads at least one byte of a file.
fn read(path: &Path) -> io::Result<()> {
    let mut byte = [0];
    match File::open(path)?.read(&mut byte)? {
        0 => Err(io::Error::other("it is empty here")),
        _ => Ok(()),
    }
}

fn list(path: &Path) -> io::Result<()> {
    match fs::read_dir(path)?.next() {
        Some(entry) => entry.map(drop),
        None => Err(io::Error::other("it is empty here")),
    }
}

/// Writes to the home directory, which is private and empty: a file written there disappears with
/// the command. A file that was there before would be the host's.
fn home_write(home: &Path) -> io::Result<()> {
    append(&home.join(".profile")).or_else(|_| append(&home.join(".bashrc")))
}

/// Succeeds if processes of the host are visible.
fn host_processes() -> io::Result<()> {
    let is_pid = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let entries = fs::read_dir("/proc")?.filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    match names.filter(|name| is_pid(name)).count() {
        0..=OWN_PROCESSES => Err(io::Error::other("it sees its own alone")),
        _ => Ok(()),
    }
}

/// Succeeds if exec(2) may grant privileges; no setuid program is searched for.
fn privilege_gain() -> io::Result<()> {
    status("NoNewPrivs", "0")
}

fn capability() -> io::Result<()> {
    let none = "0000000000000000";
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        if status_field(set)?.as_deref() != Some(none) {
            return Ok(());
        }
    }
    Err(io::Error::other("every set is empty"))
}

/// Succeeds if as many signals may be queued as the kernel allows a user; `SigQ` has both numbers.
fn signal_limit() -> io::Result<()> {
    let text = status_field("SigQ")?.unwrap_or_default();
    let limit = text
        .split_once('/')
        .and_then(|(_, most)| most.parse::<u64>().ok());
    match limit {
        Some(most) if most <= MAX_SIGNALS => Err(io::Error::other(format!("at most {most}"))),
        Some(_) | None => Ok(()),
    }
}

/// Succeeds if this namespace may have as many inotify instances as a user of the host.
fn inotify_limit(host_limit: u64) -> io::Result<()> {
    match max_inotify_instances() {
        Some(most) if most < host_limit => Err(io::Error::other(format!("{most} of {host_limit}"))),
        Some(_) => Ok(()),
        None => Err(io::Error::other("the kernel has none")),
    }
}

/// The limit of inotify instances of a user; none where the kernel has no such limit.
pub(super) fn max_inotify_instances() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/user/max_inotify_instances").ok()?;
    text.trim().parse().ok()
}

/// Succeeds if a field of proc(5) status has the value that must not be.
fn status(name: &str, bad: &str) -> io::Result<()> {
    match status_field(name)? {
        Some(value) if value != bad => Err(io::Error::other(format!("{name} is {value}"))),
        Some(_) | None => Ok(()),
    }
}

fn status_field(name: &str) -> io::Result<Option<String>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.map(|value| value.trim().to_owned()))
}

fn run_program(program: &str, arguments: &[&str]) -> io::Result<()> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(message.trim().to_owned()))
}

fn loopback() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    TcpStream::connect_timeout(&listener.local_addr()?, CONNECT_TIMEOUT).map(drop)
}
