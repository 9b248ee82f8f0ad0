//! Listening sockets of trees: found, connected to, and reported as holders.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use ostler_backend::{Backend, ControlCommand, LaunchIo, LaunchPlan, SpawnHandle};
use ostler_backend_local::ZygoteConfig;
use ostler_model::sandbox_spec::NetworkAccess;
use ostler_model::snapshot::TcpListenerInfo;
use ostler_model::{ExecutionId, SnapshotRequest, StreamName};
use tokio::time::timeout;

use crate::jails::JailFixture;
use crate::support::{
    BackendFixture, LONG, TestCase, argv, output, this_executable, wait_exit, wait_output,
};

pub(crate) const CASES: &[TestCase] = &[
    ("every_kind_of_listener_is_seen", kinds),
    ("unix_sockets_are_seen_when_asked_for", unix_sockets),
    ("a_socket_that_was_closed_is_gone", closed),
    ("a_server_is_dialled", dialled),
    ("nobody_listens_is_an_error", refused),
    ("what_is_not_known_cannot_be_dialled", unknown),
    ("a_server_in_a_cell_is_dialled", dialled_inside),
    ("a_server_in_a_namespace_of_its_own", own_namespace),
    ("who_wrote_over_its_environment_is_a_member", overwritten),
    ("holders_are_named_with_their_execution", holders),
];

/// Opens the sockets its arguments name, prints them, answers every connection with one line, and
/// exits when its input ends; a line of input closes a socket.
const SERVER: &str = "import socket,sys,threading\n\
    held=[]\n\
    def serve(s):\n\
    \x20try:\n\
    \x20 while True:\n\
    \x20  c,_=s.accept(); c.sendall(b'hello\\n'); c.close()\n\
    \x20except OSError: pass\n\
    for word in sys.argv[1:]:\n\
    \x20kind,_,name=word.partition('=')\n\
    \x20if kind=='unix':\n\
    \x20 s=socket.socket(socket.AF_UNIX); s.bind(name.replace('@','\\0',1))\n\
    \x20elif kind=='udp':\n\
    \x20 s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('127.0.0.1',0)); held.append(s); continue\n\
    \x20elif kind=='bound':\n\
    \x20 s=socket.socket(); s.bind(('127.0.0.1',0)); held.append(s); continue\n\
    \x20else:\n\
    \x20 six=':' in kind\n\
    \x20 proto=262 if kind=='mptcp' else 0\n\
    \x20 try: s=socket.socket(socket.AF_INET6 if six else socket.AF_INET,socket.SOCK_STREAM,proto)\n\
    \x20 except OSError: continue\n\
    \x20 if six: s.setsockopt(socket.IPPROTO_IPV6,socket.IPV6_V6ONLY,1)\n\
    \x20 try: s.bind(('127.0.0.1' if proto else kind,int(name or 0)))\n\
    \x20 except OSError: continue\n\
    \x20s.listen(); held.append(s)\n\
    \x20if s.family!=socket.AF_UNIX: print('at',s.getsockname()[0],s.getsockname()[1],flush=True)\n\
    \x20threading.Thread(target=serve,args=(s,),daemon=True).start()\n\
    print('up',flush=True)\n\
    for line in sys.stdin:\n\
    \x20held[int(line)].shutdown(2); held[int(line)].close(); print('closed',flush=True)\n";

fn server(words: &[&str]) -> LaunchPlan {
    let mut plan = argv(&[&["/usr/bin/env", "python3", "-c", SERVER], words].concat());
    plan.io = LaunchIo::Piped;
    plan
}

/// Starts it and waits until it is up.
async fn up(fixture: &BackendFixture, plan: LaunchPlan) -> (SpawnHandle, ExecutionId) {
    let (id, dir) = (plan.id, fixture.dir(plan.id));
    let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
    wait_output(&mut handle, &dir, "up\n").await;
    (handle, id)
}

async fn down(handle: SpawnHandle) {
    let sent = handle.control.send(ControlCommand::CloseInput).await;
    sent.expect("it takes orders");
    wait_exit(handle).await;
}

/// The addresses it printed.
fn printed_addresses(fixture: &BackendFixture, id: ExecutionId) -> Vec<SocketAddr> {
    let out = output(&fixture.dir(id), StreamName::Stdout);
    let out = String::from_utf8_lossy(&out).into_owned();
    let lines = out.lines().filter_map(|line| line.strip_prefix("at "));
    let mut found: Vec<SocketAddr> = lines
        .filter_map(|line| {
            let (ip, port) = line.split_once(' ')?;
            Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?))
        })
        .collect();
    found.sort_by_key(SocketAddr::port);
    found
}

const PORTS: SnapshotRequest = SnapshotRequest {
    listeners: true,
    unix: false,
    foreground: false,
    disk: false,
};

