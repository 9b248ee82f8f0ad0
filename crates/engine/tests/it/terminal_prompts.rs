//! Prompts of real programs on terminals: kernel evidence first, the screen second, words last.

use std::time::Duration;

use ostler_engine::interaction::QuestionKind;
use ostler_engine::{Engine, Prompt, StartRequest, StopRequest, WaitEnd, WaitFor};
use ostler_model::{Event, TermSize};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use crate::test_engine::{PATIENCE, open_engine, test_caller};

/// The time after which an event counts as absent; several inspections fall into it.
const NEVER: Duration = Duration::from_millis(1_500);
/// How long a program may take to answer an interrupt before it gets another.
const INTERRUPT: Duration = Duration::from_secs(5);

struct TerminalPromptFixture {
    engine: Engine,
    home: TempDir,
    _state: TempDir,
}

impl TerminalPromptFixture {
    async fn new() -> Self {
        let state = TempDir::new().expect("a directory");
        let home = TempDir::new().expect("a directory");
        let engine = open_engine(state.path(), |settings| {
            settings.base_env = vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                ("LC_ALL".into(), "C.UTF-8".into()),
                ("HOME".into(), home.path().into()),
                ("NODE_REPL_HISTORY".into(), "".into()),
            ];
        });
        Self {
            engine: engine.await,
            home,
            _state: state,
        }
    }

    async fn start(&self, words: &[&str]) -> String {
        self.start_with(words, &[]).await
    }

    async fn start_with(&self, words: &[&str], env: &[(&str, &str)]) -> String {
        let home = self.home.path().to_string_lossy().into_owned();
        let mut request = StartRequest::argv(words.iter().copied(), home.as_str());
        request.options.pty = Some(TermSize { cols: 80, rows: 24 });
        let pairs = env.iter();
        request.options.set_env = pairs
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let started = self.engine.start(&test_caller(), request).await;
        started.expect("it starts").id.to_string()
    }

    async fn wait_for(&self, id: &str, until: &WaitFor, at_most: Duration) -> WaitEnd {
        let waited = self
            .engine
            .wait(&test_caller(), id, until, Some(at_most))
            .await;
        waited.expect("known").end
    }

    async fn prompt(&self, id: &str) -> Prompt {
        let why = self.wait_for(id, &WaitFor::Prompt, PATIENCE).await;
        let WaitEnd::Prompt(prompt) = why else {
            panic!("{why:?} of {}", self.screen(id).await);
        };
        prompt
    }

    /// The first prompt that satisfies the condition: an earlier one may still be current.
    async fn prompt_of(&self, id: &str, condition: impl Fn(&Prompt) -> bool) -> Prompt {
        let give_up_at = Instant::now() + PATIENCE;
        loop {
            let prompt = self.prompt(id).await;
            if condition(&prompt) {
                return prompt;
            }
            let screen = self.screen(id).await;
            assert!(Instant::now() < give_up_at, "{prompt:?} of {screen}");
        }
    }

    async fn wait_prompt_text(&self, id: &str, text: &str) -> Prompt {
        self.prompt_of(id, |prompt| prompt.text == text).await
    }

    async fn expect_no_prompt(&self, id: &str) {
        let why = self.wait_for(id, &WaitFor::Prompt, NEVER).await;
        assert_eq!(why, WaitEnd::TimedOut, "of {}", self.screen(id).await);
    }

    async fn type_text(&self, id: &str, text: &str) {
        let taken = self
            .engine
            .write(&test_caller(), id, text.as_bytes().to_vec())
            .await;
        assert_eq!(taken.expect("accepted"), text.len() as u64);
    }

    async fn screen(&self, id: &str) -> String {
        let view = self
            .engine
            .screen(&test_caller(), id)
            .await
            .expect("a screen");
        view.text()
    }

    async fn wait_output(&self, id: &str, pattern: &str) {
        let pattern = ostler_journal::Pattern::new(pattern).expect("a pattern");
        let why = self
            .wait_for(id, &WaitFor::Pattern(pattern), PATIENCE)
            .await;
        assert!(matches!(why, WaitEnd::Pattern { .. }), "{why:?}");
    }

    async fn stop(&self, id: &str) {
        let request = StopRequest {
            force: true,
            ..StopRequest::default()
        };
        self.engine
            .stop(&test_caller(), id, request)
            .await
            .expect("stopped");
    }

    async fn end(self) {
        let ended = timeout(PATIENCE, self.engine.shutdown()).await;
        assert!(ended.is_ok(), "the engine ends");
    }
}

