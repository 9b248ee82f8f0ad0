//! An outside network, a jail in it, and an egress proxy between them.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ostler_egress::{
    EgressClient, EgressConfig, EgressError, EgressResponse, JailNamespaces, NAMESERVER, Resolve,
    ResolveFuture, Upstream,
};
use ostler_model::sandbox_spec::HostRule;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;

pub(crate) type ProxyTestCase = (&'static str, fn());

/// Set in the outside network namespace, so that it is entered once.
pub(crate) const IN_NETNS: &str = "OSTLER_GATE_TEST_WORLD";
/// The address of reachable servers: a part of the loopback that the egress proxy of these tests
/// allows.
pub(crate) const UPSTREAM: [u8; 4] = [127, 77, 0, 1];
/// Addresses outside that are allowed only by rules.
pub(crate) const PRIVATE_V4: &str = "10.98.0.1";
pub(crate) const PRIVATE_V6: &str = "fd99::1";
/// An address that is allowed as if it were public.
pub(crate) const PUBLIC_V4: &str = "10.99.0.1";
/// The timeout of any step.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Re-executes this program in a network namespace of its own.
pub(crate) fn enter_netns() {
    if std::env::var_os(IN_NETNS).is_some() {
        return;
    }
    let flags = if rustix::process::geteuid().is_root() {
        "-n"
    } else {
        "-Urn"
    };
    let setup = format!(
        "ip link set lo up && ip addr add {PRIVATE_V4}/32 dev lo && \
         ip addr add {PUBLIC_V4}/32 dev lo && ip addr add {PRIVATE_V6}/128 dev lo nodad && \
         exec \"$@\""
    );
    let error = Command::new("unshare")
        .args([flags, "sh", "-c", &setup, "sh"])
        .arg(std::env::current_exe().expect("a path"))
        .args(std::env::args_os().skip(1))
        .env(IN_NETNS, "1")
        .exec();
    panic!("unshare: {error}");
}

/// The resolver of the outside network.
#[derive(Debug)]
struct FakeResolver;

/// How many queries for `rebind.test` were made so far.
static REBOUND: AtomicUsize = AtomicUsize::new(0);

impl Resolve for FakeResolver {
    fn resolve(&self, name: &str) -> ResolveFuture {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let found: std::io::Result<Vec<IpAddr>> = match name {
            "inward.test" => Ok(vec![loopback]),
            "metadata.test" => Ok(vec![[169, 254, 169, 254].into()]),
            "private.test" => Ok(vec![PRIVATE_V4.parse().expect("an address")]),
            "mapped.test" => Ok(vec!["::ffff:127.0.0.1".parse().expect("an address")]),
            "mixed.test" => Ok(vec![loopback, UPSTREAM.into()]),
            "dead.test" => Ok(vec![[127, 77, 9, 9].into(), UPSTREAM.into()]),
            "rebind.test" => match REBOUND.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(vec![UPSTREAM.into()]),
                _ => Ok(vec![loopback]),
            },
            "silent.test" => return Box::pin(std::future::pending()),
            "missing.test" => Err(std::io::ErrorKind::NotFound.into()),
            _ => Ok(vec![UPSTREAM.into()]),
        };
        Box::pin(std::future::ready(found))
    }
}

/// The outside network as the egress proxy uses it.
pub(crate) fn outside_network() -> Upstream {
    Upstream {
        resolver: Box::new(FakeResolver),
        allow_special: |address| match address {
            IpAddr::V4(v4) => matches!(v4.octets(), [127, 77, ..] | [10, 99, ..]),
            IpAddr::V6(_) => false,
        },
    }
}

/// A network namespace with an init, as a command of level high has one. Ends when dropped.
pub(crate) struct NetnsFixture {
    init_process: Child,
    pub(crate) dir: TempDir,
}

