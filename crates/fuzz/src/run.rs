//! The fuzzing loop: seeds first, then mutations of them.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::edit;

/// The environment variable with the time for each target, in seconds.
pub const SECONDS_VARIABLE: &str = "OSTLER_FUZZ_SECONDS";
/// The number of mutated inputs of a target where no time is given, and between two reads of the
/// clock.
const CASES: u32 = 512;

/// Checks every seed, those of the corpus and the `generated` ones, and mutated ones.
///
/// # Panics
/// When the check panics for an input, or there is no seed.
#[expect(clippy::panic, reason = "tests call it")]
pub fn fuzz(corpus: &Path, generated: Vec<Vec<u8>>, check: impl Fn(&[u8])) {
    let mut seeds = read_corpus(corpus);
    let with_path = |(at, seed)| (PathBuf::from(format!("made {at}")), seed);
    seeds.extend(generated.into_iter().enumerate().map(with_path));
    assert!(!seeds.is_empty(), "{}: no seeds", corpus.display());
    for (path, seed) in &seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(seed))) {
            report_failing_seed(path);
            resume_unwind(panic);
        }
    }
    let seeds: Vec<Vec<u8>> = seeds.into_iter().map(|(_, seed)| seed).collect();
    let inputs = edit::inputs(seeds);
    let seconds = std::env::var(SECONDS_VARIABLE).ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let last_input = corpus.with_extension("last");
    let run_check = |input: Vec<u8>| {
        // Foreign code may abort the process: its input is stored before.
        if until.is_some() {
            let _ignored = fs::write(&last_input, &input);
        }
        check(&input);
        Ok::<(), TestCaseError>(())
    };
    loop {
        match runner(until.is_some()).run(&inputs, run_check) {
            Ok(()) => {}
            Err(TestError::Abort(reason)) => panic!("no inputs: {reason}"),
            Err(TestError::Fail(reason, input)) => {
                let path = save_failing_input(corpus, &input);
                panic!("{}: {reason}", path.display());
            }
        }
        if until.is_none_or(|until| Instant::now() >= until) {
            // There is none in the quick tier.
            let _removed = fs::remove_file(&last_input);
            return;
        }
    }
}

fn runner(is_random: bool) -> TestRunner {
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    if is_random {
        return TestRunner::new(config);
    }
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng)
}

fn read_corpus(corpus: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(corpus).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let seed = |path: PathBuf| {
        let bytes = fs::read(&path).ok()?;
        Some((path, bytes))
    };
    paths.into_iter().filter_map(seed).collect()
}

/// Adds a failing input to the corpus, so that it is checked from now on.
fn save_failing_input(corpus: &Path, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = corpus.join(format!("found-{:016x}", hasher.finish()));
    // Where the corpus cannot be written to, the failure is reported all the same.
    let _ignored = fs::create_dir_all(corpus).and_then(|()| fs::write(&path, input));
    path
}

#[expect(
    clippy::print_stderr,
    reason = "the panic itself does not name the seed"
)]
fn report_failing_seed(path: &Path) {
    eprintln!("the seed {} fails", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_input_is_found_made_small_and_kept() {
        let corpus = std::env::temp_dir().join(format!("ostler-fuzz-{}", std::process::id()));
        let seeds = || vec![b"a seed without it".to_vec()];
        let check = |input: &[u8]| assert!(!input.contains(&0), "a zero");
        let failed = catch_unwind(|| fuzz(&corpus, seeds(), check));
        assert!(failed.is_err(), "found");
        let kept = read_corpus(&corpus);
        let found = kept.iter().find(|(_, input)| input.contains(&0));
        let (_, found) = found.expect("kept");
        assert!(found.len() <= 18, "small: {found:?}");
        assert!(
            catch_unwind(|| fuzz(&corpus, seeds(), check)).is_err(),
            "checked from now on"
        );
        fs::remove_dir_all(corpus).expect("removed");
    }
}
