//! The cost of the egress proxy: bytes per second and connections per second through it, compared
//! with plain loopback, and its start time.
//!
//! `cargo run --release -p ostler-bench --bin egress_proxy`. Prints one JSON object. Everything runs
//! in separate network namespaces; needs `unshare` and `nsenter`.

#![expect(clippy::print_stdout, reason = "a program that measures")]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ostler_egress::{
    EGRESS_ARGUMENT, EgressClient, EgressConfig, Resolve, ResolveFuture, Upstream,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

const UPSTREAM: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 1);
/// The first address the egress proxy gives to a name.
const FAKE: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 0);
const BYTES: u64 = 2 << 30;
const CONNECTIONS: u32 = 3_000;
const STARTS: usize = 20;
const PIECE_BYTES: usize = 256 * 1024;
/// The argument that makes this program the client, inside.
const CLIENT: &str = "client";

#[derive(Debug)]
struct Here;

impl Resolve for Here {
    fn resolve(&self, _: &str) -> ResolveFuture {
        Box::pin(std::future::ready(Ok(vec![UPSTREAM.into()])))
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [EGRESS_ARGUMENT] => ostler_egress::egress_main_with(Upstream {
            resolver: Box::new(Here),
            allow_special: |address| address == IpAddr::V4(UPSTREAM),
        }),
        [CLIENT, bytes, calls] => {
            let at = |word: &str| word.parse().expect("an address");
            println!("{}", client(at(bytes), at(calls)));
        }
        _ => measure(),
    }
}

/// Serves as many bytes as a client requests, as fast as it reads them.
fn sink_and_source() -> u16 {
    serve(|mut stream| {
        let piece = vec![7; PIECE_BYTES];
        while stream.write_all(&piece).is_ok() {}
    })
}

/// Replies to one byte with one byte.
fn call() -> u16 {
    serve(|mut stream| {
        let mut byte = [0];
        drop(stream.read_exact(&mut byte));
        drop(stream.write_all(&byte));
    })
}

fn serve(each: fn(TcpStream)) -> u16 {
    let listener = TcpListener::bind((UPSTREAM, 0)).expect("bound");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || each(stream));
        }
    });
    port
}

/// Bytes per second down, connections (with a byte each way) per second.
fn client(bytes: SocketAddr, calls: SocketAddr) -> serde_json::Value {
    let mut stream = TcpStream::connect(bytes).expect("connected");
    let mut piece = vec![0; PIECE_BYTES];
    let (mut got, began) = (0, Instant::now());
    while got < BYTES {
        let count = stream.read(&mut piece).expect("read");
        assert!(count > 0, "cut off");
        got += u64::try_from(count).expect("small");
    }
    let took = began.elapsed();
    drop(stream);
    let mut each: Vec<Duration> = (0..CONNECTIONS)
        .map(|_| {
            let began = Instant::now();
            let mut stream = TcpStream::connect(calls).expect("connected");
            stream.write_all(b"x").expect("sent");
            stream.read_exact(&mut [0]).expect("answered");
            began.elapsed()
        })
        .collect();
    let total: Duration = each.iter().sum();
    each.sort();
    serde_json::json!({
        "gigabytes_per_s": f64::from(u32::try_from(got >> 20).expect("small")) / 1024.0 / took.as_secs_f64(),
        "connections_per_s": f64::from(CONNECTIONS) / total.as_secs_f64(),
        "connection_us_median": each[each.len() / 2].as_micros(),
        "connection_us_p99": each[each.len() * 99 / 100].as_micros(),
    })
}

fn measure() {
    let (bytes, calls) = (sink_and_source(), call());
    let direct = client((UPSTREAM, bytes).into(), (UPSTREAM, calls).into());
    let mut init_child = Command::new("unshare")
        .args(["-Urn", "sh", "-c", "echo ready; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare runs");
    let out = init_child.stdout.as_mut().expect("piped");
    out.read_exact(&mut [0; 6]).expect("ready");
    let pid = Pid::from_raw(i32::try_from(init_child.id()).expect("small")).expect("a pid");
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).expect("alive");
    let rules = [format!("web.test:{bytes}"), format!("web.test:{calls}")];
    let hosts = rules.map(|rule| rule.parse().expect("a rule"));
    let start = || {
        let began = Instant::now();
        let proxy = EgressClient::start(&EgressConfig {
            executable: Path::new("/proc/self/exe"),
            init: pidfd.as_fd(),
            namespaces: None,
            hosts: &hosts,
            log: None,
        });
        (proxy.expect("a gate"), began.elapsed())
    };
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let (proxy, took) = start();
        proxy.shutdown();
        starts.push(took.as_micros());
    }
    starts.sort_unstable();
    let (proxy, _) = start();
    let inside = |program: &str, arguments: &[&str]| {
        let output = Command::new("nsenter")
            .args(["-t", &pid.as_raw_nonzero().to_string(), "-U", "-n"])
            .args(["--preserve-credentials", "--", program])
            .args(arguments)
            .stderr(Stdio::inherit())
            .output();
        output.expect("nsenter runs").stdout
    };
    // One query, so that the name is assigned its address.
    inside("python3", &["-c", ASK]);
    let own = std::env::current_exe().expect("a path");
    let (to_bytes, to_calls) = (format!("{FAKE}:{bytes}"), format!("{FAKE}:{calls}"));
    let through = inside(
        own.to_str().expect("a plain path"),
        &[CLIENT, &to_bytes, &to_calls],
    );
    let through: serde_json::Value = serde_json::from_slice(&through).expect("what it measured");
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid()));
    let resident = status.unwrap_or_default();
    let resident = resident.lines().find(|line| line.starts_with("VmRSS"));
    let result = serde_json::json!({
        "direct": direct,
        "through_the_gate": through,
        "start_us_median": starts[starts.len() / 2],
        "gate_resident": resident.map(|line| line.split_ascii_whitespace().skip(1).collect::<Vec<_>>().join(" ")),
    });
    println!("{result:#}");
    proxy.shutdown();
    drop(init_child.stdin.take());
    drop(init_child.wait());
}

const ASK: &str = r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('198.18.0.1', 53))
s.send(b'\0\1\1\0\0\1\0\0\0\0\0\0\3web\4test\0\0\1\0\1')
s.recv(512)
";
