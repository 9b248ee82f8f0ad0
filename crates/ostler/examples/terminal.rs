//! A terminal inside another program: a command in a shell, a file written in vim, the screen,
//! a new size, events, the end.
//!
//! `cargo run -p ostler --example terminal [STATE_DIRECTORY]`
#![expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use ostler::model::{Caller, Cursor, ShellKind, TermSize};
use ostler::terminal::InputPiece;
use ostler::{
    Engine, Settings, ShellCommand, ShellEnd, StartRequest, TerminalEvent, TerminalInput,
    TerminalPageQuery, WaitFor, ZygoteConfig,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The initial size of the sessions.
const SIZE: TermSize = TermSize { cols: 80, rows: 24 };
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Outcome<()> {
    let state = std::env::args_os().nth(1).map_or_else(
        || std::env::temp_dir().join("ostler-terminal"),
        PathBuf::from,
    );
    let mut settings = Settings::new(state);
    settings.base_env = std::env::vars_os()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let engine = Engine::with(settings, ZygoteConfig::InProcess).await?;
    let me = engine.caller();
    a_shell(&engine, &me).await?;
    an_editor(&engine, &me).await?;
    // Whatever still runs ends here.
    engine.destroy(&me).await?;
    engine.shutdown().await;
    Ok(())
}

/// A shell session that reports the exit status of each command and its working directory.
async fn a_shell(engine: &Engine, me: &Caller) -> Outcome<()> {
    let environment = engine.settings().base_env.clone();
    let request = engine
        .shell_request(ShellKind::Bash, "/tmp".into(), SIZE, environment)
        .await?;
    let id = engine.start(me, request).await?.id.to_string();
    let command = ShellCommand {
        script: "cd /usr && echo hello from $PWD; (exit 3)".to_owned(),
        timeout: PATIENCE,
        lease: None,
        idempotency: None,
    };
    let run = engine.run_in_shell(me, &id, command).await?;
    if let ShellEnd::Finished { status, cwd } = run.end {
        println!("exit status {status} in {}", cwd.unwrap_or_default());
    }
    // Exactly the command's output: no prompt, no echo of the typed text.
    let output = TerminalPageQuery {
        offset: Some(run.from),
        limit: Some(run.to - run.from),
    };
    let page = engine.read_terminal(me, &id, output).await?;
    println!("{}", String::from_utf8_lossy(&page.data).trim_end());

    type_in(
        engine,
        me,
        &id,
        vec![InputPiece::Text("exit".to_owned()), key("enter")?],
    )
    .await?;
    // Output as it comes, and the end exactly once.
    let mut events = engine.terminal_events(me, &id, Cursor::START)?;
    let mut bytes = 0;
    while let Some(event) = events.next().await? {
        match event {
            TerminalEvent::Output { data, .. } => bytes += data.len(),
            TerminalEvent::Gap { from, to } => println!("bytes {from} to {to} are gone"),
            TerminalEvent::Exit(ending) => println!("{bytes} bytes, {}", ending.describe()),
        }
    }
    Ok(())
}

/// A full-screen program, driven with keys and read from its screen.
async fn an_editor(engine: &Engine, me: &Caller) -> Outcome<()> {
    let directory = engine.settings().state_dir.join("work");
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("poem");
    let words = ["vim", "-u", "NONE", "-i", "NONE", "-n", "poem"];
    let mut request = StartRequest::argv(words, directory.into_os_string());
    request.options.pty = Some(SIZE);
    let id = engine.start(me, request).await?.id.to_string();
    shown(engine, me, &id, "[New").await?;

    let text = "i".to_owned() + "roses are red";
    let pieces = vec![
        InputPiece::Text(text),
        key("enter")?,
        InputPiece::Text("violets".to_owned()),
    ];
    type_in(engine, me, &id, [pieces, vec![key("escape")?]].concat()).await?;
    shown(engine, me, &id, "violets").await?;

    let wider = TermSize {
        cols: 100,
        rows: 30,
    };
    engine.resize(me, &id, wider).await?;
    let screen = engine.screen(me, &id).await?;
    println!(
        "{}x{}: {}",
        screen.size.cols, screen.size.rows, screen.rows[0]
    );

    type_in(
        engine,
        me,
        &id,
        vec![InputPiece::Text(":wq".to_owned()), key("enter")?],
    )
    .await?;
    engine.wait(me, &id, &WaitFor::Exit, Some(PATIENCE)).await?;
    println!("{}", std::fs::read_to_string(file)?.trim_end());
    engine.clean(me, &[id]).await?;
    Ok(())
}

/// Waits until the screen shows this text.
async fn shown(engine: &Engine, me: &Caller, id: &str, text: &str) -> Outcome<()> {
    loop {
        let screen = engine.screen(me, id).await?;
        if screen.rows.iter().any(|row| row.contains(text)) {
            return Ok(());
        }
        let more = WaitFor::OutputAfter(Cursor {
            offset: screen.offset,
            event: 0,
        });
        let waited = engine.wait(me, id, &more, Some(PATIENCE)).await?;
        if waited.info.output_end <= screen.offset {
            return Err(format!("never shown: {text}\n{}", screen.text()).into());
        }
    }
}

/// Types the pieces in one write that no other write is mixed into.
async fn type_in(engine: &Engine, me: &Caller, id: &str, pieces: Vec<InputPiece>) -> Outcome<()> {
    let typing = TerminalInput {
        pieces,
        lease: None,
    };
    engine.send_input(me, id, typing).await?;
    Ok(())
}

fn key(name: &str) -> Outcome<InputPiece> {
    Ok(InputPiece::Key(name.parse()?))
}
