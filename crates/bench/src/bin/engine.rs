//! The engine and the journal reader alone, for `cargo xtask bench core`.
//!
//! `engine KEEPER STATE_DIR HEAP_BYTES` reads one request per line and answers each with a line of
//! durations in nanoseconds: `run N` runs `sh -c 'echo hi'` N times; `tail N DIR` reads the last
//! lines of a journal; `grep WORD DIR` searches one.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use ostler::journal::{Journal, LineQuery, Pattern};
use ostler::{Engine, StartRequest, ZygoteConfig};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Timeout of one run, in milliseconds; no command here takes that long.
const RUN_MS: u64 = 30_000;
/// Size of a memory page, the stride at which the heap is touched.
const PAGE_BYTES: usize = 4_096;
/// Most bytes of an answer.
const ANSWER_BYTES: u64 = 1 << 24;

fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().ok_or("engine KEEPER STATE_DIR HEAP_BYTES");
    let (keeper, state, heap) = (word()?, word()?, word()?.parse()?);
    let ballast = touched(heap);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(serve(Path::new(&keeper), Path::new(&state)))?;
    drop(ballast);
    Ok(())
}

/// Allocates that many bytes of heap and writes to each page.
fn touched(bytes: usize) -> Vec<u8> {
    let mut heap = vec![0; bytes];
    heap.iter_mut()
        .step_by(PAGE_BYTES)
        .for_each(|byte| *byte = 1);
    heap
}

async fn serve(keeper: &Path, state: &Path) -> Outcome<()> {
    std::fs::create_dir_all(state)?;
    let engine = Engine::open(state, ZygoteConfig::Executable(keeper.to_owned())).await?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let took = match line.split(' ').collect::<Vec<_>>()[..] {
            ["run", count] => run(&engine, count.parse()?).await?,
            ["tail", count, dir] => lines(
                dir,
                LineQuery {
                    tail: Some(count.parse()?),
                    ..all()
                },
            )?,
            ["grep", word, dir] => lines(
                dir,
                LineQuery {
                    grep: Some(Pattern::new(word)?),
                    ..all()
                },
            )?,
            _ => return Err(format!("unknown order: {line}").into()),
        };
        let numbers: Vec<String> = took
            .iter()
            .map(|time| time.as_nanos().to_string())
            .collect();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", numbers.join(" "))?;
        out.flush()?;
    }
    engine.shutdown().await;
    Ok(())
}

async fn run(engine: &Engine, count: usize) -> Outcome<Vec<Duration>> {
    let caller = engine.caller();
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        let request = StartRequest::argv(["/bin/sh", "-c", "echo hi"], "/");
        let at_most = Some(Duration::from_millis(RUN_MS));
        let waited = engine.run(&caller, request, at_most).await?;
        let id = waited.info.id.to_string();
        let page = engine.journal(&caller, &id)?.lines(&all())?;
        took.push(begin.elapsed());
        if page.lines.len() != 1 || page.lines[0].bytes != b"hi" {
            return Err(format!("{id} printed {:?}", page.lines).into());
        }
    }
    Ok(took)
}

fn lines(dir: &str, query: LineQuery) -> Outcome<Vec<Duration>> {
    let begin = Instant::now();
    let page = Journal::open(Path::new(dir))?.lines(&query)?;
    let took = begin.elapsed();
    if page.lines.is_empty() {
        return Err("nothing found".into());
    }
    Ok(vec![took])
}

fn all() -> LineQuery {
    LineQuery {
        max_lines: 10_000,
        max_bytes: ANSWER_BYTES,
        ..LineQuery::default()
    }
}
