//! Measures how fast a screen is folded from bytes, for `cargo xtask bench pty`.
//!
//! Reads one request per line, `KIND BYTES`, and answers each with two durations in nanoseconds:
//! the emulator alone, and [`Screen`] around it, over the same generated stream.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::time::{Duration, Instant};

use ostler_model::TermSize;
use ostler_terminal::Screen;

/// The default terminal size.
const SIZE: TermSize = TermSize { cols: 80, rows: 24 };
/// Bytes fed at a time, as they are read from a journal.
const CHUNK_BYTES: usize = 64 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (kind, bytes) = line.split_once(' ').ok_or("KIND BYTES")?;
        let stream = generate(kind, bytes.parse()?)?;
        let (bare, ours) = (bare(&stream)?, ours(&stream));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{} {}", bare.as_nanos(), ours.as_nanos())?;
        out.flush()?;
    }
    Ok(())
}

/// Times the emulator alone. It takes text; splitting bytes into text is not part of its work.
fn bare(stream: &str) -> Result<Duration, avt::InvalidSize> {
    let mut emulator = avt::Terminal::new(SIZE.cols.into(), SIZE.rows.into())?;
    let mut rest = stream;
    let mut took = Duration::ZERO;
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
        let begin = Instant::now();
        emulator.feed(chunk);
        took += begin.elapsed();
        rest = tail;
    }
    Ok(took)
}

fn ours(stream: &str) -> Duration {
    let mut screen = Screen::new(SIZE, None);
    let begin = Instant::now();
    for chunk in stream.as_bytes().chunks(CHUNK_BYTES) {
        screen.feed(chunk);
    }
    begin.elapsed()
}

/// Generates a stream of about that many bytes; the same one each time.
fn generate(kind: &str, bytes: usize) -> Result<String, Box<dyn Error>> {
    let mut text = String::with_capacity(bytes + CHUNK_BYTES);
    let mut number = 0_u32;
    while text.len() < bytes {
        match kind {
            "log" => writeln!(
                text,
                "{number:08} GET /index.html 200 in {} ms\r",
                number % 97
            )?,
            "colour" => writeln!(
                text,
                "\x1b[3{}m{number:08}\x1b[0m \x1b[1;38;5;{}mcompiling\x1b[0m crate-{number}\r",
                number % 8,
                number % 256
            )?,
            "full" => frame(&mut text, number)?,
            "wide" => writeln!(text, "{number} 进程管理器 日本語 🦀 e\u{301} ключ\r")?,
            _ => return Err(format!("unknown stream: {kind}").into()),
        }
        number += 1;
    }
    Ok(text)
}

/// One frame as `top` paints it: cursor home, every row with its attributes, the cursor restored.
fn frame(text: &mut String, number: u32) -> std::fmt::Result {
    text.push_str("\x1b[H");
    for row in 1..SIZE.rows {
        let load = number % 100;
        write!(
            text,
            "\x1b[{row};1H\x1b[7m{number:6}\x1b[0m root 20 0 \x1b[32m{load:3}.0\x1b[39m bash\x1b[K"
        )?;
    }
    text.push_str("\x1b[6;1H");
    Ok(())
}
