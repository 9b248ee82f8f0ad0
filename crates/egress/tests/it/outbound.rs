//! Which destinations are reached, and which are not.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::support::{
    NetnsFixture, PRIVATE_V4, PRIVATE_V6, PUBLIC_V4, ProxyTestCase, UPSTREAM, serve_echo,
    serve_http, server, stdout_text,
};

pub(crate) const CASES: &[ProxyTestCase] = &[
    (
        "an_allowed_name_is_reached_by_a_program_without_proxy",
        allowed,
    ),
    (
        "another_name_fails_at_once_with_a_clear_message",
        other_name,
    ),
    ("another_port_is_refused_at_once", other_port),
    ("another_address_is_unreachable_at_once", other_address),
    ("an_address_that_a_rule_names_is_reached", literal),
    ("a_network_that_a_rule_names_is_reached", network),
    (
        "a_rule_as_wide_as_the_world_reaches_no_private_address",
        wide,
    ),
    ("a_server_inside_takes_the_port_of_a_rule", own_ports),
    ("half_closed_connections_go_on", half_closed),
    ("much_goes_through_unchanged", much),
    ("a_reset_outside_is_a_reset_inside", resets),
    ("a_dead_address_does_not_stand_in_the_way", dead),
    ("what_happened_is_written_down", logged),
    ("the_gate_ends_with_its_shim_and_with_its_warden", ends),
    ("setting_up_is_quick", quick),
];

fn allowed() {
    let port = serve_http(UPSTREAM, "hello from outside");
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("web.test:{port}")])
        .expect("a gate");
    let url = format!("http://WEB.test:{port}/");
    let began = Instant::now();
    let text = stdout_text(&jail.run("curl", &["-sS", "--noproxy", "*", &url]));
    assert_eq!(text, "hello from outside");
    assert!(
        began.elapsed() < Duration::from_millis(900),
        "{:?}",
        began.elapsed()
    );
}

fn other_name() {
    let jail = NetnsFixture::new();
    let _gate = jail.start_proxy(&["web.test"]).expect("a gate");
    for name in [
        "evil.test",
        "web.test.evil.test",
        "sub.web.test",
        "xweb.test",
    ] {
        let began = Instant::now();
        let output = jail.run("curl", &["-sS", &format!("http://{name}/")]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(6), "{message}");
        assert!(message.contains("Could not resolve host"), "{message}");
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
        let expected = ("refused".to_owned(), "not in the allow list".to_owned());
        assert_eq!(jail.decision(name), expected);
    }
}

fn other_port() {
    let port = serve_http(UPSTREAM, "not for you");
    let jail = NetnsFixture::new();
    let rules = [format!("web.test:{port}"), "api.test:8081".to_owned()];
    let proxy = jail.start_proxy(&[&rules[0], &rules[1]]).expect("a gate");
    // A port of no rule, and one of another name's rule.
    for port in [8080, 8081] {
        let url = format!("http://web.test:{port}/");
        let began = Instant::now();
        let output = jail.run("curl", &["-sS", &url]);
        assert!(
            matches!(output.status.code(), Some(7 | 52 | 55 | 56)),
            "{output:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(2));
    }
    let expected = "this port is not in the allow list";
    assert_eq!(jail.decision("web.test").1, expected);
    proxy.shutdown();
}

fn other_address() {
    let jail = NetnsFixture::new();
    let _gate = jail.start_proxy(&["web.test"]).expect("a gate");
    let program = format!(
        "import socket, time
for family, address in ((2, '{PRIVATE_V4}'), (2, '192.0.2.1'), (2, '198.51.100.8'), (10, '2001:db8::1')):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        began = time.time()
        try:
            socket.socket(family, kind).connect((address, 80))
            print('connected', address)
        except OSError as error:
            assert error.errno == 101, error
        assert time.time() - began < 1
print('unreachable')"
    );
    assert_eq!(jail.python(&program), "unreachable");
}

fn literal() {
    let (four, six) = (
        serve_http(ip(PRIVATE_V4), "four"),
        serve_http(ip(PRIVATE_V6), "six"),
    );
    let jail = NetnsFixture::new();
    let rules = [
        format!("{PRIVATE_V4}:{four}"),
        format!("[{PRIVATE_V6}]:{six}"),
    ];
    let _gate = jail.start_proxy(&[&rules[0], &rules[1]]).expect("a gate");
    for (url, text) in [
        (format!("http://{PRIVATE_V4}:{four}/"), "four"),
        (format!("http://[{PRIVATE_V6}]:{six}/"), "six"),
    ] {
        assert_eq!(stdout_text(&jail.run("curl", &["-sS", &url])), text);
    }
    // The rule's port in the other address family.
    let output = jail.run("curl", &["-sS", &format!("http://{PRIVATE_V4}:{six}/")]);
    assert!(!output.status.success());
}

fn ip(text: &str) -> std::net::IpAddr {
    text.parse().expect("an address")
}

fn network() {
    let port = serve_http(ip(PUBLIC_V4), "from a network");
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("10.99.0.0/24:{port}")])
        .expect("a gate");
    let url = format!("http://{PUBLIC_V4}:{port}/");
    assert_eq!(
        stdout_text(&jail.run("curl", &["-sS", &url])),
        "from a network"
    );
    let beside = jail.run("curl", &["-sS", &format!("http://10.99.1.1:{port}/")]);
    assert_eq!(beside.status.code(), Some(7));
}

