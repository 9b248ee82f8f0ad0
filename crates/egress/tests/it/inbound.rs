//! Connections from outside to servers inside.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Instant;

use rustix::io::Errno;

use crate::support::{
    NetnsFixture, PATIENCE, ProxyOutcome, ProxyTestCase, stdout_text, wait_outcome,
};

pub(crate) const CASES: &[ProxyTestCase] = &[
    ("a_connection_made_inside_is_handed_out", handed_out),
    ("a_port_of_the_host_leads_inside", forwarded),
    (
        "a_gate_without_rules_adds_nothing_to_the_network",
        nothing_added,
    ),
    ("a_server_that_does_not_accept_blocks_nobody", stuck),
];

/// An echo server inside, and its port.
struct Inside {
    child: Child,
    port: u16,
}

impl Inside {
    fn new(jail: &NetnsFixture, address: &str) -> Self {
        let program = format!(
            "import socket, sys, threading
family = socket.AF_INET6 if ':' in '{address}' else socket.AF_INET
server = socket.socket(family)
server.bind(('{address}', 0))
server.listen()
print(server.getsockname()[1], flush=True)
def echo(peer):
    while data := peer.recv(65536):
        peer.sendall(data)
    peer.close()
while True:
    threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()"
        );
        let mut child = jail
            .command("/usr/bin/python3")
            .args(["-c", &program])
            .stdout(Stdio::piped())
            .spawn()
            .expect("nsenter runs");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line)
            .expect("it says its port");
        let port = line.trim().parse().expect("a port");
        Self { child, port }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn speak(stream: &mut TcpStream) {
    stream.write_all(b"hello").expect("written");
    let mut back = [0; 5];
    stream.read_exact(&mut back).expect("it comes back");
    assert_eq!(&back, b"hello");
}

fn handed_out() {
    let jail = NetnsFixture::new();
    let mut proxy = jail.start_proxy(&["web.test"]).expect("a gate");
    for address in ["127.0.0.1", "0.0.0.0", "::1"] {
        let server = Inside::new(&jail, address);
        proxy.request_connection(server.port).expect("asked");
        let ProxyOutcome::Connected(mut stream) = wait_outcome(&proxy) else {
            panic!("{address}: not connected");
        };
        speak(&mut stream);
    }
    proxy.request_connection(1).expect("asked");
    assert!(matches!(
        wait_outcome(&proxy),
        ProxyOutcome::Refused(Errno::CONNREFUSED)
    ));
}

fn forwarded() {
    let jail = NetnsFixture::new();
    let mut proxy = jail.start_proxy(&[]).expect("a gate");
    let server = Inside::new(&jail, "127.0.0.1");
    proxy.request_forward(0, server.port).expect("asked");
    let ProxyOutcome::Forwarding(port) = wait_outcome(&proxy) else {
        panic!("not forwarding");
    };
    let mut streams: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).expect("open"))
        .collect();
    streams.iter_mut().for_each(speak);
    proxy.request_forward(port, server.port).expect("asked");
    assert!(matches!(
        wait_outcome(&proxy),
        ProxyOutcome::Refused(Errno::ADDRINUSE)
    ));
    // Without a listener inside the connection ends.
    proxy.request_forward(0, 1).expect("asked");
    let ProxyOutcome::Forwarding(dead) = wait_outcome(&proxy) else {
        panic!("not forwarding");
    };
    let mut stream = TcpStream::connect(("127.0.0.1", dead)).expect("open");
    assert!(!matches!(stream.read(&mut [0; 1]), Ok(1..)));
    // Closed again; existing connections continue.
    proxy.remove_forward(port).expect("asked");
    let limit = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {
        assert!(Instant::now() < limit, "the port stays open");
    }
    speak(&mut streams[0]);
}

fn nothing_added() {
    let jail = NetnsFixture::new();
    let _gate = jail.start_proxy(&[]).expect("a gate");
    let list = "ls /sys/class/net 2>/dev/null | grep gate; ip route; ip -br link | wc -l";
    assert_eq!(stdout_text(&jail.run("sh", &["-c", list])), "1");
}

fn stuck() {
    let jail = NetnsFixture::new();
    let mut proxy = jail.start_proxy(&[]).expect("a gate");
    let program = "import socket, sys
server = socket.socket()
server.bind(('127.0.0.1', 0))
server.listen(0)
fill = [socket.create_connection(server.getsockname()) for _ in range(1)]
print(server.getsockname()[1], flush=True)
sys.stdin.read()";
    let mut full = jail
        .command("/usr/bin/python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("nsenter runs");
    let mut line = String::new();
    let stdout = full.stdout.as_mut().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a port");
    let port: u16 = line.trim().parse().expect("a port");
    let server = Inside::new(&jail, "127.0.0.1");
    proxy.request_connection(port).expect("asked");
    proxy.request_connection(server.port).expect("asked");
    let first = wait_outcome(&proxy);
    let ProxyOutcome::Connected(mut stream) = first else {
        panic!("{first:?}");
    };
    speak(&mut stream);
    assert!(matches!(
        wait_outcome(&proxy),
        ProxyOutcome::Refused(Errno::TIMEDOUT)
    ));
    drop(full.stdin.take());
    drop(full.wait());
}
