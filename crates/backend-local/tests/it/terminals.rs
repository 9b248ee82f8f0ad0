//! Commands on terminals: hang-ups, ends, lines, sizes, many terminals.

mod amounts;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ostler_backend::{
    Backend, ControlCommand, ControlError, ExitRecord, KillReason, LaunchIo, LaunchPlan,
    LeaderOutcome, ProcessEvent, SpawnHandle,
};
use ostler_backend_local::ZygoteConfig;
use ostler_model::{ByteString, ExecutionId, StreamName, TermSize};

use crate::support::{
    BackendFixture, FinishedRun, TestCase, argv, is_alive, members, next_event, output, sh,
    wait_exit, wait_until,
};

pub(crate) const CASES: &[TestCase] = &[
    ("an_interactive_shell_goes_at_once", shell_goes),
    ("a_shell_without_a_keeper_goes_at_once", shell_of_a_thread),
    ("what_hears_a_hang_up_is_not_disturbed", trapped_hang_up),
    ("vim_keeps_its_swap_file", vim_keeps),
    ("who_ignores_a_hang_up_is_asked_then_killed", deaf),
    ("background_jobs_and_nohup_end_with_the_terminal", jobs),
    ("a_stopped_job_ends_too", stopped_job),
    ("a_foreground_job_is_hung_up", foreground_job),
    ("jobs_left_by_a_shell_are_ended_and_counted", left_jobs),
    ("a_terminal_closed_and_opened_again", opened_again),
    ("a_closed_terminal_costs_nothing", closed_is_quiet),
    ("the_last_words_are_never_lost", amounts::last_words),
    ("ten_megabytes_and_the_end", amounts::ten_megabytes),
    ("a_line_longer_than_the_kernel_keeps", amounts::long_line),
    ("ten_megabytes_of_keys", amounts::many_keys),
    ("a_program_that_never_reads", amounts::never_reads),
    (
        "the_end_of_input_after_an_unfinished_line",
        amounts::end_of_input,
    ),
    ("sizes_of_what_is_stopped_or_gone", sizes),
    ("no_terminal_is_left", exhausted),
    ("sixty_terminals", amounts::sixty),
    ("full_three_hundred_terminals", amounts::three_hundred),
];

/// A grace that no case waits for.
const GRACE: Duration = Duration::from_secs(20);
/// The deadline, on a busy machine, of what must not wait for a grace.
const SOON: Duration = Duration::from_secs(5);

struct Session {
    id: ExecutionId,
    dir: PathBuf,
    handle: SpawnHandle,
}

impl Session {
    async fn begin(fixture: &BackendFixture, plan: LaunchPlan) -> Self {
        let (id, dir) = (plan.id, fixture.dir(plan.id));
        let handle = fixture.backend.spawn(plan).await.expect("it spawns");
        let session = Self { id, dir, handle };
        // A short command may have ended by now.
        if let Err(error) = session
            .handle
            .control
            .send(ControlCommand::Watch(true))
            .await
        {
            assert_eq!(error, ControlError::Ended);
        }
        session
    }

    async fn send(&self, command: ControlCommand) {
        self.handle.control.send(command).await.expect("accepted");
    }

    fn text(&self) -> String {
        if !self.dir.exists() {
            return String::new();
        }
        String::from_utf8_lossy(&output(&self.dir, StreamName::Pty)).into_owned()
    }

    async fn shows(&mut self, text: &str) {
        while !self.text().contains(text) {
            next_event(&mut self.handle, |report| {
                matches!(report, ProcessEvent::Output { .. }).then_some(())
            })
            .await;
        }
    }

    /// Sends input and returns how many bytes were accepted.
    async fn types(&mut self, bytes: &[u8]) -> u64 {
        self.send(ControlCommand::Input(bytes.to_vec())).await;
        next_event(&mut self.handle, |report| match report {
            ProcessEvent::InputAccepted { len } => Some(*len),
            _ => None,
        })
        .await
    }

    async fn ends(self) -> FinishedRun {
        let record = wait_exit(self.handle).await;
        FinishedRun {
            dir: self.dir,
            record,
        }
    }