impl NetnsFixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let resolv = dir.path().join("resolv.conf");
        std::fs::write(&resolv, format!("nameserver {NAMESERVER}\n")).expect("written");
        let setup = "mount --bind \"$0\" /etc/resolv.conf && ip link set lo up && \
                     echo ready && exec cat";
        let mut init_child = Command::new("unshare")
            .args(["-Urnm", "sh", "-c", setup])
            .arg(&resolv)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare runs");
        let mut ready = [0; 6];
        let stdout = init_child.stdout.as_mut().expect("piped");
        stdout.read_exact(&mut ready).expect("the warden is ready");
        Self {
            init_process: init_child,
            dir,
        }
    }

    pub(crate) fn pidfd(&self) -> OwnedFd {
        let pid = i32::try_from(self.init_process.id()).expect("small");
        let pid = Pid::from_raw(pid).expect("a pid");
        pidfd_open(pid, PidfdFlags::empty()).expect("alive")
    }

    pub(crate) fn log_path(&self) -> std::path::PathBuf {
        self.dir.path().join("network.jsonl")
    }

    /// Starts an egress proxy for these rules.
    pub(crate) fn start_proxy(&self, rules: &[&str]) -> Result<EgressClient, EgressError> {
        let hosts: Vec<HostRule> = rules.iter().map(|it| it.parse().expect("a rule")).collect();
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .expect("opened");
        let space = |kind| {
            let path = format!("/proc/{}/ns/{kind}", self.init_process.id());
            std::fs::File::open(path).expect("the warden lives")
        };
        let (user, network) = (space("user"), space("net"));
        // Half of the egress proxies use each way in.
        let spaces = rules.len().is_multiple_of(2).then(|| JailNamespaces {
            user: user.as_fd(),
            network: network.as_fd(),
        });
        EgressClient::start(&EgressConfig {
            executable: Path::new("/proc/self/exe"),
            init: self.pidfd().as_fd(),
            namespaces: spaces,
            hosts: &hosts,
            log: Some(log.as_fd()),
        })
    }

    /// A program to be run inside.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["-t", &self.init_process.id().to_string()])
            .args(["-U", "-n", "-m", "--preserve-credentials"])
            .arg(format!("--wd={}", self.dir.path().display()))
            .arg("--")
            .arg(program)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = self.command("timeout");
        command.arg("60").arg(program).args(arguments);
        command.output().expect("nsenter runs")
    }

    /// Runs a Python program inside and returns its output; standard error must be empty.
    pub(crate) fn python(&self, program: &str) -> String {
        stdout_text(&self.run("/usr/bin/python3", &["-c", program]))
    }

    /// The log entries about one host, once there are any.
    pub(crate) fn log_entries(&self, host: &str) -> Vec<serde_json::Value> {
        let limit = Instant::now() + PATIENCE;
        loop {
            let text = std::fs::read_to_string(self.log_path()).expect("there");
            let lines = text.lines().map(|it| serde_json::from_str(it).expect(it));
            let about: Vec<serde_json::Value> = lines
                .filter(|it: &serde_json::Value| it["host"] == host)
                .collect();
            if !about.is_empty() {
                return about;
            }
            assert!(Instant::now() < limit, "nothing about {host} in:\n{text}");
            std::thread::yield_now();
        }
    }

    /// The last decision about one host.
    pub(crate) fn decision(&self, host: &str) -> (String, String) {
        let last = self.log_entries(host).pop().expect("some");
        let word = |key: &str| last[key].as_str().unwrap_or_default().to_owned();
        (word("decision"), word("reason"))
    }
}

impl Drop for NetnsFixture {
    fn drop(&mut self) {
        drop(self.init_process.stdin.take());
        let _gone = self.init_process.wait();
    }
}

/// Standard output of a program that succeeded.
pub(crate) fn stdout_text(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {out}\n{err}", output.status);
    out.trim().to_owned()
}

/// A server that runs `server` on a thread for each connection; returns its port.
pub(crate) fn server(
    address: impl Into<IpAddr>,
    serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static,
) -> u16 {
    let listener = TcpListener::bind((address.into(), 0)).expect("bound");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

/// A web server with one response.
pub(crate) fn serve_http(address: impl Into<IpAddr>, text: &'static str) -> u16 {
    server(address, move |mut stream| {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            if !matches!(stream.read(&mut byte), Ok(1)) {
                return;
            }
            request.extend(byte);
        }
        let length = text.len();
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
        drop(write!(stream, "{head} {length}\r\n\r\n{text}"));
    })
}

/// An echo server.
pub(crate) fn serve_echo(address: impl Into<IpAddr>) -> u16 {
    server(address, |mut stream| {
        let mut back = stream.try_clone().expect("copied");
        drop(std::io::copy(&mut stream, &mut back));
        drop(back.shutdown(std::net::Shutdown::Write));
    })
}

/// Waits for the egress proxy's next response.
pub(crate) fn wait_answer(proxy: &EgressClient) -> EgressResponse {
    loop {
        assert!(readable(proxy.as_fd()), "no answer");
        if let Some(answer) = proxy.try_receive().expect("the gate lives") {
            return answer;
        }
    }
}

/// Waits until a descriptor is readable; false after the timeout.
pub(crate) fn readable(descriptor: std::os::fd::BorrowedFd<'_>) -> bool {
    let limit = Timespec::try_from(PATIENCE).expect("short");
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// A response of the egress proxy, without serials.
#[derive(Debug)]
pub(crate) enum ProxyOutcome {
    Connected(TcpStream),
    Forwarding(u16),
    Refused(rustix::io::Errno),
    Counted(ostler_egress::EgressCounts),
}

/// As [`wait_answer`], with blocking sockets.
pub(crate) fn wait_outcome(proxy: &EgressClient) -> ProxyOutcome {
    match wait_answer(proxy) {
        EgressResponse::Connected { socket, .. } => {
            let stream = TcpStream::from(socket);
            stream.set_nonblocking(false).expect("set");
            ProxyOutcome::Connected(stream)
        }
        EgressResponse::Forwarding { host_port, .. } => ProxyOutcome::Forwarding(host_port),
        EgressResponse::Refused { errno, .. } => ProxyOutcome::Refused(errno),
        EgressResponse::Counts { counts, .. } => ProxyOutcome::Counted(counts),
    }
}
