//! Real programs, none of which is configured for the egress proxy.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{NetnsFixture, ProxyTestCase, UPSTREAM, serve_http, stdout_text};

pub(crate) const CASES: &[ProxyTestCase] = &[
    ("python_and_wget", python_and_wget),
    ("node", node),
    ("git_over_http", git),
    ("a_static_program", static_program),
    ("package_managers_give_up_soon", package_managers),
];

/// Whether this machine has a program.
fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|output| output.status.success())
}

fn python_and_wget() {
    let port = serve_http(UPSTREAM, "hello");
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("*.web.test:{port}")])
        .expect("a gate");
    let url = format!("http://www.web.test:{port}/");
    let program = format!("import urllib.request; print(urllib.request.urlopen('{url}').read())");
    assert_eq!(jail.python(&program), "b'hello'");
    if has("wget") {
        assert_eq!(stdout_text(&jail.run("wget", &["-qO-", &url])), "hello");
    }
}

fn node() {
    if !has("node") {
        return;
    }
    let port = serve_http(UPSTREAM, "hello");
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("web.test:{port}")])
        .expect("a gate");
    let program = format!(
        "fetch('http://web.test:{port}/').then(it => it.text()).then(console.log)
          .then(() => fetch('http://evil.test/'))
          .catch(error => console.log(error.cause.code))"
    );
    let began = Instant::now();
    assert_eq!(
        stdout_text(&jail.run("node", &["-e", &program])),
        "hello\nENOTFOUND"
    );
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}

fn git() {
    if !has("git") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let make = "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q \
                --allow-empty -m one && git update-server-info && git rev-parse HEAD";
    let made = Command::new("sh")
        .args(["-c", make])
        .current_dir(scratch.path())
        .output();
    let head = stdout_text(&made.expect("git runs"));
    let serve = "import http.server
server = http.server.ThreadingHTTPServer(('127.77.0.1', 0), http.server.SimpleHTTPRequestHandler)
print(server.server_port, flush=True)
server.serve_forever()";
    let mut server = Command::new("/usr/bin/python3")
        .args(["-c", serve])
        .current_dir(scratch.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("python runs");
    let mut line = String::new();
    let stdout = server.stdout.as_mut().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a port");
    let port = line.trim();
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&[&format!("git.test:{port}")])
        .expect("a gate");
    let url = format!("http://git.test:{port}/r/.git");
    let listed = stdout_text(&jail.run("git", &["ls-remote", &url]));
    drop(server.kill());
    drop(server.wait());
    assert!(listed.contains(&head), "{listed}");
}

/// Queries the name server itself and connects, statically linked: no proxy, no library.
const STATIC_PROGRAM: &str = r#"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    unsigned char q[] = "\0\1\1\0\0\1\0\0\0\0\0\0\3web\4test\0\0\1\0\1", a[512];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53)};
    inet_pton(AF_INET, "198.18.0.1", &at.sin_addr);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    sendto(s, q, sizeof q - 1, 0, (void *)&at, sizeof at);
    int n = recv(s, a, sizeof a, 0);
    memcpy(&at.sin_addr, a + n - 4, 4);
    at.sin_port = htons(atoi(argv[1]));
    s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (void *)&at, sizeof at)) return 1;
    dprintf(s, "GET / HTTP/1.0\r\n\r\n");
    while ((n = read(s, a, sizeof a)) > 0) write(1, a, n);
    return 0;
}
"#;

fn static_program() {
    if !has("gcc") {
        return;
    }
    let port = serve_http(UPSTREAM, "hello");
    let jail = NetnsFixture::new();
    let source = jail.dir.path().join("s.c");
    std::fs::write(&source, STATIC_PROGRAM).expect("written");
    let program = jail.dir.path().join("s");
    let compiled = Command::new("gcc")
        .args(["-static", "-w", "-o"])
        .arg(&program)
        .arg(&source)
        .output();
    stdout_text(&compiled.expect("gcc runs"));
    let _gate = jail
        .start_proxy(&[&format!("web.test:{port}")])
        .expect("a gate");
    let program = program.to_str().expect("a plain path");
    let text = stdout_text(&jail.run(program, &[&port.to_string()]));
    assert!(text.ends_with("hello"), "{text}");
}

fn package_managers() {
    let jail = NetnsFixture::new();
    let _gate = jail.start_proxy(&["web.test"]).expect("a gate");
    let index = "http://packages.test/simple";
    for (program, arguments) in [
        (
            "pip",
            vec![
                "download",
                "--no-cache-dir",
                "--disable-pip-version-check",
                "-q",
                "-i",
                index,
                "--trusted-host=packages.test",
                "nothing",
            ],
        ),
        (
            "npm",
            vec![
                "view",
                "--fetch-retries=0",
                "--registry=http://packages.test/",
                "nothing",
            ],
        ),
        ("git", vec!["ls-remote", "http://packages.test/r"]),
    ] {
        if !has(program) {
            continue;
        }
        let began = Instant::now();
        let output = jail.run(program, &arguments);
        assert!(!output.status.success(), "{output:?}");
        assert!(
            began.elapsed() < Duration::from_secs(40),
            "{program}: {:?}",
            began.elapsed()
        );
        assert_eq!(jail.decision("packages.test").0, "refused");
    }
}
