//! Large amounts of output.

use std::time::Instant;

use super::*;

/// A megabyte of lines as a build prints them.
fn megabyte() -> Vec<u8> {
    let lines = [
        "   Compiling serde_json v1.0.154 (/src/crates/serde_json)\n",
        "\x1b[32m[webpack]\x1b[39m asset main.4f2c.js 812 KiB [emitted] (name: main) 1 related asset\n",
        "127.0.0.1 - - [21/Nov/2026 12:00:01] \"GET /static/app.js HTTP/1.1\" 200 -\n",
        "2026-11-21T12:00:01.123Z INFO app::db connected pool_size=16 took=12ms\n",
    ];
    let mut bytes = Vec::new();
    for line in lines.iter().cycle() {
        if bytes.len() + line.len() > 1 << 20 {
            return bytes;
        }
        bytes.extend_from_slice(line.as_bytes());
    }
    bytes
}

/// Prints the cost of a megabyte with `--no-capture`; asserts only that it is no evidence.
#[test]
fn a_megabyte() {
    for ready in [false, true] {
        let mut world = World::new(Readiness::resume(&server(), None, ready));
        let bytes = megabyte();
        let began = Instant::now();
        for piece in bytes.chunks(64 * 1024) {
            world.feed(ReadinessInput::Output {
                stream: StreamName::Stdout,
                bytes: piece.to_vec(),
            });
        }
        println!(
            "{} bytes, ready: {ready}: {:?}",
            bytes.len(),
            began.elapsed()
        );
        assert_eq!(world.found, []);
    }
}