fn wide() {
    let port = server(ip(PRIVATE_V4), |mut stream| drop(stream.write_all(b"no")));
    let six = server(ip(PRIVATE_V6), |mut stream| drop(stream.write_all(b"no")));
    let jail = NetnsFixture::new();
    let rules = [format!("0.0.0.0/0:{port}"), format!("[::]/0:{six}")];
    let rules = [rules[0].as_str(), rules[1].as_str(), "10.0.0.0/8:1"];
    let _gate = jail.start_proxy(&rules).expect("a gate");
    let reached = jail.run("curl", &["-sS", &format!("http://{PRIVATE_V4}:{port}/")]);
    assert!(!reached.status.success(), "{reached:?}");
    assert!(jail.decision(PRIVATE_V4).1.contains("private"));
    let reached = jail.run("curl", &["-sS", &format!("http://[{PRIVATE_V6}]:{six}/")]);
    assert!(!reached.status.success(), "{reached:?}");
    assert!(jail.decision(PRIVATE_V6).1.contains("private"));
    // A network that names the range, but not this machine's own address in it.
    drop(jail);
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("10.98.0.0/16:{port}")])
        .expect("a gate");
    let reached = jail.run("curl", &["-sS", &format!("http://{PRIVATE_V4}:{port}/")]);
    assert!(!reached.status.success(), "{reached:?}");
    assert!(jail.decision(PRIVATE_V4).1.contains("this machine's own"));
}

fn own_ports() {
    let port = serve_http(UPSTREAM, "outside");
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("web.test:{port}")])
        .expect("a gate");
    let program = format!(
        "import socket, urllib.request
for family, address in ((2, '0.0.0.0'), (10, '::')):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, {port}))
    server.listen()
    client = socket.create_connection(('localhost' if family == 10 else '127.0.0.1', {port}))
    server.accept()[0].send(b'inside')
    assert client.recv(9) == b'inside'
    print(urllib.request.urlopen('http://web.test:{port}/').read().decode())
    server.close()"
    );
    assert_eq!(jail.python(&program), "outside\noutside");
}

fn half_closed() {
    let port = server(UPSTREAM, |mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("until its end");
        drop(write!(stream, "got {}", all.len()));
    });
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("sum.test:{port}")])
        .expect("a gate");
    let program = format!(
        "import socket
s = socket.create_connection(('sum.test', {port}))
s.sendall(b'x' * 1000)
s.shutdown(socket.SHUT_WR)
print(s.makefile().read())"
    );
    assert_eq!(jail.python(&program), "got 1000");
    // The other way round: the server ends first and still reads.
    let (sender, receiver) = std::sync::mpsc::channel();
    let port = server(UPSTREAM, move |mut stream| {
        stream.write_all(b"bye").expect("written");
        stream.shutdown(Shutdown::Write).expect("shut");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("until its end");
        sender.send(all.len()).expect("receiver");
    });
    let _gate = {
        drop(jail);
        let jail = NetnsFixture::new();
        let proxy = jail
            .start_proxy(&[&format!("sum.test:{port}")])
            .expect("a gate");
        let program = format!(
            "import socket
s = socket.create_connection(('sum.test', {port}))
print(s.makefile().read())
s.sendall(b'y' * 5000)
s.close()"
        );
        assert_eq!(jail.python(&program), "bye");
        (proxy, jail)
    };
    assert_eq!(receiver.recv_timeout(crate::support::PATIENCE), Ok(5000));
}