    async fn stopped(self, grace: Duration) -> (FinishedRun, Duration) {
        self.send(ControlCommand::Stop { grace }).await;
        let (id, begin) = (self.id, Instant::now());
        let done = self.ends().await;
        assert!(members(id).is_empty() && done.record.survivors.is_empty());
        assert_eq!(ladder(&done.record), Some(KillReason::Requested));
        (done, begin.elapsed())
    }
}

fn ladder(record: &ExitRecord) -> Option<KillReason> {
    match &record.outcome {
        LeaderOutcome::Ended {
            kill_reason: ladder,
            ..
        } => *ladder,
        LeaderOutcome::SpawnFailed { .. } => None,
        LeaderOutcome::ContainerLost => panic!("not in a container"),
    }
}

fn on_terminal(mut plan: LaunchPlan) -> LaunchPlan {
    plan.io = LaunchIo::Pty(TermSize { cols: 80, rows: 24 });
    plan.env
        .push((ByteString::from("TERM"), ByteString::from("xterm-256color")));
    plan.timeouts.grace = GRACE;
    plan
}

fn bash() -> LaunchPlan {
    let mut plan = on_terminal(argv(&["/bin/bash", "--norc", "--noprofile", "-i"]));
    plan.env
        .push((ByteString::from("PS1"), ByteString::from("ready> ")));
    plan.env
        .push((ByteString::from("HISTFILE"), ByteString::from("")));
    plan
}

/// How many children of a process are zombies, from proc(5).
fn zombies_of(pid: u32) -> usize {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let is_zombie = |pid: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
    };
    children.split_ascii_whitespace().filter(is_zombie).count()
}

/// The shim of a running execution, the parent of its leader.
fn shim_of(leader: i32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{leader}/stat")).expect("it runs");
    let rest = stat.rsplit(')').next().expect("a name");
    rest.split_ascii_whitespace()
        .nth(1)
        .and_then(|parent| parent.parse().ok())
        .expect("a parent")
}

fn shell_goes() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, bash()).await;
        session.shows("ready> ").await;
        let shim = shim_of(members(session.id)[0]);
        let (done, took) = session.stopped(GRACE).await;
        assert_eq!(done.signal(), Some(libc::SIGHUP));
        assert!(took < SOON, "{took:?}");
        assert_eq!(zombies_of(shim), 0);
    });
}

fn shell_of_a_thread() {
    let fixture = BackendFixture::with(ZygoteConfig::InProcess);
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, bash()).await;
        session.shows("ready> ").await;
        let (done, took) = session.stopped(GRACE).await;
        assert_eq!(done.signal(), Some(libc::SIGHUP));
        assert!(took < SOON, "{took:?}");
        assert_eq!(zombies_of(std::process::id()), 0);
    });
}

fn trapped_hang_up() {
    let fixture = BackendFixture::new();
    let script = "trap 'echo hung up; exit 7' HUP; trap 'echo asked; exit 8' TERM; \
                  echo here; while :; do sleep 0.05; done";
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, on_terminal(sh(script))).await;
        session.shows("here").await;
        let (done, _) = session.stopped(GRACE).await;
        assert_eq!(done.code(), Some(7));
        let text = String::from_utf8_lossy(&output(&done.dir, StreamName::Pty)).into_owned();
        assert!(
            text.contains("hung up") && !text.contains("asked"),
            "{text}"
        );
    });
}

fn vim_keeps() {
    let fixture = BackendFixture::new();
    let files = tempfile::tempdir().expect("a directory");
    let file = files.path().join("notes.txt");
    let words = ["/usr/bin/vim", "-u", "NONE", "-N", "--cmd", "set swapfile"];
    let mut plan = on_terminal(argv(&words));
    plan.argv
        .push(ByteString::from(file.to_string_lossy().as_ref()));
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, plan).await;
        session.shows("notes.txt").await;
        session.types(b"ia line that was never saved\x1b").await;
        session.shows("never saved").await;
        let (_, took) = session.stopped(GRACE).await;
        assert!(took < SOON, "{took:?}");
    });
    assert!(!file.exists());
    let swap = std::fs::read(files.path().join(".notes.txt.swp")).expect("it is kept");
    let kept = String::from_utf8_lossy(&swap);
    assert!(kept.contains("a line that was never saved"));
}

