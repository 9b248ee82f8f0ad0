//! Terminal sessions through the library alone, for `cargo xtask bench pty`.
//!
//! `terminals KEEPER STATE_DIR` reads one request per line and answers each with a line of
//! durations in nanoseconds:
//! * `echo N` types one character N times into a raw `cat`: from the write to the echo;
//! * `late PROGRAM ARGUMENT…` runs a program that prints the monotonic clock, line by line: from
//!   the timestamp to the event that carries it;
//! * `prompt N` starts bash N times: from the request to its prompt;
//! * `shell N` runs `:` N times in one shell session: from the request to its exit status.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use ostler::journal::Pattern;
use ostler::model::{Caller, Cursor, ShellKind, TermSize};
use ostler::terminal::InputPiece;
use ostler::{
    Engine, Settings, ShellCommand, ShellEnd, StartRequest, StopRequest, TerminalEvent,
    TerminalEvents, TerminalInput, WaitEnd, WaitFor, ZygoteConfig,
};
use rustix::time::{ClockId, clock_gettime};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The default size of a session.
const SIZE: TermSize = TermSize { cols: 80, rows: 24 };
/// The output of a session that is ready for input.
const READY: &str = "ready";
/// The longest that one step takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().ok_or("terminals KEEPER STATE_DIR");
    let (keeper, state) = (word()?, word()?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(serve(Path::new(&keeper), Path::new(&state)))
}

struct Bench {
    engine: Engine,
    me: Caller,
}

async fn serve(keeper: &Path, state: &Path) -> Outcome<()> {
    std::fs::create_dir_all(state)?;
    let mut settings = Settings::new(state);
    settings.base_env = std::env::vars_os()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let engine = Engine::with(settings, ZygoteConfig::Executable(keeper.to_owned())).await?;
    let me = engine.caller();
    let bench = Bench { engine, me };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let took = match line.split(' ').collect::<Vec<_>>()[..] {
            ["echo", count] => bench.echo(count.parse()?).await?,
            ["late", ref words @ ..] => bench.late(words).await?,
            ["prompt", count] => bench.prompt(count.parse()?).await?,
            ["shell", count] => bench.shell(count.parse()?).await?,
            _ => return Err(format!("unknown order: {line}").into()),
        };
        let numbers = took.iter().map(|time| time.as_nanos().to_string());
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", numbers.collect::<Vec<_>>().join(" "))?;
        out.flush()?;
    }
    bench.engine.destroy(&bench.me).await?;
    bench.engine.shutdown().await;
    Ok(())
}

impl Bench {
    async fn start(&self, words: &[&str]) -> Outcome<String> {
        let mut request = StartRequest::argv(words.iter().copied(), "/");
        request.options.pty = Some(SIZE);
        Ok(self.engine.start(&self.me, request).await?.id.to_string())
    }

    async fn end(&self, id: String) -> Outcome<()> {
        let request = StopRequest {
            force: true,
            ..StopRequest::default()
        };
        self.engine.stop(&self.me, &id, request).await?;
        self.engine.clean(&self.me, &[id]).await?;
        Ok(())
    }

    fn events(&self, id: &str, offset: u64) -> Outcome<TerminalEvents> {
        let from = Cursor { offset, event: 0 };
        Ok(self.engine.terminal_events(&self.me, id, from)?)
    }

    /// A program that echoes in raw mode; returns when it reads.
    async fn ready(&self) -> Outcome<(String, u64)> {
        let script = format!("stty raw -echo; echo {READY}; exec cat");
        let id = self.start(&["/bin/sh", "-c", &script]).await?;
        let ready = WaitFor::Pattern(Pattern::new(READY)?);
        let wait = self.engine.wait(&self.me, &id, &ready, Some(PATIENCE));
        let waited = wait.await?;
        let WaitEnd::Pattern(found) = waited.end else {
            return Err(format!("{id}: {:?}", waited.end).into());
        };
        let offset = found.offset + found.line.as_bytes().len() as u64 + 1;
        Ok((id, offset))
    }

    async fn echo(&self, count: usize) -> Outcome<Vec<Duration>> {
        let (id, offset) = self.ready().await?;
        let mut events = self.events(&id, offset)?;
        let mut took = Vec::with_capacity(count);
        for _ in 0..count {
            let begin = Instant::now();
            let typing = TerminalInput {
                pieces: vec![InputPiece::Text("x".to_owned())],
                lease: None,
            };
            self.engine.send_input(&self.me, &id, typing).await?;
            let data = output(&mut events).await?;
            took.push(begin.elapsed());
            if data != b"x" {
                return Err(format!("{id} echoed {data:?}").into());
            }
        }
        self.end(id).await?;
        Ok(took)
    }

    async fn late(&self, words: &[&str]) -> Outcome<Vec<Duration>> {
        let id = self.start(words).await?;
        let mut events = self.events(&id, 0)?;
        let (mut took, mut rest) = (Vec::new(), Vec::new());
        while let Some(event) = events.next().await? {
            let now = clock_gettime(ClockId::Monotonic);
            let now = Duration::new(now.tv_sec.try_into()?, now.tv_nsec.try_into()?);
            let TerminalEvent::Output { data, .. } = event else {
                continue;
            };
            rest.extend(data);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let stamp = std::str::from_utf8(&line)?.trim().parse()?;
                took.push(now.saturating_sub(Duration::from_nanos(stamp)));
            }
        }
        self.engine.clean(&self.me, &[id]).await?;
        Ok(took)
    }

    async fn prompt(&self, count: usize) -> Outcome<Vec<Duration>> {
        let mut took = Vec::with_capacity(count);
        for _ in 0..count {
            let begin = Instant::now();
            let mut request = StartRequest::argv(["bash", "--norc", "--noprofile", "-i"], "/");
            request.options.pty = Some(SIZE);
            request.options.set_env = vec![("PS1".into(), READY.into())];
            let id = self.engine.start(&self.me, request).await?.id.to_string();
            self.prompted(&id).await?;
            took.push(begin.elapsed());
            self.end(id).await?;
        }
        Ok(took)
    }

    async fn prompted(&self, id: &str) -> Outcome<()> {
        let (mut events, mut seen) = (self.events(id, 0)?, Vec::new());
        while !String::from_utf8_lossy(&seen).contains(READY) {
            seen.extend(output(&mut events).await?);
        }
        Ok(())
    }

    async fn shell(&self, count: usize) -> Outcome<Vec<Duration>> {
        let environment = self.engine.settings().base_env.clone();
        let request = self
            .engine
            .shell_request(ShellKind::Bash, "/".into(), SIZE, environment);
        let request = request.await?;
        let id = self.engine.start(&self.me, request).await?.id.to_string();
        let mut took = Vec::with_capacity(count);
        // The first round includes the wait for the prompt.
        for round in 0..=count {
            let begin = Instant::now();
            let command = ShellCommand {
                script: ":".to_owned(),
                timeout: PATIENCE,
                lease: None,
                idempotency: None,
            };
            let run = self.engine.run_in_shell(&self.me, &id, command).await?;
            if !matches!(run.end, ShellEnd::Finished { status: 0, .. }) {
                return Err(format!("{id}: {:?}", run.end).into());
            }
            if round > 0 {
                took.push(begin.elapsed());
            }
        }
        self.end(id).await?;
        Ok(took)
    }
}

/// The next output event.
async fn output(events: &mut TerminalEvents) -> Outcome<Vec<u8>> {
    match events.next().await? {
        Some(TerminalEvent::Output { data, .. }) => Ok(data),
        other => Err(format!("no output but {other:?}").into()),
    }
}
