//! Programs inside that try to get out or to crash the egress proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::names::CLIENT;
use crate::support::{
    NetnsFixture, PRIVATE_V4, ProxyTestCase, UPSTREAM, serve_http, server, stdout_text,
};

pub(crate) const CASES: &[ProxyTestCase] = &[
    ("names_that_lead_inward_are_refused", inward),
    ("a_name_that_changes_its_mind_is_pinned", rebinding),
    ("garbage_leaves_the_name_server_standing", garbage),
    (
        "silent_connections_leave_the_name_server_standing",
        silent_names,
    ),
    ("a_flood_of_names_is_bounded", many_names),
    ("a_flood_of_connections_is_bounded", many_connections),
    (
        "a_resolver_that_does_not_answer_blocks_nobody",
        silent_resolver,
    ),
    ("nothing_but_tcp_goes_through", other_protocols),
    ("the_antechamber_has_no_other_door", no_other_door),
];

/// A server that counts its connections.
fn trap(address: impl Into<std::net::IpAddr>) -> (u16, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let port = server(address, move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    (port, count)
}

fn inward() {
    let (port, visits) = trap([0, 0, 0, 0]);
    let jail = NetnsFixture::new();
    let names = [
        "inward.test",
        "metadata.test",
        "private.test",
        "mapped.test",
    ];
    let rules = names.map(|name| format!("{name}:{port}"));
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let _gate = jail.start_proxy(&rules).expect("a gate");
    for name in names {
        let output = jail.run("curl", &["-sS", &format!("http://{name}:{port}/")]);
        assert!(
            matches!(output.status.code(), Some(7 | 52 | 55 | 56)),
            "{output:?}"
        );
        let (decision, reason) = jail.decision(name);
        assert_eq!(decision, "refused", "{name}: {reason}");
        assert!(
            reason.starts_with("leads to an address that is"),
            "{reason}"
        );
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    // The same address, once a rule names it, and only at that port.
    drop(jail);
    let jail = NetnsFixture::new();
    let rules = [
        format!("private.test:{port}"),
        format!("{PRIVATE_V4}:{port}"),
    ];
    let rules = [rules[0].as_str(), rules[1].as_str(), "private.test:1"];
    let _gate = jail.start_proxy(&rules).expect("a gate");
    let url = format!("http://private.test:{port}/");
    drop(jail.run("curl", &["-sS", &url]));
    assert_eq!(jail.decision("private.test").0, "allowed");
    drop(jail.run("curl", &["-sS", "http://private.test:1/"]));
    assert_eq!(jail.decision("private.test").0, "refused");
}

fn rebinding() {
    let port = serve_http(UPSTREAM, "the first answer");
    let jail = NetnsFixture::new();
    let rules = [format!("rebind.test:{port}"), format!("mixed.test:{port}")];
    let _gate = jail.start_proxy(&[&rules[0], &rules[1]]).expect("a gate");
    for _ in 0..3 {
        let url = format!("http://rebind.test:{port}/");
        assert_eq!(
            stdout_text(&jail.run("curl", &["-sS", &url])),
            "the first answer"
        );
    }
    // Of several addresses only allowed ones are dialled.
    let url = format!("http://mixed.test:{port}/");
    assert_eq!(
        stdout_text(&jail.run("curl", &["-sS", &url])),
        "the first answer"
    );
    let line = jail.log_entries("mixed.test").pop().expect("one");
    assert_eq!(line["address"], "127.77.0.1");
}

fn garbage() {
    let jail = NetnsFixture::new();
    let mut proxy = jail.start_proxy(&["web.test"]).expect("a gate");
    let program = format!(
        "{CLIENT}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('198.18.0.1', 53))
good = query('web.test', edns=True)
random.seed(1)
for turn in range(20000):
    if turn % 2:
        message = os.urandom(random.randrange(0, 600))
    else:
        message = bytearray(good)
        message[random.randrange(len(message))] = random.randrange(256)
        message = bytes(message[:random.randrange(len(message) + 1)])
    s.send(message)
for piece in (b'', b'\\0', b'\\xff\\xff', b'\\x10\\0' + os.urandom(4096), b'\\0\\0', b'\\0\\5abc'):
    t = socket.create_connection(('198.18.0.1', 53))
    t.send(piece)
    t.close()
for attempt in range(5):
    try:
        print(address(udp(good)).startswith('198.18.'))
        break
    except TimeoutError:
        pass"
    );
    assert_eq!(jail.python(&program), "True");
    proxy.request_counts().expect("it lives");
    let size = std::fs::metadata(jail.log_path()).expect("there").len();
    assert!(size < 3 << 20, "{size}");
}

fn silent_names() {
    let jail = NetnsFixture::new();
    let _gate = jail.start_proxy(&["web.test"]).expect("a gate");
    let program = format!(
        "{CLIENT}
held, closed = [], 0
for _ in range(200):
    try:
        held.append(socket.create_connection(('198.18.0.1', 53)))
    except ConnectionResetError:
        closed += 1
print(address(udp(query('web.test'))).startswith('198.18.'))
for s in held:
    s.settimeout(0.2)
    try:
        closed += s.recv(1) == b''
    except ConnectionResetError:
        closed += 1
    except TimeoutError:
        pass
assert closed >= 150, closed"
    );
    assert_eq!(jail.python(&program), "True");
}

fn many_names() {
    let port = serve_http(UPSTREAM, "still here");
    let jail = NetnsFixture::new();
    let rules = [format!("*.many.test:{port}"), format!("web.test:{port}")];
    let mut proxy = jail.start_proxy(&[&rules[0], &rules[1]]).expect("a gate");
    let program = format!(
        "{CLIENT}
first = address(udp(query('web.test')))
codes = [code(udp(query(f'n{{n}}.many.test'))) for n in range(4200)]
assert codes[:4000] == [0] * 4000 and codes[-1] == 2, codes[-1]
assert address(udp(query('web.test'))) == first
import urllib.request
print(urllib.request.urlopen('http://web.test:{port}/').read().decode())"
    );
    assert_eq!(jail.python(&program), "still here");
    proxy.request_counts().expect("it lives");
}

fn many_connections() {
    // Accepts connections and sends nothing, as long as the peer is there.
    let port = server(UPSTREAM, |mut stream| {
        drop(std::io::copy(&mut stream, &mut std::io::sink()));
    });
    let jail = NetnsFixture::new();
    let rules = [format!("web.test:{port}"), "other.test:9".to_owned()];
    let mut proxy = jail.start_proxy(&[&rules[0], &rules[1]]).expect("a gate");
    let program = format!(
        "{CLIENT}
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
at = (address(udp(query('web.test'))), {port})
held = []
for _ in range(900):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(at)
    held.append(s)
# Names are answered meanwhile.
assert address(udp(query('web.test'))) == at[0]
for s in held:
    s.close()
for _ in range(3000):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(at)
    s.close()
for _ in range(300):
    try:
        socket.create_connection((at[0], 9), 20).close()
    except ConnectionError:
        pass
s = socket.create_connection(at, 20)
s.send(b'x')
print('carried')"
    );
    assert_eq!(jail.python(&program), "carried");
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", proxy.pid()));
    if let Ok(descriptors) = descriptors {
        assert!(descriptors.count() < 2048);
    }
    proxy.request_counts().expect("it lives");
}

fn silent_resolver() {
    let port = serve_http(UPSTREAM, "not blocked");
    let jail = NetnsFixture::new();
    let rules = [format!("silent.test:{port}"), format!("web.test:{port}")];
    let _gate = jail.start_proxy(&[&rules[0], &rules[1]]).expect("a gate");
    let program = format!(
        "import socket, urllib.request
held = [socket.create_connection(('silent.test', {port})) for _ in range(40)]
print(urllib.request.urlopen('http://web.test:{port}/', timeout=5).read().decode())"
    );
    assert_eq!(jail.python(&program), "not blocked");
}

fn other_protocols() {
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&["web.test", &format!("{PRIVATE_V4}:443")])
        .expect("a gate");
    let received = std::net::UdpSocket::bind((PRIVATE_V4, 443)).expect("bound");
    received.set_nonblocking(true).expect("set");
    let program = format!(
        "{CLIENT}
fake = address(udp(query('web.test')))
for at in ((fake, 443), ('{PRIVATE_V4}', 443), ('198.18.0.1', 443), ('198.19.0.1', 443)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    s.connect(at)
    s.send(b'hello')
    try:
        print(at, s.recv(9))
    except ConnectionRefusedError:
        pass
# An inside root may make packets of its own; commands of ours may not even that.
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.settimeout(0.5)
echo = bytes([8, 0, 0xf7, 0xff, 0, 0, 0, 0])
for at in (fake, '{PRIVATE_V4}'):
    s.sendto(echo, (at, 0))
    try:
        while True:
            answer = s.recv(999)
            # An echo of our own, or what the UDP above came to.
            assert answer[20] != 0, answer
    except TimeoutError:
        pass
print('nothing')"
    );
    assert_eq!(jail.python(&program), "nothing");
    assert!(received.recv(&mut [0; 16]).is_err());
}

fn no_other_door() {
    let (port, visits) = trap([0, 0, 0, 0]);
    let jail = NetnsFixture::new();
    let _gate = jail.start_proxy(&["web.test:8080"]).expect("a gate");
    let open = "
import socket
for at in ('198.18.0.1', '198.18.0.2', '198.19.0.1', '198.18.1.0'):
    for port in list(range(1, 1200)) + list(range(8000, 8100)):
        s = socket.socket()
        if s.connect_ex((at, port)) == 0:
            print(at, port)
        s.close()";
    let open = jail.python(open);
    let doors = "198.18.0.1 53\n198.18.0.1 8080\n198.18.0.2 53\n198.18.0.2 8080\n\
                 198.19.0.1 53\n198.19.0.1 8080\n198.18.1.0 53\n198.18.1.0 8080";
    assert_eq!(open, doors);
    // Root inside that adds routes of its own gets no further than the proxy namespace.
    let routes = "ip route add default via 198.19.0.1 && ip -6 route add default dev gate0";
    stdout_text(&jail.run("sh", &["-c", routes]));
    let program = format!(
        "import socket
for at in ('{PRIVATE_V4}', '10.99.0.1', '127.77.0.1', '198.19.0.1', '198.19.0.2', '192.0.2.1'):
    s = socket.socket()
    s.settimeout(2)
    try:
        s.connect((at, {port}))
        print(at, s.recv(9))
    except OSError:
        pass
print('no further')"
    );
    assert_eq!(jail.python(&program), "no further");
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}