fn deaf() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let script = "trap '' HUP; echo here; while :; do sleep 300; done";
        let mut session = Session::begin(&fixture, on_terminal(sh(script))).await;
        session.shows("here").await;
        let (done, took) = session.stopped(GRACE).await;
        assert_eq!(done.signal(), Some(libc::SIGTERM));
        assert!(took < SOON, "{took:?}");
        let script = "trap '' HUP TERM; echo here; while :; do sleep 300; done";
        let mut session = Session::begin(&fixture, on_terminal(sh(script))).await;
        session.shows("here").await;
        let (done, took) = session.stopped(Duration::from_millis(400)).await;
        assert_eq!(done.signal(), Some(libc::SIGKILL));
        assert!(
            took >= Duration::from_millis(400) && took < SOON,
            "{took:?}"
        );
    });
}

fn jobs() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, bash()).await;
        session.shows("ready> ").await;
        session
            .types(b"sleep 301 & nohup sleep 302 >/dev/null 2>&1 & setsid sleep 303 & disown -a; echo started\r")
            .await;
        session.shows("\nstarted").await;
        wait_until(|| members(session.id).len() >= 4);
        let (done, took) = session.stopped(GRACE).await;
        assert_eq!(done.signal(), Some(libc::SIGHUP));
        assert!(took < SOON, "{took:?}");
    });
}

/// Whether a process of this name is in the foreground of its terminal.
fn is_in_front(pid: i32, name: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((before, after)) = stat.rsplit_once(')') else {
        return false;
    };
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    before.ends_with(&format!("({name}")) && fields.get(2) == fields.get(5)
}

fn stopped_job() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, bash()).await;
        session.shows("ready> ").await;
        session.types(b"sleep 300\r").await;
        let id = session.id;
        wait_until(|| members(id).iter().any(|pid| is_in_front(*pid, "sleep")));
        session.types(b"\x1a").await;
        session.shows("Stopped").await;
        let (_, took) = session.stopped(GRACE).await;
        assert!(took < SOON, "{took:?}");
    });
}

fn foreground_job() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, bash()).await;
        session.shows("ready> ").await;
        let job = "sh -c 'trap \"echo job was hung up; exit\" HUP; echo job\" \"runs; \
                   while :; do sleep 0.05; done'\r";
        session.types(job.as_bytes()).await;
        session.shows("job runs").await;
        let (done, took) = session.stopped(GRACE).await;
        assert!(took < SOON, "{took:?}");
        let text = String::from_utf8_lossy(&output(&done.dir, StreamName::Pty)).into_owned();
        // The terminal is still there: even the last output is kept.
        assert!(text.contains("\njob was hung up"), "{text}");
    });
}

fn left_jobs() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, bash()).await;
        session.shows("ready> ").await;
        session
            .types(b"sleep 301 & nohup sleep 302 >/dev/null & exit 3\r")
            .await;
        let (id, begin) = (session.id, Instant::now());
        let done = session.ends().await;
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        assert_eq!((done.code(), done.record.leftovers), (Some(3), 2));
        assert_eq!(ladder(&done.record), None);
        assert!(members(id).is_empty());
    });
}

fn opened_again() {
    for zygote in [crate::support::this_executable(), ZygoteConfig::InProcess] {
        let fixture = BackendFixture::with(zygote);
        let script = "exec </dev/null >/dev/null 2>&1; sleep 0.3; echo first >/dev/tty; \
                      sleep 0.3; exec </dev/tty >/dev/tty; read line; echo got:$line; \
                      exec </dev/null >/dev/null; sleep 0.2; echo last >/dev/tty";
        fixture.runtime.block_on(async {
            let mut session = Session::begin(&fixture, on_terminal(sh(script))).await;
            session.shows("first").await;
            // No process may have it open now: then nothing is accepted, and the input is sent
            // again.
            while session.types(b"hello\r").await == 0 {
                tokio::task::yield_now().await;
            }
            session.shows("got:hello").await;
            let done = session.ends().await;
            let text = String::from_utf8_lossy(&output(&done.dir, StreamName::Pty)).into_owned();
            assert!(text.ends_with("last\r\n"), "{text}");
            assert_eq!(done.code(), Some(0));
        });
    }
}

