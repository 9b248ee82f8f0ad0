use super::LineFailure::{Dead, Ended, Error, Fatal, InUse, Moved};
use super::*;

fn read(line: &str) -> LineMeaning {
    LogPatterns::new(&ReadyRule::default()).analyze(line)
}

/// Lines as printed by real programs, with their classification.
const FAILURES: &[(&str, LineFailure)] = &[
    (
        "[nodemon] app crashed - waiting for file changes before starting...",
        Dead,
    ),
    ("Failed running 'server.js'", Dead),
    (
        "[api] Failed running 'server.js'. Waiting for file changes before restarting...",
        Dead,
    ),
    (
        "ERROR:    Error loading ASGI app. Could not import module \"main\".",
        Dead,
    ),
    (
        "gunicorn.errors.HaltServer: <HaltServer 'Worker failed to boot.' 3>",
        Dead,
    ),
    ("Exception in thread django-main-thread:", Dead),
    (
        "[nodemon] clean exit - waiting for changes before restart",
        Ended,
    ),
    (
        "Error: listen EADDRINUSE: address already in use :::3000",
        InUse,
    ),
    ("OSError: [Errno 98] Address already in use", InUse),
    (
        "[Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use",
        InUse,
    ),
    ("Error: That port is already in use.", InUse),
    ("Error: Port \"27777\" could not be used", InUse),
    ("portend.Timeout: Port 20325 not free on 127.0.0.1.", InUse),
    ("Could not listen on port 21093, server 127.0.0.1.", InUse),
    ("listen tcp :8080: bind: address already in use", InUse),
    (
        "Os { code: 98, kind: AddrInUse, message: \"Address already in use\" }",
        InUse,
    ),
    (
        "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)",
        InUse,
    ),
    (
        "Port 4200 is already in use. Use '--port' to specify a different port.",
        InUse,
    ),
    ("[ERROR] Connection in use: ('127.0.0.1', 8000)", InUse),
    ("Port 8501 is not available", InUse),
    ("Something is already running on port 3000.", InUse),
    (
        "Something is already running on port 3000. Would you like to run the app on another port instead? (Y/n)",
        InUse,
    ),
    (
        "Web server failed to start. Port 8080 was already in use.",
        InUse,
    ),
    (
        "Bind for 0.0.0.0:5432 failed: port is already allocated",
        InUse,
    ),
    ("Port 5173 is in use, trying another one...", Moved),
    (
        "⚠ Port 3000 is in use by process 4312, using available port 3001 instead.",
        Moved,
    ),
    (
        "The port 8888 is already in use, trying another port.",
        Moved,
    ),
    (
        "port 1313 already in use, attempting to use an available port",
        Moved,
    ),
    (
        "Port 1234 could not be used, so parcel is using 40713 instead",
        Moved,
    ),
    (
        "Starting inspector on 127.0.0.1:9229 failed: address already in use",
        Moved,
    ),
    (
        "WebSocket server error: Port 24678 is already in use",
        Moved,
    ),
    ("Traceback (most recent call last):", Fatal),
    ("Error: Cannot find module './app'", Fatal),
    ("TypeError: undefined is not a function", Fatal),
    ("thread 'main' (12) panicked at src/main.rs:3:5:", Fatal),
    ("sh: 1: vite: not found", Fatal),
    ("ERROR in ./src/index.js", Error),
    ("[12:00:01] [webpack] error: x", Error),
    ("2026-11-21 12:00:01,123 ERROR: x", Error),
    ("ERROR", Error),
];

#[test]
fn failures_in_the_words_of_real_programs() {
    for (line, failure) in FAILURES {
        assert_eq!(read(line).failure, Some(*failure), "{line}");
    }
}

#[test]
fn what_is_no_failure() {
    for line in [
        "[12:00:01] Found 0 errors. Watching for file changes.",
        "0 errors, watching for file changes",
        "webpack 5.9 compiled with 0 errors",
        "127.0.0.1 - - [21/Nov/2026 12:00:01] \"GET /error HTTP/1.1\" 200 -",
        "GET /search?q=address+already+in+use 404 3ms",
        "GET /api/failed 500 in 12ms",
        "   Compiling thiserror v2.0.21",
        "   Compiling error-chain v0.12.4",
        "error-handling is on",
        "Errors: 0",
        "Listening on port 3000",
        "port 3000 is now open",
        "registered error handler",
        "  ✓ Ready in 812ms",
    ] {
        assert_eq!(read(line).failure, None, "{line}");
    }
}

#[test]
fn a_failure_is_never_ready() {
    // A plausible pattern finds `ready in` in `alREADY IN use`.
    let rule = ReadyRule {
        ready: vec!["(?i)Local:.*http://localhost|ready in|compiled successfully".into()],
        fail: vec!["^boom".into(), "(not valid".into()],
        ..ReadyRule::default()
    };
    let expressions = LogPatterns::new(&rule);
    for line in [
        "Error: listen EADDRINUSE: address already in use :::3000",
        "Port 5173 is already in use, trying another one...",
        "boom: ready in 3 ms",
    ] {
        assert!(!expressions.analyze(line).ready, "{line}");
    }
    assert!(expressions.analyze("VITE v7 ready in 300 ms").ready);
    assert_eq!(expressions.analyze("boom").failure, Some(LineFailure::Dead));
    assert!(expressions.has_ready());
}

#[test]
fn watchers_at_rest() {
    for line in [
        "[12:00:01] Found 0 errors. Watching for file changes.",
        "[watch] build finished, watching for changes...",
        "created dist/bundle.js in 1.2s",
        "webpack 5.90.0 compiled successfully in 812 ms",
        "VITE v7.0.0  ready in 312 ms",
        "[nodemon] watching path(s): *.*",
    ] {
        assert!(read(line).idle, "{line}");
    }
    for line in [
        "[nodemon] app crashed - waiting for file changes before starting...",
        "Starting compilation in watch mode...",
        "getting ready for things",
        "address already in use",
    ] {
        assert!(!read(line).idle, "{line}");
    }
}

#[test]
fn addresses_beside_the_service() {
    let side = read("metrics listening on http://localhost:9090/metrics");
    assert_eq!(side.addresses[0].weight, AddressWeight::Side);
    let own = read("listening on http://localhost:9090/");
    assert_eq!(own.addresses[0].weight, AddressWeight::Url);
    assert!(
        read("Port 3000 is in use, trying 3001")
            .addresses
            .is_empty()
    );
}