async fn listeners(fixture: &BackendFixture, id: ExecutionId) -> Vec<TcpListenerInfo> {
    let seen = fixture.backend.snapshot(id, PORTS).await.expect("known");
    assert!(seen.unix.is_empty());
    seen.listeners
}

fn addresses(listeners: &[TcpListenerInfo]) -> Vec<SocketAddr> {
    listeners.iter().map(|it| it.address).collect()
}

/// Reads a greeting from a connection.
fn greeting(socket: OwnedFd) -> String {
    let mut stream = TcpStream::from(socket);
    stream.set_nonblocking(false).expect("set");
    stream.set_read_timeout(Some(LONG)).expect("set");
    let _closed_early = stream.write_all(b"hi\n");
    let mut text = String::new();
    let _reset_after = stream.read_to_string(&mut text);
    text
}

fn kinds() {
    for zygote in [this_executable(), ZygoteConfig::InProcess] {
        let fixture = BackendFixture::with(zygote);
        let words = [
            "127.0.0.1",
            "0.0.0.0",
            "::1",
            "::",
            "mptcp",
            "udp",
            "bound",
            "unix=@no",
        ];
        fixture.runtime.block_on(async {
            let (handle, id) = up(&fixture, server(&words)).await;
            let seen = listeners(&fixture, id).await;
            assert_eq!(addresses(&seen), printed_addresses(&fixture, id));
            assert!(seen.len() >= 2, "{seen:?}");
            down(handle).await;
            assert!(listeners(&fixture, id).await.is_empty());
        });
    }
}

fn unix_sockets() {
    let fixture = BackendFixture::new();
    let path = fixture.state.path().join("server.sock");
    let path = path.to_str().expect("text");
    let hidden = format!("@ostler-backend-{}", std::process::id());
    let words = [format!("unix={path}"), format!("unix={hidden}")];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fixture.runtime.block_on(async {
        let (handle, id) = up(&fixture, server(&words)).await;
        let what = SnapshotRequest {
            unix: true,
            ..SnapshotRequest::default()
        };
        let seen = fixture.backend.snapshot(id, what).await.expect("known");
        assert!(seen.listeners.is_empty());
        let names = seen.unix.iter().map(|it| it.path.to_string_lossy());
        // The kernel lists them in any command.
        let names: std::collections::BTreeSet<_> = names.collect();
        let wanted = [path, hidden.as_str()].map(std::borrow::Cow::from);
        assert_eq!(names, wanted.into());
        assert!(seen.unix.iter().all(|it| it.pid == seen.members[0].pid));
        down(handle).await;
    });
}

fn closed() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let (mut handle, id) = up(&fixture, server(&["127.0.0.1", "127.0.0.1"])).await;
        let before = listeners(&fixture, id).await;
        assert_eq!(before.len(), 2);
        let command = ControlCommand::Input(b"0\n".to_vec());
        handle.control.send(command).await.expect("sent");
        wait_output(&mut handle, &fixture.dir(id), "closed\n").await;
        let gone = async {
            loop {
                let now = listeners(&fixture, id).await;
                if now.len() == 1 {
                    return now;
                }
            }
        };
        let now = timeout(LONG, gone).await.expect("seen");
        assert!(before.contains(&now[0]));
        down(handle).await;
    });
}

fn dialled() {
    for zygote in [this_executable(), ZygoteConfig::InProcess] {
        let fixture = BackendFixture::with(zygote);
        fixture.runtime.block_on(async {
            let (handle, id) = up(&fixture, server(&["127.0.0.1", "::1"])).await;
            for address in printed_addresses(&fixture, id) {
                let socket = fixture
                    .backend
                    .connect(id, address)
                    .await
                    .expect("connected");
                assert_eq!(greeting(socket), "hello\n");
            }
            down(handle).await;
        });
    }
}

fn refused() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let (handle, id) = up(&fixture, server(&["127.0.0.1", "bound"])).await;
        let address = printed_addresses(&fixture, id)[0];
        let unused = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let unused_at = unused.local_addr().expect("bound");
        drop(unused);
        let dialled = fixture.backend.connect(id, unused_at).await;
        let kind = dialled.expect_err("nobody is there").kind();
        assert_eq!(kind, std::io::ErrorKind::ConnectionRefused);
        down(handle).await;
        let dialled = fixture.backend.connect(id, address).await;
        let kind = dialled.expect_err("it has ended").kind();
        assert_eq!(kind, std::io::ErrorKind::NotFound);
    });
}

fn unknown() {
    let fixture = BackendFixture::new();
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let dialled = fixture.backend.connect(ExecutionId::mint(), address);
    let kind = fixture
        .runtime
        .block_on(dialled)
        .expect_err("unknown")
        .kind();
    assert_eq!(kind, std::io::ErrorKind::NotFound);
}