fn closed_is_quiet() {
    let fixture = BackendFixture::new();
    let script = "trap 'exit 4' TERM; echo here; exec </dev/null >/dev/null 2>&1; sleep 1";
    fixture.runtime.block_on(async {
        let mut session = Session::begin(&fixture, on_terminal(sh(script))).await;
        session.shows("here").await;
        let shim = shim_of(members(session.id)[0]);
        let ticks = || {
            let stat = std::fs::read_to_string(format!("/proc/{shim}/stat")).expect("it lives");
            let fields: Vec<u64> = stat
                .rsplit(')')
                .next()
                .expect("a name")
                .split_ascii_whitespace()
                .map(|field| field.parse().unwrap_or(0))
                .collect();
            fields[11] + fields[12]
        };
        let before = ticks();
        let id = session.id;
        let done = session.ends().await;
        assert!(members(id).is_empty());
        assert_eq!(done.code(), Some(0));
        // It slept for a second; a loop that polls a hung-up descriptor never sleeps.
        assert!(ticks() - before < 20, "{} ticks", ticks() - before);
    });
}

fn sizes() {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let script = "echo here; read line; stty size; read line";
        let mut session = Session::begin(&fixture, on_terminal(sh(script))).await;
        session.shows("here").await;
        let signal =
            |number| ControlCommand::Signal(ostler_model::Signal::try_from(number).expect("known"));
        // A process that stops itself in a terminal is continued; one stopped by request stays
        // stopped.
        session.send(signal(libc::SIGSTOP)).await;
        let leader = members(session.id)[0];
        let is_stopped = || {
            let stat = std::fs::read_to_string(format!("/proc/{leader}/stat")).unwrap_or_default();
            stat.contains(") T ")
        };
        wait_until(is_stopped);
        for cols in 1..=200 {
            let size = TermSize { cols, rows: 50 };
            session.send(ControlCommand::Resize(size)).await;
        }
        assert!(is_stopped(), "nothing but an order continues it");
        session.send(signal(libc::SIGCONT)).await;
        session.types(b"\r").await;
        session.shows("50 200").await;
        session.types(b"\r").await;
        let control = std::sync::Arc::clone(&session.handle.control);
        let reports = wait_exit(session.handle).await;
        assert!(reports.journal_error.is_none());
        let late = control
            .send(ControlCommand::Resize(TermSize { cols: 80, rows: 24 }))
            .await;
        assert_eq!(late, Err(ostler_backend::ControlError::Ended));
    });
}

/// In a devpts instance of our own, as the kernel's limit is shared by all users.
fn exhausted() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let own = std::env::current_exe().expect("a path");
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg(
            "mount -t devpts -o newinstance,ptmxmode=0666,max=2 devpts /dev/pts && \
             mount --bind /dev/pts/ptmx /dev/ptmx && exec \"$@\"",
        )
        .args(["sh".as_ref(), own.as_os_str()])
        .arg(THIRD_TERMINAL_ARGUMENT)
        .output()
        .expect("unshare runs");
    let actual = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{actual}");
}

/// The first argument of the role that opens one terminal too many.
pub(crate) const THIRD_TERMINAL_ARGUMENT: &str = "__third_terminal";

/// Two terminals can be opened, the third cannot.
pub(crate) fn third_terminal() -> std::process::ExitCode {
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let plan = || on_terminal(sh("echo here; read line"));
        let mut first = Session::begin(&fixture, plan()).await;
        let mut second = Session::begin(&fixture, plan()).await;
        first.shows("here").await;
        second.shows("here").await;
        let mut third = fixture.backend.spawn(plan()).await.expect("somebody tries");
        let record = next_event(&mut third, |report| match report {
            ProcessEvent::Exited { record, .. } => Some(record.as_ref().clone()),
            _ => None,
        })
        .await;
        let LeaderOutcome::SpawnFailed {
            step,
            errno,
            message,
        } = record.outcome
        else {
            panic!("it ran");
        };
        assert_eq!(step, ostler_backend::STEP_TERMINAL);
        assert_eq!(errno, Some(libc::EAGAIN));
        assert!(message.contains("kernel.pty.max"), "{message}");
        first.stopped(GRACE).await;
        let mut again = Session::begin(&fixture, plan()).await;
        again.shows("here").await;
        again.stopped(GRACE).await;
        second.stopped(GRACE).await;
    });
    std::process::ExitCode::SUCCESS
}
