//! Prompts of real programs on terminals: kernel evidence first, the screen second, words last.

use std::sync::Arc;
use std::time::Duration;

use ostler_engine::interaction::Kind;
use ostler_engine::{Engine, Prompt, Settings, StartRequest, StopRequest, WaitEnd, WaitFor};
use ostler_model::{Caller, Event, Owner, Principal, Scope, SessionName, TermSize};
use ostler_process::{Keeper, LocalPlace};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

/// No answer of a test takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing must be seen to count as never; several looks fall into it.
const NEVER: Duration = Duration::from_millis(1_500);

struct Lab {
    engine: Engine,
    home: TempDir,
    _state: TempDir,
}

impl Lab {
    async fn new() -> Self {
        let state = TempDir::new().expect("a directory");
        let home = TempDir::new().expect("a directory");
        let place = LocalPlace::open(state.path(), Keeper::None).await;
        let mut settings = Settings::new(state.path());
        settings.base_env = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("LC_ALL".into(), "C.UTF-8".into()),
            ("HOME".into(), home.path().to_string_lossy().as_ref().into()),
            ("NODE_REPL_HISTORY".into(), "".into()),
        ];
        settings.grace = Duration::from_millis(500);
        let engine = Engine::open(settings, Arc::new(place.expect("a place"))).await;
        Self {
            engine: engine.expect("an engine"),
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
        request.pty = Some(TermSize { cols: 80, rows: 24 });
        let pairs = env.iter();
        request.set_env = pairs
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let started = self.engine.start(&me(), request).await;
        started.expect("it starts").id.to_string()
    }

    async fn why(&self, id: &str, until: &WaitFor, at_most: Duration) -> WaitEnd {
        let waited = self.engine.wait(&me(), id, until, Some(at_most)).await;
        waited.expect("known").why
    }

    async fn prompt(&self, id: &str) -> Prompt {
        let why = self.why(id, &WaitFor::Prompt, PATIENCE).await;
        let WaitEnd::Prompt(prompt) = why else {
            panic!("{why:?} of {}", self.screen(id).await);
        };
        prompt
    }

    /// The first prompt that is this one: one before it may still stand when it is looked for.
    async fn prompt_of(&self, id: &str, wanted: impl Fn(&Prompt) -> bool) -> Prompt {
        let give_up_at = Instant::now() + PATIENCE;
        loop {
            let prompt = self.prompt(id).await;
            if wanted(&prompt) {
                return prompt;
            }
            let screen = self.screen(id).await;
            assert!(Instant::now() < give_up_at, "{prompt:?} of {screen}");
        }
    }

    async fn asks(&self, id: &str, text: &str) -> Prompt {
        self.prompt_of(id, |prompt| prompt.text == text).await
    }

    async fn no_prompt(&self, id: &str) {
        let why = self.why(id, &WaitFor::Prompt, NEVER).await;
        assert_eq!(why, WaitEnd::AtMost, "of {}", self.screen(id).await);
    }

    async fn types(&self, id: &str, text: &str) {
        let taken = self.engine.write(&me(), id, text.as_bytes().to_vec()).await;
        assert_eq!(taken.expect("taken"), text.len() as u64);
    }

    async fn screen(&self, id: &str) -> String {
        let view = self.engine.screen(&me(), id).await.expect("a screen");
        view.text()
    }

    async fn printed(&self, id: &str, pattern: &str) {
        let pattern = ostler_journal::Pattern::new(pattern).expect("a pattern");
        let why = self.why(id, &WaitFor::Pattern(pattern), PATIENCE).await;
        assert!(matches!(why, WaitEnd::Pattern { .. }), "{why:?}");
    }

    async fn stop(&self, id: &str) {
        let request = StopRequest {
            force: true,
            ..StopRequest::default()
        };
        self.engine.stop(&me(), id, request).await.expect("stopped");
    }

    async fn end(self) {
        let ended = timeout(PATIENCE, self.engine.shutdown()).await;
        assert!(ended.is_ok(), "the engine ends");
    }
}

fn me() -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: Some(SessionName("one".to_owned())),
            task: None,
            channel: ostler_model::Channel::Local,
        },
        scope: Scope::Session,
    }
}

