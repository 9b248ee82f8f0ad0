//! Prompts of real programs over this machine's processes, without a zygote.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::interaction::{CancelReason, QuestionKind};
use ostler_engine::{
    Engine, ExecutionInfo, InteractionOutcome, Prompt, Question, Settings, StartRequest,
    StdinRequest, StopRequest, WaitEnd, WaitFor,
};
use ostler_journal::{LineQuery, OpenLineMode, StreamSet};
use ostler_model::{Caller, Event, Owner, Principal, Scope, SessionName, TermSize};
use tempfile::TempDir;

/// No answer of a test takes longer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long nothing must be seen to count as never; several looks fall into it.
const NEVER: Duration = Duration::from_millis(1_500);

struct PromptFixture {
    engine: Engine,
    _state: TempDir,
}

impl PromptFixture {
    async fn new() -> Self {
        let state = TempDir::new().expect("a directory");
        let place = LocalBackend::open(state.path(), ZygoteConfig::InProcess).await;
        let mut settings = Settings::new(state.path());
        settings.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        settings.grace = Duration::from_millis(500);
        let engine = Engine::open(settings, Arc::new(place.expect("a place"))).await;
        Self {
            engine: engine.expect("an engine"),
            _state: state,
        }
    }

    async fn start(&self, request: StartRequest) -> String {
        let started = self.engine.start(&test_caller(), request).await;
        started.expect("it starts").id.to_string()
    }

    async fn wait(&self, id: &str, until: &WaitFor, at_most: Duration) -> (WaitEnd, ExecutionInfo) {
        let waited = self
            .engine
            .wait(&test_caller(), id, until, Some(at_most))
            .await;
        let waited = waited.expect("known");
        (waited.end, waited.info)
    }

    async fn prompt(&self, id: &str) -> Prompt {
        let (why, _) = self.wait(id, &WaitFor::Prompt, PATIENCE).await;
        let WaitEnd::Prompt(prompt) = why else {
            panic!("{why:?} after {:?}", self.output(id));
        };
        prompt
    }

    async fn expect_no_prompt(&self, id: &str) {
        let why = self.wait(id, &WaitFor::Prompt, NEVER).await.0;
        assert_eq!(why, WaitEnd::TimedOut, "after {:?}", self.output(id));
    }

    async fn write(&self, id: &str, text: &str) {
        let taken = self
            .engine
            .write(&test_caller(), id, text.as_bytes().to_vec())
            .await;
        assert_eq!(taken.expect("taken"), text.len() as u64);
    }

    async fn wait_end(&self, id: &str) -> ExecutionInfo {
        let (why, info) = self.wait(id, &WaitFor::Exit, PATIENCE).await;
        assert_eq!(why, WaitEnd::Exit);
        info
    }

    async fn end(self, id: &str) {
        let request = StopRequest {
            force: true,
            ..StopRequest::default()
        };
        self.engine
            .stop(&test_caller(), id, request)
            .await
            .expect("stopped");
        self.engine.shutdown().await;
    }