fn is_plain(prompt: &Prompt) -> bool {
    prompt.kind == QuestionKind::InputRequest && !prompt.secret && prompt.options.is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_at_their_prompts() {
    let fixture = TerminalPromptFixture::new().await;
    // These programs have prompts without any typical character.
    let bash = &["bash", "--norc", "--noprofile", "-i"];
    let bash = fixture
        .start_with(bash, &[("PS1", "\\[\\e[1m\\]so far so good\\[\\e[0m\\] ")])
        .await;
    assert!(is_plain(
        &fixture.wait_prompt_text(&bash, "so far so good ").await
    ));
    fixture.type_text(&bash, "sleep 300\r").await;
    fixture.wait_output(&bash, "sleep 300").await;
    fixture.expect_no_prompt(&bash).await;
    fixture.type_text(&bash, "\x03").await;
    fixture.wait_prompt_text(&bash, "so far so good ").await;
    fixture.type_text(&bash, "echo half").await;
    fixture
        .wait_prompt_text(&bash, "so far so good echo half")
        .await;
    let zsh = fixture
        .start_with(
            &["zsh", "-f", "-i"],
            &[("PS1", "at your service "), ("RPS1", "right")],
        )
        .await;
    assert!(is_plain(
        &fixture.wait_prompt_text(&zsh, "at your service ").await
    ));
    let fish = fixture.start(&["fish", "--no-config", "-i"]).await;
    let prompt = fixture
        .prompt_of(&fish, |prompt| prompt.text.ends_with(['#', '>', ' ']))
        .await;
    assert!(
        is_plain(&prompt) && !prompt.text.contains('\x1b'),
        "{prompt:?}"
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interpreters_at_their_prompts() {
    let fixture = TerminalPromptFixture::new().await;
    let python = fixture.start(&["python3", "-q"]).await;
    assert!(is_plain(&fixture.wait_prompt_text(&python, ">>> ").await));
    fixture.type_text(&python, "def f():\r").await;
    assert!(is_plain(&fixture.wait_prompt_text(&python, "... ").await));
    let node = fixture.start(&["node", "-i"]).await;
    assert!(is_plain(&fixture.wait_prompt_text(&node, "> ").await));
    fixture
        .type_text(&node, "setTimeout(() => console.log('so', 'late'), 500)\r")
        .await;
    fixture.wait_output(&node, "so late").await;
    fixture.type_text(&node, "while (true) {}\r").await;
    fixture.wait_output(&node, "while \\(true\\)").await;
    // Typed before the loop runs, it is a character that node never reads; then another follows.
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        fixture.type_text(&node, "\x03").await;
        let end = fixture.wait_for(&node, &WaitFor::Prompt, INTERRUPT).await;
        if matches!(&end, WaitEnd::Prompt(prompt) if prompt.text == "> ") {
            break;
        }
        let screen = fixture.screen(&node).await;
        assert!(Instant::now() < give_up_at, "{end:?} of {screen}");
    }
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_in_lines() {
    let fixture = TerminalPromptFixture::new().await;
    let script = "read -p 'Name: ' a; read -p 'Do you want to continue? [Y/n] ' b; \
                  select c in red green; do break; done; printf 'Working'; sleep 300";
    let id = fixture.start(&["bash", "-c", script]).await;
    assert!(is_plain(&fixture.wait_prompt_text(&id, "Name: ").await));
    fixture.type_text(&id, "Ann\r").await;
    let apt = fixture
        .wait_prompt_text(&id, "Do you want to continue? [Y/n] ")
        .await;
    assert_eq!(
        (apt.kind, apt.default.as_deref()),
        (QuestionKind::Confirmation, Some("Y"))
    );
    fixture.type_text(&id, "y\r").await;
    let menu = fixture.wait_prompt_text(&id, "#? ").await;
    assert_eq!(menu.kind, QuestionKind::ChoiceSelection);
    assert_eq!(menu.options, ["1) red", "2) green"]);
    fixture.type_text(&id, "2\r").await;
    fixture.wait_output(&id, "Working").await;
    fixture.expect_no_prompt(&id).await;
    // A program that does not read has no prompt, whatever it prints.
    let says = fixture
        .start(&["sh", "-c", "printf 'Continue? [y/N] '; exec sleep 300"])
        .await;
    fixture.expect_no_prompt(&says).await;
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_shown() {
    let fixture = TerminalPromptFixture::new().await;
    let getpass = "import getpass; getpass.getpass('What is it? '); input('And this? ')";
    let id = fixture.start(&["python3", "-c", getpass]).await;
    assert!(fixture.wait_prompt_text(&id, "What is it? ").await.secret);
    fixture.type_text(&id, "hunter2\r").await;
    assert!(!fixture.wait_prompt_text(&id, "And this? ").await.secret);
    let id = fixture
        .start(&["bash", "-c", "read -s -p 'Word: ' a; read b; sleep 300"])
        .await;
    assert!(fixture.wait_prompt_text(&id, "Word: ").await.secret);
    fixture.type_text(&id, "hunter2\r").await;
    // It was answered, and the next prompt has no text.
    assert!(is_plain(&fixture.wait_prompt_text(&id, "").await));
    let key = fixture
        .start(&["ssh-keygen", "-t", "ed25519", "-f", "key"])
        .await;
    let first = fixture
        .prompt_of(&key, |prompt| prompt.text.contains("passphrase"))
        .await;
    assert!(first.secret, "{first:?}");
    fixture.type_text(&key, "correct horse\r").await;
    let again = fixture
        .prompt_of(&key, |prompt| prompt.text.contains("again"))
        .await;
    assert!(again.secret, "{again:?}");
    fixture.type_text(&key, "correct horse\r").await;
    assert_eq!(
        fixture.wait_for(&key, &WaitFor::Exit, PATIENCE).await,
        WaitEnd::Exit
    );
    assert!(fixture.home.path().join("key.pub").exists());
    assert!(!fixture.screen(&key).await.contains("correct horse"));
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn git_asks_for_each_hunk() {
    let fixture = TerminalPromptFixture::new().await;
    let script = "git init -q . && git config user.email a@b && git config user.name a && \
                  echo one >f && git add f && git commit -qm one && echo two >f && git add -p";
    let id = fixture.start(&["sh", "-c", script]).await;
    let hunk = fixture
        .prompt_of(&id, |prompt| prompt.text.contains("Stage this hunk"))
        .await;
    assert_eq!(hunk.kind, QuestionKind::ChoiceSelection, "{hunk:?}");
    assert!(hunk.options.contains(&"y".to_owned()) && !hunk.text.contains('\x1b'));
    fixture.type_text(&id, "y\r").await;
    assert_eq!(
        fixture.wait_for(&id, &WaitFor::Exit, PATIENCE).await,
        WaitEnd::Exit
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pagers_take_keys() {
    let fixture = TerminalPromptFixture::new().await;
    let id = fixture
        .start_with(&["sh", "-c", "seq 1000 | less"], &[("LESS", "")])
        .await;
    assert!(is_plain(&fixture.wait_prompt_text(&id, ":").await));
    fixture.type_text(&id, "G").await;
    assert!(is_plain(&fixture.wait_prompt_text(&id, "(END)").await));
    fixture.type_text(&id, "q").await;
    assert_eq!(
        fixture.wait_for(&id, &WaitFor::Exit, PATIENCE).await,
        WaitEnd::Exit
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_screens_take_keys() {
    let fixture = TerminalPromptFixture::new().await;
    let vim = fixture
        .start(&["vim", "-u", "NONE", "-N", "notes.txt"])
        .await;
    assert!(is_plain(&fixture.wait_prompt_text(&vim, "").await));
    // Edited text is not a prompt.
    fixture.type_text(&vim, "iPassword: ").await;
    fixture.wait_output(&vim, "Password: ").await;
    assert!(is_plain(&fixture.wait_prompt_text(&vim, "").await));
    let again = fixture
        .start(&["vim", "-u", "NONE", "-N", "notes.txt"])
        .await;
    let swap = fixture
        .prompt_of(&again, |prompt| prompt.text.contains("bort"))
        .await;
    assert!(!swap.secret, "{swap:?}");
    fixture.type_text(&vim, "\x1b:q!\r").await;
    assert_eq!(
        fixture.wait_for(&vim, &WaitFor::Exit, PATIENCE).await,
        WaitEnd::Exit
    );
    fixture.stop(&again).await;
    let top = fixture.start(&["top", "-d", "3"]).await;
    let prompt = fixture.prompt(&top).await;
    assert_eq!(prompt.kind, QuestionKind::InputRequest, "{prompt:?}");
    fixture.type_text(&top, "q").await;
    assert_eq!(
        fixture.wait_for(&top, &WaitFor::Exit, PATIENCE).await,
        WaitEnd::Exit
    );
    fixture.end().await;
}

/// Keys from the terminal by another name, while something else is waited for too.
const PICKER: &str = "import os, select, sys, tty\n\
    keys = os.open('/dev/tty', os.O_RDWR)\n\
    tty.setraw(keys)\n\
    os.write(keys, sys.argv[1].encode().decode('unicode_escape').encode())\n\
    select.select([keys, os.pipe()[0]], [], [])";

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_keys_among_other_things() {
    let fixture = TerminalPromptFixture::new().await;
    let picker = "true | python3 -c \"$1\" \"$2\"";
    let start = async |text: &str| {
        fixture
            .start(&["sh", "-c", picker, "sh", PICKER, text])
            .await
    };
    let menu = start("\\x1b[?1049h\\x1b[2Jone\\r\\ntwo\\r\\n\\x1b[24;1H> ").await;
    assert!(is_plain(&fixture.wait_prompt_text(&menu, ">").await));
    let asks = start("\\x1b[1mProceed?\\x1b[0m (y/n) ").await;
    assert_eq!(
        fixture
            .wait_prompt_text(&asks, "Proceed? (y/n) ")
            .await
            .kind,
        QuestionKind::Confirmation
    );
    let watches = start("press h for help\\r\\n").await;
    fixture.expect_no_prompt(&watches).await;
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_within_the_terminal() {
    let fixture = TerminalPromptFixture::new().await;
    let script = "printf Working; sleep 1; read -s -p ' Word: ' a; sleep 300";
    let inner = format!("bash -c \"{script}\"");
    let id = fixture
        .start(&["script", "-q", "-c", &inner, "/dev/null"])
        .await;
    fixture.wait_output(&id, "Working").await;
    let prompt = fixture
        .prompt_of(&id, |prompt| prompt.text.ends_with("Word: "))
        .await;
    assert!(prompt.secret, "{prompt:?}");
    fixture.type_text(&id, "x\r").await;
    fixture.expect_no_prompt(&id).await;
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_recorded_once_and_without_escapes() {
    let fixture = TerminalPromptFixture::new().await;
    let script = "printf '\\033[1mName\\033[0m: '; read a";
    let id = fixture.start(&["bash", "-c", script]).await;
    fixture.wait_prompt_text(&id, "Name: ").await;
    fixture.wait_prompt_text(&id, "Name: ").await;
    let records = fixture
        .engine
        .events(&test_caller(), &id)
        .expect("readable");
    let actual: Vec<String> = records
        .into_iter()
        .filter_map(|record| {
            if let Event::PromptDetected { text, .. } = record.event {
                return Some(text);
            }
            None
        })
        .collect();
    assert_eq!(actual, ["Name: "]);
    fixture.end().await;
}
