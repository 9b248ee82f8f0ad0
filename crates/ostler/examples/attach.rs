//! Connects a person's terminal to an agent's session, as `ostler attach` does, in one program.
//! Starts a shell, shows it on this terminal, passes keys on while it holds the lease, and ends
//! with ctrl-] or when the shell ends.
//!
//! `cargo run -p ostler --example attach [PROGRAM [ARGUMENT…]]`

use std::error::Error;
use std::io::{IsTerminal, Read, Write};
use std::thread;

use ostler::model::{Caller, Cursor, TermSize};
use ostler::terminal::InputPiece;
use ostler::{Engine, Lease, Settings, StartRequest, TerminalEvent, TerminalInput, ZygoteConfig};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The detach key, ctrl-].
const DETACH: u8 = 0x1d;
/// Most bytes of one read from the keyboard.
const KEYS_BYTES: usize = 1_024;
/// Capacity of the channel of keyboard reads.
const KEYS_WAITING: usize = 64;

#[tokio::main]
async fn main() -> Outcome<()> {
    if !std::io::stdin().is_terminal() {
        return Err("standard input is no terminal".into());
    }
    let state = std::env::temp_dir().join("ostler-attach");
    let mut settings = Settings::new(state);
    settings.base_env = std::env::vars_os()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let engine = Engine::with(settings, ZygoteConfig::InProcess).await?;
    let me = engine.caller();
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() {
        words.push("bash".to_owned());
    }
    let mut request = StartRequest::argv(words, std::env::current_dir()?.into_os_string());
    let size = tcgetwinsize(std::io::stdin())?;
    request.options.pty = Some(TermSize {
        cols: size.ws_col.max(1),
        rows: size.ws_row.max(1),
    });
    let id = engine.start(&me, request).await?.id.to_string();

    let cooked = make_raw()?;
    let attached = attach(&engine, &me, &id).await;
    tcsetattr(std::io::stdin(), OptionalActions::Now, &cooked)?;
    engine.destroy(&me).await?;
    engine.shutdown().await;
    attached
}

/// Shows the session until it ends or the detach key is pressed.
async fn attach(engine: &Engine, me: &Caller, id: &str) -> Outcome<()> {
    // While this lease exists, no other caller can type.
    let mut lease = engine.acquire_lease(me, id, "the example", false).await?;
    // First the current screen, then new output.
    let (paint, checkpoint) = engine.repaint(me, id).await?;
    show(&paint)?;
    let from = Cursor {
        offset: checkpoint.offset,
        event: 0,
    };
    let mut events = engine.terminal_events(me, id, from)?;
    let mut keys = keyboard();
    loop {
        tokio::select! {
            event = events.next() => match event? {
                Some(TerminalEvent::Output { data, .. }) => show(&data)?,
                Some(TerminalEvent::Gap { .. }) => show(&engine.repaint(me, id).await?.0)?,
                Some(TerminalEvent::Exit(_)) | None => return Ok(()),
            },
            read = keys.recv() => match read {
                Some(bytes) if !bytes.contains(&DETACH) => {
                    pass_on(engine, me, id, (bytes, &lease)).await?;
                }
                _ => return Ok(()),
            },
            holder = lease.wait_takeover() => {
                show(format!("\r\n[{} types now]\r\n", holder.name).as_bytes())?;
                return Ok(());
            }
        }
    }
}

async fn pass_on(
    engine: &Engine,
    me: &Caller,
    id: &str,
    (bytes, lease): (Vec<u8>, &Lease),
) -> Outcome<()> {
    let typing = TerminalInput {
        pieces: vec![InputPiece::Raw(bytes)],
        lease: Some(lease.id().clone()),
    };
    engine.send_input(me, id, typing).await?;
    Ok(())
}

/// Keys as they are pressed, read by a dedicated thread.
fn keyboard() -> mpsc::Receiver<Vec<u8>> {
    let (keys, pressed) = mpsc::channel(KEYS_WAITING);
    thread::spawn(move || {
        let mut bytes = [0; KEYS_BYTES];
        let mut input = std::io::stdin().lock();
        while let Ok(read @ 1..) = input.read(&mut bytes) {
            if keys.blocking_send(bytes[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    pressed
}

fn show(bytes: &[u8]) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Puts the terminal into raw mode without echo; returns the former attributes.
fn make_raw() -> Outcome<Termios> {
    let cooked = tcgetattr(std::io::stdin())?;
    let mut raw = cooked.clone();
    raw.make_raw();
    tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)?;
    Ok(cooked)
}