fn dialled_inside() {
    for zygote in [this_executable(), ZygoteConfig::InProcess] {
        let Some(jailed) = JailFixture::with(zygote) else {
            continue;
        };
        let words = ["/usr/bin/env", "python3", "-c", SERVER];
        let mut plan = jailed.plan(&[&words[..], &["127.0.0.1=8080", "::1=8081"]].concat());
        plan.io = LaunchIo::Piped;
        let confinement = plan.sandbox.as_ref().expect("a sandbox");
        assert_eq!(confinement.network, NetworkAccess::None);
        let fixture = &jailed.fixture;
        fixture.runtime.block_on(async {
            let (handle, id) = up(fixture, plan).await;
            let seen = listeners(fixture, id).await;
            assert_eq!(addresses(&seen), printed_addresses(fixture, id));
            for address in printed_addresses(fixture, id) {
                let socket = fixture
                    .backend
                    .connect(id, address)
                    .await
                    .expect("connected");
                assert_eq!(greeting(socket), "hello\n");
            }
            let unused = SocketAddr::from(([127, 0, 0, 1], 9));
            let dialled = fixture.backend.connect(id, unused).await;
            let kind = dialled.expect_err("nobody is there").kind();
            assert_eq!(kind, std::io::ErrorKind::ConnectionRefused);
            // The tree holds none of the host's ports.
            let held = fixture.backend.port_holders(&[8080, 8081]).await;
            assert!(held.iter().all(|it| it.execution != Some(id)), "{held:?}");
            down(handle).await;
        });
    }
}

/// A command that makes namespaces of its own, at any level.
fn own_namespace() {
    let fixture = BackendFixture::new();
    let mut plan = server(&["127.0.0.1=8080"]);
    let enter = "ip link set lo up 2>/dev/null || python3 -c 'import fcntl,socket,struct; \
        s=socket.socket(); fcntl.ioctl(s,0x8914,struct.pack(\"16sh\",b\"lo\",0x49))'; exec \"$@\"";
    let words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "/bin/sh",
        "-c",
        enter,
        "sh",
    ];
    let words = words.map(ostler_model::ByteString::from);
    plan.argv.splice(1..1, words);
    let (id, dir) = (plan.id, fixture.dir(plan.id));
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        handle
            .control
            .send(ControlCommand::Watch(true))
            .await
            .expect("sent");
        loop {
            let received = timeout(LONG, handle.events.recv()).await.expect("in time");
            match received.map(|received| received.event) {
                // Namespaces of users may be forbidden here.
                Some(ostler_backend::ProcessEvent::Exited { .. }) | None => return,
                Some(_) => {}
            }
            if output(&dir, StreamName::Stdout).ends_with(b"up\n") {
                break;
            }
        }
        let seen = listeners(&fixture, id).await;
        let address = SocketAddr::from(([127, 0, 0, 1], 8080));
        assert_eq!(addresses(&seen), [address]);
        let socket = fixture
            .backend
            .connect(id, address)
            .await
            .expect("connected");
        assert_eq!(greeting(socket), "hello\n");
        down(handle).await;
    });
}

fn overwritten() {
    let fixture = BackendFixture::new();
    let mut plan = server(&["127.0.0.1"]);
    plan.argv.splice(
        1..1,
        ["-i", "PATH=/usr/bin:/bin"].map(ostler_model::ByteString::from),
    );
    fixture.runtime.block_on(async {
        let (handle, id) = up(&fixture, plan).await;
        let seen = listeners(&fixture, id).await;
        assert_eq!(addresses(&seen), printed_addresses(&fixture, id));
        let port = seen[0].address.port();
        let found = fixture.backend.port_holders(&[port]).await;
        assert_eq!(found[0].execution, Some(id), "by its shim");
        down(handle).await;
    });
}

fn holders() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let (handle, id) = up(&fixture, server(&["127.0.0.1"])).await;
        let address = printed_addresses(&fixture, id)[0];
        let own = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let own_at = own.local_addr().expect("bound");
        let ports = [address.port(), own_at.port()];
        let found = fixture.backend.port_holders(&ports).await;
        let theirs = found.iter().find(|it| it.address == address);
        let theirs = theirs.expect("named");
        assert_eq!(theirs.execution, Some(id));
        assert!(theirs.process.starts_with("python3"), "{theirs:?}");
        assert!(
            theirs.command.starts_with("python3 -c import"),
            "{theirs:?}"
        );
        assert!(theirs.command.chars().count() <= 200);
        let ours = found.iter().find(|it| it.address == own_at);
        let ours = ours.expect("named");
        assert_eq!((ours.pid, ours.execution), (Some(std::process::id()), None));
        assert_eq!(found.len(), 2);
        down(handle).await;
        drop(own);
        assert!(fixture.backend.port_holders(&ports).await.is_empty());
    });
}
