//! Prompts of real programs over this machine's processes, without a zygote.

use std::time::Duration;

use ostler_engine::interaction::{CancelReason, QuestionKind};
use ostler_engine::{
    InteractionOutcome, Prompt, Question, StartRequest, StdinRequest, WaitEnd, WaitFor,
};
use ostler_journal::{LineQuery, OpenLineMode, StreamSet};
use ostler_model::{Event, TermSize};

use crate::test_engine::{PATIENCE, TestEngine, test_caller};

/// The time after which an event counts as absent; several inspections fall into it.
const NEVER: Duration = Duration::from_millis(1_500);

impl TestEngine {
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
        assert_eq!(taken.expect("accepted"), text.len() as u64);
    }

    async fn end(self, id: &str) {
        self.kill(id).await;
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
        let actual = records.into_iter().filter_map(|record| {
            if let Event::PromptDetected { text, secret } = record.event {
                return Some((text, secret));
            }
            None
        });
        actual.collect()
    }
}

fn piped_request(words: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(words.iter().copied(), "/tmp");
    request.stdin = StdinRequest::Open;
    request
}

fn terminal(words: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(words.iter().copied(), "/tmp");
    request.options.pty = Some(TermSize { cols: 80, rows: 24 });
    request.options.set_env = vec![("TERM".into(), "xterm".into())];
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn python_asks_twice_and_is_answered_twice() {
    let fixture = TestEngine::new().await;
    let script = "a = input('First name: '); b = input('Last name [Doe]: '); print(a, b)";
    let id = fixture
        .start_id(piped_request(&["python3", "-c", script]))
        .await;
    let first = fixture.prompt(&id).await;
    assert_eq!(
        (first.text.as_str(), first.kind),
        ("First name: ", QuestionKind::InputRequest)
    );
    assert!(!first.secret && first.options.is_empty() && first.default.is_none());
    // However often it is queried, it is recorded once.
    assert_eq!(fixture.prompt(&id).await, first);
    assert_eq!(fixture.prompts(&id), [("First name: ".to_owned(), false)]);
    let (_, info) = fixture.wait(&id, &WaitFor::Nothing, PATIENCE).await;
    assert_eq!(info.state.prompt.as_deref(), Some("First name: "));
    fixture.write(&id, "Ann\n").await;
    // Over pipes nothing ends the line of the first one.
    let second = fixture.prompt(&id).await;
    assert_eq!(
        (second.text.as_str(), second.default.as_deref()),
        ("Last name [Doe]: ", Some("Doe"))
    );
    fixture.write(&id, "Lee\n").await;
    fixture.wait_end(&id).await;
    assert_eq!(fixture.prompts(&id).len(), 2);
    assert!(fixture.output(&id).ends_with("Ann Lee"));
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interaction_for_a_prompt_is_answered_into_the_command() {
    let fixture = TestEngine::new().await;
    let script = "import sys; sys.exit(0 if input('Continue? [y/N] ') == 'y' else 3)";
    let id = fixture
        .start_id(piped_request(&[
            "sh",
            "-c",
            "python3 -c \"$1\"; exit $?",
            "sh",
            script,
        ]))
        .await;
    let prompt = fixture.prompt(&id).await;
    assert_eq!(prompt.kind, QuestionKind::Confirmation);
    assert_eq!(
        (prompt.options.clone(), prompt.default.clone()),
        (vec!["y".to_owned(), "N".to_owned()], Some("N".to_owned()))
    );
    let question = Question::from_prompt(&prompt, id.parse().expect("an id"));
    let interaction_id = fixture
        .engine
        .open_interaction(&test_caller(), question)
        .expect("asked")
        .id
        .to_string();
    let taken = fixture
        .engine
        .answer_interaction(&test_caller(), &interaction_id, "yes".to_owned())
        .await;
    taken.expect("accepted");
    let answer = fixture
        .engine
        .wait_for_answer(&test_caller(), &interaction_id)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::Answered("y".to_owned()));
    let info = fixture.wait_end(&id).await;
    assert_eq!(info.state.ending.and_then(|it| it.code), Some(0));
    let records = fixture
        .engine
        .events(&test_caller(), &id)
        .expect("readable");
    let answered =
        |record: &ostler_model::EventRecord| matches!(record.event, Event::PromptAnswered { .. });
    assert_eq!(records.iter().filter(|it| answered(it)).count(), 1);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_command_cancels_its_question() {
    let fixture = TestEngine::new().await;
    let id = fixture.start_id(piped_request(&["cat"])).await;
    fixture.prompt(&id).await;
    let mut question = Question::new(QuestionKind::InputRequest, "");
    question.execution = Some(id.parse().expect("an id"));
    let interaction_id = fixture
        .engine
        .open_interaction(&test_caller(), question)
        .expect("asked")
        .id
        .to_string();
    fixture
        .engine
        .close_input(&test_caller(), &id)
        .await
        .expect("closed");
    fixture.wait_end(&id).await;
    let answer = fixture
        .engine
        .wait_for_answer(&test_caller(), &interaction_id)
        .await
        .expect("known");
    assert_eq!(
        answer,
        InteractionOutcome::Cancelled(CancelReason::AnsweredElsewhere)
    );
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_without_a_word() {
    let fixture = TestEngine::new().await;
    // Without a terminal, bash shows no prompt of `read -p`.
    for words in [
        &["cat"][..],
        &["bash", "-c", "read -p 'Name: ' x; sleep 300"],
        &["sh", "-c", "cat; true"],
    ] {
        let id = fixture.start_id(piped_request(words)).await;
        let prompt = fixture.prompt(&id).await;
        assert_eq!(
            (prompt.text.as_str(), prompt.kind),
            ("", QuestionKind::InputRequest),
            "{words:?}"
        );
        assert!(prompt.pid > 0);
    }
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_reads_with_words_of_its_own() {
    let fixture = TestEngine::new().await;
    let script =
        "printf 'Working\\nPassword: '; read x; printf 'Done.\\nPath to key: '; read y; sleep 300";
    let id = fixture
        .start_id(piped_request(&["bash", "-c", script]))
        .await;
    let prompt = fixture.prompt(&id).await;
    assert_eq!((prompt.text.as_str(), prompt.secret), ("Password: ", true));
    fixture.write(&id, "x\n").await;
    let prompt = fixture.prompt(&id).await;
    assert_eq!(
        (prompt.text.as_str(), prompt.kind),
        ("Path to key: ", QuestionKind::FileSelection)
    );
    fixture.write(&id, "y\n").await;
    fixture.expect_no_prompt(&id).await;
    fixture.end(&id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_menu_of_bash() {
    let fixture = TestEngine::new().await;
    let script = "select x in red green 'dark blue'; do echo got $x; done";
    let id = fixture
        .start_id(piped_request(&["bash", "-c", script]))
        .await;
    for _ in 0..2 {
        let prompt = fixture.prompt(&id).await;
        assert_eq!(
            (prompt.text.as_str(), prompt.kind),
            ("#? ", QuestionKind::ChoiceSelection)
        );
        assert_eq!(prompt.options, ["1) red", "2) green", "3) dark blue"]);
        let question = Question::from_prompt(&prompt, id.parse().expect("an id"));
        let interaction_id = fixture
            .engine
            .open_interaction(&test_caller(), question)
            .expect("asked")
            .id
            .to_string();
        let value = "dark blue".to_owned();
        fixture
            .engine
            .answer_interaction(&test_caller(), &interaction_id, value)
            .await
            .expect("accepted");
    }
    fixture.prompt(&id).await;
    assert_eq!(fixture.output(&id).matches("got dark blue").count(), 2);
    fixture.end(&id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_lines_that_ask() {
    let fixture = TestEngine::new().await;
    let script = "echo 'Delete everything? (yes/no)'; read x; echo 'Your name:'; read y";
    let id = fixture.start_id(piped_request(&["sh", "-c", script])).await;
    let prompt = fixture.prompt(&id).await;
    assert_eq!(
        (prompt.text.as_str(), prompt.kind),
        ("Delete everything? (yes/no)", QuestionKind::Confirmation)
    );
    fixture.write(&id, "no\n").await;
    assert_eq!(fixture.prompt(&id).await.text, "Your name:");
    fixture.write(&id, "x\n").await;
    fixture.wait_end(&id).await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_does_not_ask() {
    let fixture = TestEngine::new().await;
    let words = "printf 'Continue? [y/N] '";
    // Open and not read; behind another command's pipe; at end of file.
    let asleep = fixture
        .start_id(piped_request(&["sh", "-c", &format!("{words}; sleep 300")]))
        .await;
    let piped = fixture
        .start_id(piped_request(&[
            "sh",
            "-c",
            &format!("{words}; sleep 300 | cat"),
        ]))
        .await;
    let mut empty = piped_request(&["sh", "-c", &format!("{words}; cat; exec sleep 300")]);
    empty.stdin = StdinRequest::Empty;
    let empty = fixture.start_id(empty).await;
    let closed = fixture
        .start_id(piped_request(&[
            "sh",
            "-c",
            &format!("cat; {words}; exec sleep 300"),
        ]))
        .await;
    fixture.prompt(&closed).await;
    fixture
        .engine
        .close_input(&test_caller(), &closed)
        .await
        .expect("closed");
    let looks = [&asleep, &piped, &empty, &closed].map(|id| fixture.expect_no_prompt(id));
    futures_util::future::join_all(looks).await;
    assert!(fixture.prompts(&asleep).is_empty());
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_reader_and_an_end_are_noticed() {
    let fixture = TestEngine::new().await;
    let script = "printf 'Name: '; sleep 1; read x; printf 'bye'; sleep 1";
    let id = fixture.start_id(piped_request(&["sh", "-c", script])).await;
    assert_eq!(fixture.prompt(&id).await.text, "Name: ");
    fixture.write(&id, "x\n").await;
    let (why, _) = fixture.wait(&id, &WaitFor::Prompt, PATIENCE).await;
    assert_eq!(why, WaitEnd::Exit);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_hide_show_and_edit() {
    let fixture = TestEngine::new().await;
    // bash shows `read -p` on a terminal; `-s` turns echo off.
    let script = "read -p 'Name: ' x; read -s -p 'Word: ' y; echo; echo \"$x$y\"";
    let id = fixture.start_id(terminal(&["bash", "-c", script])).await;
    let name = fixture.prompt(&id).await;
    assert_eq!((name.text.as_str(), name.secret), ("Name: ", false));
    fixture.write(&id, "a\n").await;
    let word = fixture.prompt(&id).await;
    assert_eq!((word.text.as_str(), word.secret), ("Word: ", true));
    fixture.write(&id, "b\n").await;
    fixture.wait_end(&id).await;
    assert_eq!(
        fixture.prompts(&id),
        [("Name: ".to_owned(), false), ("Word: ".to_owned(), true)]
    );
    // getpass opens /dev/tty.
    let id = fixture
        .start_id(terminal(&[
            "python3",
            "-c",
            "import getpass; getpass.getpass('Key? ')",
        ]))
        .await;
    let key = fixture.prompt(&id).await;
    assert_eq!((key.text.as_str(), key.secret), ("Key? ", true));
    // A line editor turns echo off too, and hides nothing.
    let id = fixture
        .start_id(terminal(&["bash", "--norc", "--noprofile", "-i"]))
        .await;
    let shell = fixture.prompt(&id).await;
    assert!(!shell.secret && shell.text.contains('#'), "{shell:?}");
    fixture.write(&id, "python3 -q\n").await;
    let python = fixture.prompt(&id).await;
    assert!(!python.secret && python.text.contains(">>>"), "{python:?}");
    fixture.end(&id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_several_things_must_ask_in_words() {
    let fixture = TestEngine::new().await;
    let script = "import os, select, sys\n\
        print(sys.argv[1], end='', flush=True)\n\
        select.select([sys.stdin, os.pipe()[0]], [], [])";
    let asks = fixture
        .start_id(piped_request(&["python3", "-c", script, "Proceed? (y/n) "]))
        .await;
    assert_eq!(fixture.prompt(&asks).await.kind, QuestionKind::Confirmation);
    let serves = fixture
        .start_id(piped_request(&[
            "python3",
            "-c",
            script,
            "Local:   http://localhost:3000/\n",
        ]))
        .await;
    fixture.expect_no_prompt(&serves).await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_after_a_prompt_is_a_new_silence() {
    let fixture = TestEngine::new().await;
    let signal = tempfile::NamedTempFile::new().expect("a file");
    let script = "import os, sys, threading, time\n\
        def late():\n    while os.path.exists(sys.argv[1]): time.sleep(0.02)\n    print('\\nstill here\\nName again: ', end='', flush=True)\n\
        threading.Thread(target=late, daemon=True).start()\n\
        print('Name: ', end='', flush=True)\n\
        sys.stdin.readline()";
    let path = signal.path().display().to_string();
    let id = fixture
        .start_id(piped_request(&["python3", "-c", script, &path]))
        .await;
    let first = fixture.prompt(&id).await;
    assert_eq!(first.text, "Name: ");
    signal.close().expect("removed");
    let again = ostler_journal::Pattern::new("again: $").expect("a pattern");
    fixture.wait(&id, &WaitFor::Pattern(again), PATIENCE).await;
    assert_eq!(fixture.prompt(&id).await.text, "Name again: ");
    assert_eq!(fixture.prompts(&id).len(), 2);
    fixture.end(&id).await;
}
