//! What the tests share.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_engine::{
    Engine, Error, Info, Settings, StartRequest, StopRequest, TerminalPage, TerminalQuery, Typed,
    Typing, WaitEnd, WaitFor,
};
use ostler_journal::Pattern;
use ostler_model::{Caller, Owner, Principal, Scope, SessionName, TermSize};
use ostler_process::{Keeper, LocalPlace};
use ostler_terminal::{Piece, View};
use tempfile::TempDir;

/// No answer of a test takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const SIZE: TermSize = TermSize { cols: 80, rows: 24 };

/// An engine of its own, and one session at a time looked at.
pub(crate) struct Lab {
    pub(crate) engine: Engine,
    pub(crate) state: TempDir,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let state = TempDir::new().expect("a directory");
        let place = LocalPlace::open(state.path(), Keeper::None)
            .await
            .expect("a place");
        let mut settings = Settings::new(state.path());
        settings.base_env = vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("LANG".into(), "C.UTF-8".into()),
        ];
        settings.grace = Duration::from_millis(500);
        change(&mut settings);
        let engine = Engine::open(settings, Arc::new(place))
            .await
            .expect("an engine");
        Self { engine, state }
    }

    pub(crate) async fn start(&self, words: &[&str]) -> String {
        self.started(terminal(words)).await.id.to_string()
    }

    pub(crate) async fn started(&self, request: StartRequest) -> Info {
        self.engine.start(&me(), request).await.expect("it starts")
    }

    pub(crate) fn info(&self, id: &str) -> Info {
        self.engine.info(&me(), id).expect("known")
    }

    pub(crate) async fn screen(&self, id: &str) -> View {
        self.engine.screen(&me(), id).await.expect("a screen")
    }

    /// The first screen that is so.
    pub(crate) async fn shows(&self, id: &str, so: impl Fn(&View) -> bool) -> View {
        let mut watch = self.engine.watch(&me(), id).expect("known");
        let seen = async {
            loop {
                watch.look();
                let view = self.screen(id).await;
                if so(&view) {
                    return view;
                }
                watch.changed().await;
            }
        };
        match tokio::time::timeout(PATIENCE, seen).await {
            Ok(view) => view,
            Err(_) => panic!("not so: {:#?}", self.screen(id).await),
        }
    }

    pub(crate) async fn says(&self, id: &str, text: &str) -> View {
        self.shows(id, |view| view.text().contains(text)).await
    }

    pub(crate) async fn types(&self, id: &str, text: &str) -> Typed {
        self.presses(id, vec![Piece::Text(text.to_owned())]).await
    }

    pub(crate) async fn presses(&self, id: &str, pieces: Vec<Piece>) -> Typed {
        let typing = Typing {
            pieces,
            lease: None,
        };
        self.engine
            .type_in(&me(), id, typing)
            .await
            .expect("it can be typed")
    }

    pub(crate) async fn page(
        &self,
        id: &str,
        offset: Option<u64>,
        limit: Option<u64>,
    ) -> TerminalPage {
        self.engine
            .read_terminal(&me(), id, TerminalQuery { offset, limit })
            .await
            .expect("readable")
    }

    pub(crate) async fn waits(&self, id: &str, until: WaitFor) -> WaitEnd {
        let waited = self.engine.wait(&me(), id, &until, Some(PATIENCE)).await;
        let why = waited.expect("known").why;
        assert!(why != WaitEnd::AtMost, "it took too long");
        why
    }

    pub(crate) async fn prints(&self, id: &str, pattern: &str) {
        let until = WaitFor::Pattern(Pattern::new(pattern).expect("a pattern"));
        let why = self.waits(id, until).await;
        assert!(matches!(why, WaitEnd::Pattern(_)), "{pattern}: {why:?}");
    }

    pub(crate) async fn ends(&self, id: &str) -> Info {
        assert_eq!(self.waits(id, WaitFor::Exit).await, WaitEnd::Exit);
        self.info(id)
    }

    pub(crate) async fn stop(&self, id: &str) -> Info {
        let stopped = self.engine.stop(&me(), id, StopRequest::default()).await;
        stopped.expect("it stops")
    }

    pub(crate) fn dir(&self, id: &str) -> PathBuf {
        self.state.path().join("executions").join(id)
    }
}

pub(crate) fn me() -> Caller {
    caller("one")
}

pub(crate) fn caller(session: &str) -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: Some(SessionName(session.to_owned())),
            task: None,
            channel: ostler_model::Channel::Local,
        },
        scope: Scope::Session,
    }
}

pub(crate) fn terminal(words: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(words.iter().copied(), "/tmp");
    request.pty = Some(SIZE);
    request
}

pub(crate) fn key(name: &str) -> Piece {
    Piece::Key(name.parse().expect("a key"))
}

pub(crate) async fn soon<T>(it: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, it).await.expect("soon")
}

/// Whether a file below `dir` holds these bytes.
pub(crate) fn holds(dir: &Path, needle: &[u8]) -> Option<PathBuf> {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            if let Some(found) = holds(&entry.path(), needle) {
                return Some(found);
            }
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).expect("readable");
            if bytes.windows(needle.len()).any(|it| it == needle) {
                return Some(entry.path());
            }
        }
    }
    None
}

pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Error {
    outcome.expect_err("refused")
}
