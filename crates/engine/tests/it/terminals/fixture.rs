//! What the tests share.

use std::future::Future;
use std::path::{Path, PathBuf};

use ostler_engine::{
    Engine, Error, ExecutionInfo, Settings, StartRequest, StopRequest, TerminalInput,
    TerminalInputResult, TerminalPage, TerminalPageQuery, WaitEnd, WaitFor,
};
use ostler_journal::Pattern;
use ostler_model::TermSize;
use ostler_terminal::{InputPiece, ScreenSnapshot};
use tempfile::TempDir;

use crate::test_engine::{PATIENCE, open_engine, test_caller};

pub(crate) const SIZE: TermSize = TermSize { cols: 80, rows: 24 };

/// An engine for one test, and helpers for one session.
pub(crate) struct TerminalFixture {
    pub(crate) engine: Engine,
    pub(crate) state: TempDir,
}

impl TerminalFixture {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let state = TempDir::new().expect("a directory");
        let engine = open_engine(state.path(), |settings| {
            settings.base_env.push(("LANG".into(), "C.UTF-8".into()));
            change(settings);
        });
        let engine = engine.await;
        Self { engine, state }
    }

    pub(crate) async fn start(&self, words: &[&str]) -> String {
        self.start_request(terminal(words)).await.id.to_string()
    }

    pub(crate) async fn start_request(&self, request: StartRequest) -> ExecutionInfo {
        self.engine
            .start(&test_caller(), request)
            .await
            .expect("it starts")
    }

    pub(crate) fn info(&self, id: &str) -> ExecutionInfo {
        self.engine.info(&test_caller(), id).expect("known")
    }

    pub(crate) async fn screen(&self, id: &str) -> ScreenSnapshot {
        self.engine
            .screen(&test_caller(), id)
            .await
            .expect("a screen")
    }

    /// The first screen that is so.
    pub(crate) async fn wait_screen(
        &self,
        id: &str,
        condition: impl Fn(&ScreenSnapshot) -> bool,
    ) -> ScreenSnapshot {
        let mut watch = self.engine.watch(&test_caller(), id).expect("known");
        let seen = async {
            loop {
                watch.refresh();
                let view = self.screen(id).await;
                if condition(&view) {
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

    pub(crate) async fn wait_text(&self, id: &str, text: &str) -> ScreenSnapshot {
        self.wait_screen(id, |view| view.text().contains(text))
            .await
    }

    pub(crate) async fn type_text(&self, id: &str, text: &str) -> TerminalInputResult {
        self.press_keys(id, vec![InputPiece::Text(text.to_owned())])
            .await
    }

    pub(crate) async fn press_keys(
        &self,
        id: &str,
        pieces: Vec<InputPiece>,
    ) -> TerminalInputResult {
        let typing = TerminalInput {
            pieces,
            lease: None,
        };
        self.engine
            .send_input(&test_caller(), id, typing)
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
            .read_terminal(&test_caller(), id, TerminalPageQuery { offset, limit })
            .await
            .expect("readable")
    }

    pub(crate) async fn wait_for(&self, id: &str, until: WaitFor) -> WaitEnd {
        let waited = self
            .engine
            .wait(&test_caller(), id, &until, Some(PATIENCE))
            .await;
        let why = waited.expect("known").end;
        assert!(why != WaitEnd::TimedOut, "it took too long");
        why
    }

    pub(crate) async fn wait_output(&self, id: &str, pattern: &str) {
        let until = WaitFor::Pattern(Pattern::new(pattern).expect("a pattern"));
        let why = self.wait_for(id, until).await;
        assert!(matches!(why, WaitEnd::Pattern(_)), "{pattern}: {why:?}");
    }

    pub(crate) async fn wait_end(&self, id: &str) -> ExecutionInfo {
        assert_eq!(self.wait_for(id, WaitFor::Exit).await, WaitEnd::Exit);
        self.info(id)
    }

    pub(crate) async fn stop(&self, id: &str) -> ExecutionInfo {
        let stopped = self
            .engine
            .stop(&test_caller(), id, StopRequest::default())
            .await;
        stopped.expect("it stops")
    }

    pub(crate) fn dir(&self, id: &str) -> PathBuf {
        self.state.path().join("executions").join(id)
    }
}

pub(crate) fn terminal(words: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(words.iter().copied(), "/tmp");
    request.options.pty = Some(SIZE);
    request
}

pub(crate) fn key(name: &str) -> InputPiece {
    InputPiece::Key(name.parse().expect("a key"))
}

pub(crate) async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("soon")
}

/// Whether a file below `dir` holds these bytes.
pub(crate) fn find_file_with(dir: &Path, needle: &[u8]) -> Option<PathBuf> {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            if let Some(found) = find_file_with(&entry.path(), needle) {
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

pub(crate) fn error_of<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Error {
    outcome.expect_err("refused")
}
