//! The baseline: what the kernel and the command itself cost without Ostler.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// The script of every echo measurement.
pub(super) const SCRIPT: &str = "echo hi";

/// Runs `sh -c 'echo hi'` `count` times, one after the other; returns the duration of each.
pub(super) fn one_by_one(count: usize) -> Result<Vec<Duration>> {
    (0..count).map(|_| run_once()).collect()
}

/// The same in several threads; returns commands per second.
pub(super) fn rate(count: usize, width: usize) -> Result<f64> {
    let each = count / width;
    let begin = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..width)
            .map(|_| scope.spawn(|| one_by_one(each)))
            .collect();
        for worker in workers {
            let outcome = worker.join();
            ensure!(
                outcome.is_ok_and(|samples| samples.is_ok()),
                "a floor worker failed"
            );
        }
        Ok(())
    })?;
    let done = u32::try_from(each * width)?;
    Ok(f64::from(done) / begin.elapsed().as_secs_f64())
}

/// The standard library uses `posix_spawn` as long as no special option is set.
fn run_once() -> Result<Duration> {
    let begin = Instant::now();
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", SCRIPT])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut printed = Vec::with_capacity(16);
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut printed)?;
    }
    let status = child.wait()?;
    let took = begin.elapsed();
    ensure!(
        status.success() && printed == b"hi\n",
        "the floor's command failed"
    );
    Ok(took)
}
