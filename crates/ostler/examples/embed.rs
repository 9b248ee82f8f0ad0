//! Ostler inside another program: one command, one background process, its output, its end.
//!
//! `cargo run -p ostler --example embed [STATE_DIRECTORY]`
#![expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use ostler::journal::{LineQuery, OpenLineMode, Pattern};
use ostler::{Engine, Settings, StartRequest, StopRequest, WaitEnd, WaitFor, ZygoteConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let state = std::env::args_os()
        .nth(1)
        .map_or_else(|| std::env::temp_dir().join("ostler-embed"), PathBuf::from);
    let mut settings = Settings::new(state);
    settings.base_env = std::env::vars_os()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let engine = Engine::with(settings, ZygoteConfig::InProcess).await?;
    let me = engine.caller();

    // Synchronous: start and wait for the end.
    let request = StartRequest::argv(["sh", "-c", "echo hello; exit 3"], "/tmp");
    let waited = engine.run(&me, request, None).await?;
    let info = waited.info;
    println!("{}: {}", info.id.short(), info.status().process.as_str());
    print_lines(&engine, &info.id.short())?;

    // Background: start, wait for a line, read, stop.
    let script = "while true; do echo tick; sleep 1; done";
    let mut request = StartRequest::argv(["sh", "-c", script], "/tmp");
    request.options.labels = vec!["clock".to_owned()];
    let id = engine.start(&me, request).await?.id.short();
    let tick = WaitFor::Pattern(Pattern::new("tick")?);
    let waited = engine
        .wait(&me, &id, &tick, Some(Duration::from_secs(10)))
        .await?;
    if let WaitEnd::Pattern(found) = waited.end {
        println!("{id} said {} at {}", found.line, found.at);
    }
    let stopped = engine
        .stop(
            &me,
            &id,
            StopRequest {
                reason: Some("seen enough".to_owned()),
                ..StopRequest::default()
            },
        )
        .await?;
    println!("{id}: {}", stopped.error_message().unwrap_or_default());

    engine.clean(&me, &[id]).await?;
    engine.shutdown().await;
    Ok(())
}

fn print_lines(engine: &Engine, id: &str) -> Result<(), Box<dyn Error>> {
    let journal = engine.journal(&engine.caller(), id)?;
    let page = journal.lines(&LineQuery {
        unfinished: OpenLineMode::Final,
        ..LineQuery::default()
    })?;
    for line in page.lines {
        println!(
            "{id} {:?} {}",
            line.stream,
            String::from_utf8_lossy(&line.bytes)
        );
    }
    Ok(())
}