    fn output(&self, id: &str) -> String {
        let query = LineQuery {
            streams: StreamSet::OUTPUT,
            unfinished: OpenLineMode::Preview,
            ..LineQuery::default()
        };
        let journal = self.engine.journal(&test_caller(), id).expect("known");
        let page = journal.lines(&query).expect("readable");
        let text =
            |line: ostler_journal::JournalLine| String::from_utf8_lossy(&line.bytes).into_owned();
        page.lines
            .into_iter()
            .map(text)
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn prompts(&self, id: &str) -> Vec<(String, bool)> {
        let records = self.engine.events(&test_caller(), id).expect("readable");
        let told = records.into_iter().filter_map(|record| {
            if let Event::PromptDetected { text, secret } = record.event {
                return Some((text, secret));
            }
            None
        });
        told.collect()
    }
}

fn test_caller() -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: Some(SessionName("one".to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Session,
    }
}

fn piped_request(words: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(words.iter().copied(), "/tmp");
    request.stdin = StdinRequest::Open;
    request
}

fn terminal(words: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(words.iter().copied(), "/tmp");
    request.pty = Some(TermSize { cols: 80, rows: 24 });
    request.set_env = vec![("TERM".into(), "xterm".into())];
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn python_asks_twice_and_is_answered_twice() {
    let lab = PromptFixture::new().await;
    let script = "a = input('First name: '); b = input('Last name [Doe]: '); print(a, b)";
    let id = lab.start(piped_request(&["python3", "-c", script])).await;
    let first = lab.prompt(&id).await;
    assert_eq!(
        (first.text.as_str(), first.kind),
        ("First name: ", QuestionKind::InputRequest)
    );
    assert!(!first.secret && first.options.is_empty() && first.default.is_none());
    // However often somebody looks, it is told once.
    assert_eq!(lab.prompt(&id).await, first);
    assert_eq!(lab.prompts(&id), [("First name: ".to_owned(), false)]);
    let (_, info) = lab.wait(&id, &WaitFor::Nothing, PATIENCE).await;
    assert_eq!(info.state.prompt.as_deref(), Some("First name: "));
    lab.write(&id, "Ann\n").await;
    // Over pipes nothing ends the line of the first one.
    let second = lab.prompt(&id).await;
    assert_eq!(
        (second.text.as_str(), second.default.as_deref()),
        ("Last name [Doe]: ", Some("Doe"))
    );
    lab.write(&id, "Lee\n").await;
    lab.wait_end(&id).await;
    assert_eq!(lab.prompts(&id).len(), 2);
    assert!(lab.output(&id).ends_with("Ann Lee"));
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interaction_for_a_prompt_is_answered_into_the_command() {
    let lab = PromptFixture::new().await;
    let script = "import sys; sys.exit(0 if input('Continue? [y/N] ') == 'y' else 3)";
    let id = lab
        .start(piped_request(&[
            "sh",
            "-c",
            "python3 -c \"$1\"; exit $?",
            "sh",
            script,
        ]))
        .await;
    let prompt = lab.prompt(&id).await;
    assert_eq!(prompt.kind, QuestionKind::Confirmation);
    assert_eq!(
        (prompt.options.clone(), prompt.default.clone()),
        (vec!["y".to_owned(), "N".to_owned()], Some("N".to_owned()))
    );
    let question = Question::from_prompt(prompt, id.parse().expect("an id"));
    let asked = lab
        .engine
        .open_interaction(&test_caller(), question)
        .expect("asked")
        .id
        .to_string();
    let taken = lab
        .engine
        .answer_interaction(&test_caller(), &asked, "yes".to_owned())
        .await;
    taken.expect("taken");
    let answer = lab
        .engine
        .wait_for_answer(&test_caller(), &asked)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::Answered("y".to_owned()));
    let info = lab.wait_end(&id).await;
    assert_eq!(info.state.ending.and_then(|it| it.code), Some(0));
    let records = lab.engine.events(&test_caller(), &id).expect("readable");
    let answered =
        |record: &ostler_model::EventRecord| matches!(record.event, Event::PromptAnswered { .. });
    assert_eq!(records.iter().filter(|it| answered(it)).count(), 1);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_command_cancels_its_question() {
    let lab = PromptFixture::new().await;
    let id = lab.start(piped_request(&["cat"])).await;
    lab.prompt(&id).await;
    let mut question = Question::new(QuestionKind::InputRequest, "");
    question.execution = Some(id.parse().expect("an id"));
    let asked = lab
        .engine
        .open_interaction(&test_caller(), question)
        .expect("asked")
        .id
        .to_string();
    lab.engine
        .close_input(&test_caller(), &id)
        .await
        .expect("closed");
    lab.wait_end(&id).await;
    let answer = lab
        .engine
        .wait_for_answer(&test_caller(), &asked)
        .await
        .expect("known");
    assert_eq!(
        answer,
        InteractionOutcome::Cancelled(CancelReason::AnsweredElsewhere)
    );
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_without_a_word() {
    let lab = PromptFixture::new().await;
    // Without a terminal, bash shows no prompt of `read -p`.
    for words in [
        &["cat"][..],
        &["bash", "-c", "read -p 'Name: ' x; sleep 300"],
        &["sh", "-c", "cat; true"],
    ] {
        let id = lab.start(piped_request(words)).await;
        let prompt = lab.prompt(&id).await;
        assert_eq!(
            (prompt.text.as_str(), prompt.kind),
            ("", QuestionKind::InputRequest),
            "{words:?}"
        );
        assert!(prompt.pid > 0);
    }
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_reads_with_words_of_its_own() {
    let lab = PromptFixture::new().await;
    let script =
        "printf 'Working\\nPassword: '; read x; printf 'Done.\\nPath to key: '; read y; sleep 300";
    let id = lab.start(piped_request(&["bash", "-c", script])).await;
    let prompt = lab.prompt(&id).await;
    assert_eq!((prompt.text.as_str(), prompt.secret), ("Password: ", true));
    lab.write(&id, "x\n").await;
    let prompt = lab.prompt(&id).await;
    assert_eq!(
        (prompt.text.as_str(), prompt.kind),
        ("Path to key: ", QuestionKind::FileSelection)
    );
    lab.write(&id, "y\n").await;
    lab.expect_no_prompt(&id).await;
    lab.end(&id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_menu_of_bash() {
    let lab = PromptFixture::new().await;
    let script = "select x in red green 'dark blue'; do echo got $x; done";
    let id = lab.start(piped_request(&["bash", "-c", script])).await;
    for _ in 0..2 {
        let prompt = lab.prompt(&id).await;
        assert_eq!(
            (prompt.text.as_str(), prompt.kind),
            ("#? ", QuestionKind::ChoiceSelection)
        );
        assert_eq!(prompt.options, ["1) red", "2) green", "3) dark blue"]);
        let question = Question::from_prompt(prompt, id.parse().expect("an id"));
        let asked = lab
            .engine
            .open_interaction(&test_caller(), question)
            .expect("asked")
            .id
            .to_string();
        let value = "dark blue".to_owned();
        lab.engine
            .answer_interaction(&test_caller(), &asked, value)
            .await
            .expect("taken");
    }
    lab.prompt(&id).await;
    assert_eq!(lab.output(&id).matches("got dark blue").count(), 2);
    lab.end(&id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_lines_that_ask() {
    let lab = PromptFixture::new().await;
    let script = "echo 'Delete everything? (yes/no)'; read x; echo 'Your name:'; read y";
    let id = lab.start(piped_request(&["sh", "-c", script])).await;
    let prompt = lab.prompt(&id).await;
    assert_eq!(
        (prompt.text.as_str(), prompt.kind),
        ("Delete everything? (yes/no)", QuestionKind::Confirmation)
    );
    lab.write(&id, "no\n").await;
    assert_eq!(lab.prompt(&id).await.text, "Your name:");
    lab.write(&id, "x\n").await;
    lab.wait_end(&id).await;
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_does_not_ask() {
    let lab = PromptFixture::new().await;
    let words = "printf 'Continue? [y/N] '";
    // Open and not read; behind another command's pipe; at end of file.
    let asleep = lab
        .start(piped_request(&["sh", "-c", &format!("{words}; sleep 300")]))
        .await;
    let piped = lab
        .start(piped_request(&[
            "sh",
            "-c",
            &format!("{words}; sleep 300 | cat"),
        ]))
        .await;
    let mut empty = piped_request(&["sh", "-c", &format!("{words}; cat; exec sleep 300")]);
    empty.stdin = StdinRequest::Empty;
    let empty = lab.start(empty).await;
    let closed = lab
        .start(piped_request(&[
            "sh",
            "-c",
            &format!("cat; {words}; exec sleep 300"),
        ]))
        .await;
    lab.prompt(&closed).await;
    lab.engine
        .close_input(&test_caller(), &closed)
        .await
        .expect("closed");
    let looks = [&asleep, &piped, &empty, &closed].map(|id| lab.expect_no_prompt(id));
    futures_util::future::join_all(looks).await;
    assert!(lab.prompts(&asleep).is_empty());
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_reader_and_an_end_are_noticed() {
    let lab = PromptFixture::new().await;
    let script = "printf 'Name: '; sleep 1; read x; printf 'bye'; sleep 1";
    let id = lab.start(piped_request(&["sh", "-c", script])).await;
    assert_eq!(lab.prompt(&id).await.text, "Name: ");
    lab.write(&id, "x\n").await;
    let (why, _) = lab.wait(&id, &WaitFor::Prompt, PATIENCE).await;
    assert_eq!(why, WaitEnd::Exit);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_hide_show_and_edit() {
    let lab = PromptFixture::new().await;
    // bash shows `read -p` on a terminal; `-s` turns echo off.
    let script = "read -p 'Name: ' x; read -s -p 'Word: ' y; echo; echo \"$x$y\"";
    let id = lab.start(terminal(&["bash", "-c", script])).await;
    let name = lab.prompt(&id).await;
    assert_eq!((name.text.as_str(), name.secret), ("Name: ", false));
    lab.write(&id, "a\n").await;
    let word = lab.prompt(&id).await;
    assert_eq!((word.text.as_str(), word.secret), ("Word: ", true));
    lab.write(&id, "b\n").await;
    lab.wait_end(&id).await;
    assert_eq!(
        lab.prompts(&id),
        [("Name: ".to_owned(), false), ("Word: ".to_owned(), true)]
    );
    // getpass opens /dev/tty.
    let id = lab
        .start(terminal(&[
            "python3",
            "-c",
            "import getpass; getpass.getpass('Key? ')",
        ]))
        .await;
    let key = lab.prompt(&id).await;
    assert_eq!((key.text.as_str(), key.secret), ("Key? ", true));
    // A line editor turns echo off too, and hides nothing.
    let id = lab
        .start(terminal(&["bash", "--norc", "--noprofile", "-i"]))
        .await;
    let shell = lab.prompt(&id).await;
    assert!(!shell.secret && shell.text.contains('#'), "{shell:?}");
    lab.write(&id, "python3 -q\n").await;
    let python = lab.prompt(&id).await;
    assert!(!python.secret && python.text.contains(">>>"), "{python:?}");
    lab.end(&id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_several_things_must_ask_in_words() {
    let lab = PromptFixture::new().await;
    let script = "import os, select, sys\n\
        print(sys.argv[1], end='', flush=True)\n\
        select.select([sys.stdin, os.pipe()[0]], [], [])";
    let asks = lab
        .start(piped_request(&["python3", "-c", script, "Proceed? (y/n) "]))
        .await;
    assert_eq!(lab.prompt(&asks).await.kind, QuestionKind::Confirmation);
    let serves = lab
        .start(piped_request(&[
            "python3",
            "-c",
            script,
            "Local:   http://localhost:3000/\n",
        ]))
        .await;
    lab.expect_no_prompt(&serves).await;
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_after_a_prompt_is_a_new_silence() {
    let lab = PromptFixture::new().await;
    let script = "import sys, threading, time\n\
        def late():\n    time.sleep(0.6); print('\\nstill here\\nName again: ', end='', flush=True)\n\
        threading.Thread(target=late, daemon=True).start()\n\
        print('Name: ', end='', flush=True)\n\
        sys.stdin.readline()";
    let id = lab.start(piped_request(&["python3", "-c", script])).await;
    let first = lab.prompt(&id).await;
    assert_eq!(first.text, "Name: ");
    let again = ostler_journal::Pattern::new("again: $").expect("a pattern");
    lab.wait(&id, &WaitFor::Pattern(again), PATIENCE).await;
    assert_eq!(lab.prompt(&id).await.text, "Name again: ");
    assert_eq!(lab.prompts(&id).len(), 2);
    lab.end(&id).await;
}