fn much() {
    let port = serve_echo(UPSTREAM);
    let jail = NetnsFixture::new();
    let mut proxy = jail
        .start_proxy(&[&format!("echo.test:{port}")])
        .expect("a gate");
    let program = format!(
        "import hashlib, os, socket, threading
s = socket.create_connection(('echo.test', {port}))
data = os.urandom(1 << 20) * 32
def send():
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
got = hashlib.sha256()
while piece := s.recv(1 << 16):
    got.update(piece)
print(got.hexdigest() == hashlib.sha256(data).hexdigest())"
    );
    assert_eq!(jail.python(&program), "True");
    loop {
        proxy.request_counts().expect("asked");
        if let crate::support::ProxyOutcome::Counted(counts) = crate::support::wait_outcome(&proxy)
            && counts.bytes_in == 32 << 20
        {
            assert_eq!(counts.bytes_out, 32 << 20);
            assert_eq!(counts.connections, 1);
            break;
        }
    }
}

fn resets() {
    let port = server(UPSTREAM, |mut stream| {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("one byte");
        let linger = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&stream, linger).expect("set");
    });
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("rude.test:{port}"), "rude.test:1"])
        .expect("a gate");
    let program = format!(
        "import socket
for port in ({port}, 1):
    try:
        s = socket.create_connection(('rude.test', port), timeout=5)
        s.send(b'x')
        print(s.recv(9))
    except ConnectionError as error:
        print(type(error).__name__)"
    );
    let said = jail.python(&program);
    assert!(said.lines().all(|line| line.ends_with("Error")), "{said}");
    let (decision, reason) = jail.decision("rude.test");
    assert_eq!(decision, "failed");
    assert!(reason.contains("refused"), "{reason}");
}

fn dead() {
    let port = serve_http(UPSTREAM, "alive");
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("dead.test:{port}"), "missing.test"])
        .expect("a gate");
    let url = format!("http://dead.test:{port}/");
    assert_eq!(stdout_text(&jail.run("curl", &["-sS", &url])), "alive");
    let began = Instant::now();
    let output = jail.run("curl", &["-sS", "http://missing.test/"]);
    assert!(!output.status.success());
    assert!(began.elapsed() < Duration::from_secs(2));
    let expected = (
        "failed".to_owned(),
        "the name is not found outside".to_owned(),
    );
    assert_eq!(jail.decision("missing.test"), expected);
}

fn logged() {
    let port = serve_http(UPSTREAM, "ok");
    let jail = NetnsFixture::new();
    let proxy = jail
        .start_proxy(&[&format!("web.test:{port}")])
        .expect("a gate");
    let url = format!("http://web.test:{port}/");
    assert_eq!(stdout_text(&jail.run("curl", &["-sS", &url])), "ok");
    let line = jail.log_entries("web.test").pop().expect("one");
    assert_eq!(line["port"], port);
    assert_eq!(line["address"], "127.77.0.1");
    assert_eq!(line["decision"], "allowed");
    assert!(
        line["at"].as_str().is_some_and(|at| at.ends_with('Z')),
        "{line}"
    );
    proxy.shutdown();
    let text = std::fs::read_to_string(jail.log_path()).expect("there");
    let last: serde_json::Value =
        serde_json::from_str(text.lines().last().expect("a summary")).expect("JSON");
    assert_eq!(last["summary"]["connections"], 1, "{text}");
}

fn ends() {
    let jail = NetnsFixture::new();
    let proxy = jail.start_proxy(&["web.test"]).expect("a gate");
    let children = format!("/proc/{0}/task/{0}/children", proxy.pid());
    let helper = std::fs::read_to_string(&children).expect("it lives");
    let helper: i32 = helper.trim().parse().expect("one child");
    let helper = rustix::process::Pid::from_raw(helper).expect("a pid");
    let helper = rustix::process::pidfd_open(helper, rustix::process::PidfdFlags::empty());
    let helper = helper.expect("alive");
    let name = std::fs::read_to_string(format!("/proc/{}/comm", proxy.pid()));
    assert_eq!(name.expect("it lives").trim(), "ostler-gate");
    proxy.shutdown();
    assert!(crate::support::readable(std::os::fd::AsFd::as_fd(&helper)));
    let proxy = jail.start_proxy(&[]).expect("another gate");
    drop(jail);
    assert!(crate::support::readable(proxy.pidfd()));
    proxy.shutdown();
}

fn quick() {
    let jail = NetnsFixture::new();
    let began = Instant::now();
    let proxy = jail
        .start_proxy(&["web.test", "10.0.0.0/8:5432"])
        .expect("a gate");
    let took = began.elapsed();
    proxy.shutdown();
    assert!(took < Duration::from_secs(2), "{took:?}");
    // Other connections of the same jail are not blocked.
    for _ in 0..3 {
        jail.start_proxy(&["web.test"])
            .expect("another gate")
            .shutdown();
    }
}