fn is_plain(prompt: &Prompt) -> bool {
    prompt.kind == Kind::InputRequest && !prompt.secret && prompt.options.is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_at_their_prompts() {
    let lab = Lab::new().await;
    // No character of these says that they ask.
    let bash = &["bash", "--norc", "--noprofile", "-i"];
    let bash = lab
        .start_with(bash, &[("PS1", "\\[\\e[1m\\]so far so good\\[\\e[0m\\] ")])
        .await;
    assert!(is_plain(&lab.asks(&bash, "so far so good ").await));
    lab.types(&bash, "sleep 300\r").await;
    lab.printed(&bash, "sleep 300").await;
    lab.no_prompt(&bash).await;
    lab.types(&bash, "\x03").await;
    lab.asks(&bash, "so far so good ").await;
    lab.types(&bash, "echo half").await;
    lab.asks(&bash, "so far so good echo half").await;
    let zsh = lab
        .start_with(
            &["zsh", "-f", "-i"],
            &[("PS1", "at your service "), ("RPS1", "right")],
        )
        .await;
    assert!(is_plain(&lab.asks(&zsh, "at your service ").await));
    let fish = lab.start(&["fish", "--no-config", "-i"]).await;
    let prompt = lab
        .prompt_of(&fish, |prompt| prompt.text.ends_with(['#', '>', ' ']))
        .await;
    assert!(
        is_plain(&prompt) && !prompt.text.contains('\x1b'),
        "{prompt:?}"
    );
    lab.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interpreters_at_their_prompts() {
    let lab = Lab::new().await;
    let python = lab.start(&["python3", "-q"]).await;
    assert!(is_plain(&lab.asks(&python, ">>> ").await));
    lab.types(&python, "def f():\r").await;
    assert!(is_plain(&lab.asks(&python, "... ").await));
    let node = lab.start(&["node", "-i"]).await;
    assert!(is_plain(&lab.asks(&node, "> ").await));
    lab.types(&node, "setTimeout(() => console.log('so', 'late'), 500)\r")
        .await;
    lab.printed(&node, "so late").await;
    lab.types(&node, "while (true) {}\r").await;
    lab.printed(&node, "while \\(true\\)").await;
    lab.types(&node, "\x03").await;
    lab.asks(&node, "> ").await;
    lab.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_in_lines() {
    let lab = Lab::new().await;
    let script = "read -p 'Name: ' a; read -p 'Do you want to continue? [Y/n] ' b; \
                  select c in red green; do break; done; printf 'Working'; sleep 300";
    let id = lab.start(&["bash", "-c", script]).await;
    assert!(is_plain(&lab.asks(&id, "Name: ").await));
    lab.types(&id, "Ann\r").await;
    let apt = lab.asks(&id, "Do you want to continue? [Y/n] ").await;
    assert_eq!(
        (apt.kind, apt.default.as_deref()),
        (Kind::Confirmation, Some("Y"))
    );
    lab.types(&id, "y\r").await;
    let menu = lab.asks(&id, "#? ").await;
    assert_eq!(menu.kind, Kind::ChoiceSelection);
    assert_eq!(menu.options, ["1) red", "2) green"]);
    lab.types(&id, "2\r").await;
    lab.printed(&id, "Working").await;
    lab.no_prompt(&id).await;
    // Who does not read does not ask, whatever it says.
    let says = lab
        .start(&["sh", "-c", "printf 'Continue? [y/N] '; exec sleep 300"])
        .await;
    lab.no_prompt(&says).await;
    lab.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_shown() {
    let lab = Lab::new().await;
    let getpass = "import getpass; getpass.getpass('What is it? '); input('And this? ')";
    let id = lab.start(&["python3", "-c", getpass]).await;
    assert!(lab.asks(&id, "What is it? ").await.secret);
    lab.types(&id, "hunter2\r").await;
    assert!(!lab.asks(&id, "And this? ").await.secret);
    let id = lab
        .start(&["bash", "-c", "read -s -p 'Word: ' a; read b; sleep 300"])
        .await;
    assert!(lab.asks(&id, "Word: ").await.secret);
    lab.types(&id, "hunter2\r").await;
    // It was answered, and the next one says nothing.
    assert!(is_plain(&lab.asks(&id, "").await));
    let key = lab
        .start(&["ssh-keygen", "-t", "ed25519", "-f", "key"])
        .await;
    let first = lab
        .prompt_of(&key, |prompt| prompt.text.contains("passphrase"))
        .await;
    assert!(first.secret, "{first:?}");
    lab.types(&key, "correct horse\r").await;
    let again = lab
        .prompt_of(&key, |prompt| prompt.text.contains("again"))
        .await;
    assert!(again.secret, "{again:?}");
    lab.types(&key, "correct horse\r").await;
    assert_eq!(lab.why(&key, &WaitFor::Exit, PATIENCE).await, WaitEnd::Exit);
    assert!(lab.home.path().join("key.pub").exists());
    assert!(!lab.screen(&key).await.contains("correct horse"));
    lab.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn git_asks_for_each_hunk() {
    let lab = Lab::new().await;
    let script = "git init -q . && git config user.email a@b && git config user.name a && \
                  echo one >f && git add f && git commit -qm one && echo two >f && git add -p";
    let id = lab.start(&["sh", "-c", script]).await;
    let hunk = lab
        .prompt_of(&id, |prompt| prompt.text.contains("Stage this hunk"))
        .await;
    assert_eq!(hunk.kind, Kind::ChoiceSelection, "{hunk:?}");
    assert!(hunk.options.contains(&"y".to_owned()) && !hunk.text.contains('\x1b'));
    lab.types(&id, "y\r").await;
    assert_eq!(lab.why(&id, &WaitFor::Exit, PATIENCE).await, WaitEnd::Exit);
    lab.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pagers_take_keys() {
    let lab = Lab::new().await;
    let id = lab
        .start_with(&["sh", "-c", "seq 1000 | less"], &[("LESS", "")])
        .await;
    assert!(is_plain(&lab.asks(&id, ":").await));
    lab.types(&id, "G").await;
    assert!(is_plain(&lab.asks(&id, "(END)").await));
    lab.types(&id, "q").await;
    assert_eq!(lab.why(&id, &WaitFor::Exit, PATIENCE).await, WaitEnd::Exit);
    lab.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_screens_take_keys() {
    let lab = Lab::new().await;
    let vim = lab.start(&["vim", "-u", "NONE", "-N", "notes.txt"]).await;
    assert!(is_plain(&lab.asks(&vim, "").await));
    // What is edited asks for nothing.
    lab.types(&vim, "iPassword: ").await;
    lab.printed(&vim, "Password: ").await;
    assert!(is_plain(&lab.asks(&vim, "").await));
    let again = lab.start(&["vim", "-u", "NONE", "-N", "notes.txt"]).await;
    let swap = lab
        .prompt_of(&again, |prompt| prompt.text.contains("bort"))
        .await;
    assert!(!swap.secret, "{swap:?}");
    lab.types(&vim, "\x1b:q!\r").await;
    assert_eq!(lab.why(&vim, &WaitFor::Exit, PATIENCE).await, WaitEnd::Exit);
    lab.stop(&again).await;
    let top = lab.start(&["top", "-d", "3"]).await;
    let prompt = lab.prompt(&top).await;
    assert_eq!(prompt.kind, Kind::InputRequest, "{prompt:?}");
    lab.types(&top, "q").await;
    assert_eq!(lab.why(&top, &WaitFor::Exit, PATIENCE).await, WaitEnd::Exit);
    lab.end().await;
}

/// Keys from the terminal by another name, while something else is waited for too.
const PICKER: &str = "import os, select, sys, tty\n\
    keys = os.open('/dev/tty', os.O_RDWR)\n\
    tty.setraw(keys)\n\
    os.write(keys, sys.argv[1].encode().decode('unicode_escape').encode())\n\
    select.select([keys, os.pipe()[0]], [], [])";

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_keys_among_other_things() {
    let lab = Lab::new().await;
    let picker = "true | python3 -c \"$1\" \"$2\"";
    let start = async |text: &str| lab.start(&["sh", "-c", picker, "sh", PICKER, text]).await;
    let menu = start("\\x1b[?1049h\\x1b[2Jone\\r\\ntwo\\r\\n\\x1b[24;1H> ").await;
    assert!(is_plain(&lab.asks(&menu, ">").await));
    let asks = start("\\x1b[1mProceed?\\x1b[0m (y/n) ").await;
    assert_eq!(
        lab.asks(&asks, "Proceed? (y/n) ").await.kind,
        Kind::Confirmation
    );
    let watches = start("press h for help\\r\\n").await;
    lab.no_prompt(&watches).await;
    lab.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_within_the_terminal() {
    let lab = Lab::new().await;
    let script = "printf Working; sleep 1; read -s -p ' Word: ' a; sleep 300";
    let inner = format!("bash -c \"{script}\"");
    let id = lab
        .start(&["script", "-q", "-c", &inner, "/dev/null"])
        .await;
    lab.printed(&id, "Working").await;
    let prompt = lab
        .prompt_of(&id, |prompt| prompt.text.ends_with("Word: "))
        .await;
    assert!(prompt.secret, "{prompt:?}");
    lab.types(&id, "x\r").await;
    lab.no_prompt(&id).await;
    lab.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_told_once_and_without_escapes() {
    let lab = Lab::new().await;
    let script = "printf '\\033[1mName\\033[0m: '; read a";
    let id = lab.start(&["bash", "-c", script]).await;
    lab.asks(&id, "Name: ").await;
    lab.asks(&id, "Name: ").await;
    let records = lab.engine.events(&me(), &id).expect("readable");
    let told: Vec<String> = records
        .into_iter()
        .filter_map(|record| {
            if let Event::PromptDetected { text, .. } = record.event {
                return Some(text);
            }
            None
        })
        .collect();
    assert_eq!(told, ["Name: "]);
    lab.end().await;
}
