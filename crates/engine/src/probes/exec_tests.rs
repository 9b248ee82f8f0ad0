//! Probes that run commands.

use std::time::Duration;

use ostler_model::{ByteString, ExecutionId};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;
use tokio::time::timeout;

use super::Prober;
use super::probe_tests::{bare, failed, impatient, prober};
use crate::readiness::{ProbeOutcome, ProbeRequest};

async fn run(prober: &Prober, argv: &[&str]) -> ProbeOutcome {
    let argv = argv.iter().copied().map(ByteString::from).collect();
    let order = ProbeRequest::Exec { argv };
    let probing = prober.probe(ExecutionId::mint(), order, bare());
    let answered = timeout(Duration::from_secs(20), probing).await;
    answered.expect("the probe ends")
}

fn exited(code: i32, output: &str) -> ProbeOutcome {
    ProbeOutcome::Exec {
        code,
        output: output.to_owned(),
    }
}

#[tokio::test]
async fn commands_answer_with_code_and_output() {
    for (script, answer) in [
        ("exit 0", exited(0, "")),
        ("echo no; echo really >&2; exit 3", exited(3, "no\nreally")),
        ("kill -9 $$", exited(137, "")),
        ("pwd; echo $HOME", exited(0, "/")),
        ("exec >&- 2>&-; exit 4", exited(4, "")),
        ("cat; echo end of input", exited(0, "end of input")),
    ] {
        assert_eq!(
            run(&prober(), &["sh", "-c", script]).await,
            answer,
            "{script}"
        );
    }
    let answered = run(&prober(), &["no-such-program"]).await;
    assert_eq!(
        answered,
        failed("cannot run `no-such-program`: entity not found")
    );
    let answered = run(&prober(), &[]).await;
    assert_eq!(answered, failed("cannot run ``: invalid input parameter"));
}

#[tokio::test]
async fn the_end_of_much_output_is_reported() {
    let script = "yes äöü | head -n 400000; printf 'the end'";
    let ProbeOutcome::Exec { code: 0, output } = run(&prober(), &["sh", "-c", script]).await else {
        panic!("it exits with 0");
    };
    assert_eq!(output.chars().count(), 200);
    assert!(output.ends_with("the end"), "{output}");
    assert!(!output.contains('\u{fffd}'), "{output}");
}

/// A file that processes hold open, and the detection that the last of them has closed it.
struct HeldPort {
    dir: tempfile::TempDir,
    reader: tokio::net::unix::pipe::Receiver,
}

impl HeldPort {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("held");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a fifo");
        let reader = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&path);
        let reader = reader.expect("it opens");
        Self { dir, reader }
    }

    /// A script that opens the file, reports so through it, then continues with `rest`.
    fn script(&self, rest: &str) -> String {
        let path = self.dir.path().join("held");
        format!("exec 9>{}; echo here >&9; {rest}", path.display())
    }

    async fn taken(&mut self) {
        let mut said = [0; 5];
        let read = timeout(Duration::from_secs(10), self.reader.read_exact(&mut said)).await;
        read.expect("in time").expect("it says so");
    }

    async fn let_go(&mut self) {
        let mut rest = Vec::new();
        let end = timeout(Duration::from_secs(10), self.reader.read_to_end(&mut rest)).await;
        end.expect("every process has gone").expect("the end");
    }
}

#[tokio::test]
async fn one_that_hangs_is_ended_with_its_children() {
    let mut held = HeldPort::new();
    let script = held.script("trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000");
    let began = Instant::now();
    let answered = run(&impatient(), &["sh", "-c", &script]).await;
    assert_eq!(answered, failed("no exit within 1 s"));
    assert!(began.elapsed() < Duration::from_secs(5));
    held.taken().await;
    held.let_go().await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_ended() {
    let mut held = HeldPort::new();
    let script = held.script("sleep 1000 & echo started; exit 0");
    let answered = run(&prober(), &["sh", "-c", &script]).await;
    assert_eq!(answered, exited(0, "started"));
    held.taken().await;
    held.let_go().await;
}

#[tokio::test]
async fn a_dropped_probe_ends_its_command() {
    let mut held = HeldPort::new();
    let script = held.script("sleep 1000 & sleep 1000");
    let prober = prober();
    {
        let argv = ["sh", "-c", &script];
        let probing = run(&prober, &argv);
        tokio::select! {
            answered = probing => panic!("{answered:?}"),
            () = held.taken() => {}
        }
    }
    held.let_go().await;
}

#[tokio::test]
async fn no_zombie_is_left() {
    for _ in 0..3 {
        assert_eq!(run(&prober(), &["true"]).await, exited(0, ""));
    }
    let answered = run(&impatient(), &["sleep", "1000"]).await;
    assert_eq!(answered, failed("no exit within 1 s"));
    let threads = std::fs::read_dir("/proc/self/task").expect("threads");
    for thread in threads {
        let children = thread.expect("a thread").path().join("children");
        assert_eq!(std::fs::read_to_string(children).unwrap_or_default(), "");
    }
}
