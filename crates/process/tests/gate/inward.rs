//! Connections from outside to servers inside.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Instant;

use rustix::io::Errno;

use crate::support::{Answered, Case, Cell, PATIENCE, answered, said};

pub(crate) const CASES: &[Case] = &[
    ("a_connection_made_inside_is_handed_out", handed_out),
    ("a_port_of_the_host_leads_inside", forwarded),
    (
        "a_gate_without_rules_adds_nothing_to_the_network",
        nothing_added,
    ),
    ("a_server_that_does_not_accept_blocks_nobody", stuck),
];

/// An echo server inside; says its port.
struct Inside {
    child: Child,
    port: u16,
}

impl Inside {
    fn new(cell: &Cell, address: &str) -> Self {
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
        let mut child = cell
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
    let cell = Cell::new();
    let mut gate = cell.gate(&["web.test"]).expect("a gate");
    for address in ["127.0.0.1", "0.0.0.0", "::1"] {
        let server = Inside::new(&cell, address);
        gate.connect(server.port).expect("asked");
        let Answered::Connected(mut stream) = answered(&gate) else {
            panic!("{address}: not connected");
        };
        speak(&mut stream);
    }
    gate.connect(1).expect("asked");
    assert!(matches!(
        answered(&gate),
        Answered::Refused(Errno::CONNREFUSED)
    ));
}

fn forwarded() {
    let cell = Cell::new();
    let mut gate = cell.gate(&[]).expect("a gate");
    let server = Inside::new(&cell, "127.0.0.1");
    gate.forward(0, server.port).expect("asked");
    let Answered::Forwarding(port) = answered(&gate) else {
        panic!("not forwarding");
    };
    let mut streams: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).expect("open"))
        .collect();
    streams.iter_mut().for_each(speak);
    gate.forward(port, server.port).expect("asked");
    assert!(matches!(
        answered(&gate),
        Answered::Refused(Errno::ADDRINUSE)
    ));
    // Nobody inside: the connection ends.
    gate.forward(0, 1).expect("asked");
    let Answered::Forwarding(dead) = answered(&gate) else {
        panic!("not forwarding");
    };
    let mut stream = TcpStream::connect(("127.0.0.1", dead)).expect("open");
    assert!(!matches!(stream.read(&mut [0; 1]), Ok(1..)));
    // Closed again; what is there goes on.
    gate.unforward(port).expect("asked");
    let limit = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {
        assert!(Instant::now() < limit, "the port stays open");
    }
    speak(&mut streams[0]);
}

fn nothing_added() {
    let cell = Cell::new();
    let _gate = cell.gate(&[]).expect("a gate");
    let list = "ls /sys/class/net 2>/dev/null | grep gate; ip route; ip -br link | wc -l";
    assert_eq!(said(&cell.run("sh", &["-c", list])), "1");
}

fn stuck() {
    let cell = Cell::new();
    let mut gate = cell.gate(&[]).expect("a gate");
    let program = "import socket, sys
server = socket.socket()
server.bind(('127.0.0.1', 0))
server.listen(0)
fill = [socket.create_connection(server.getsockname()) for _ in range(1)]
print(server.getsockname()[1], flush=True)
sys.stdin.read()";
    let mut full = cell
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
    let server = Inside::new(&cell, "127.0.0.1");
    gate.connect(port).expect("asked");
    gate.connect(server.port).expect("asked");
    let first = answered(&gate);
    let Answered::Connected(mut stream) = first else {
        panic!("{first:?}");
    };
    speak(&mut stream);
    assert!(matches!(
        answered(&gate),
        Answered::Refused(Errno::TIMEDOUT)
    ));
    drop(full.stdin.take());
    drop(full.wait());
}
