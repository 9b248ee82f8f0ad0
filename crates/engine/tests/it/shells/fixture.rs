//! One engine with one shell in it.

use std::time::Duration;

use ostler_engine::{
    Engine, Error, ShellCommand, ShellEnd, ShellRun, StopRequest, TerminalPageQuery,
};
use ostler_model::{ByteString, ShellKind, TermSize};
use tempfile::TempDir;

use crate::test_engine::{PATIENCE, open_engine, test_caller};

/// How long a command that is left running is waited for.
pub(crate) const SOON: Duration = Duration::from_millis(400);

/// One engine with one shell in it.
pub(crate) struct ShellFixture {
    pub(crate) engine: Engine,
    pub(crate) kind: ShellKind,
    pub(crate) id: String,
    pub(crate) home: TempDir,
    _state: TempDir,
}

impl ShellFixture {
    pub(crate) async fn new(kind: ShellKind) -> Self {
        Self::with_rc(kind, "").await
    }

    /// With the person's own file of the shell.
    pub(crate) async fn with_rc(kind: ShellKind, rc: &str) -> Self {
        let home = TempDir::new().expect("a directory");
        let path = match kind {
            ShellKind::Bash => ".bashrc",
            ShellKind::Zsh => ".zshrc",
            ShellKind::Fish => ".config/fish/config.fish",
        };
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, rc).expect("written");
        Self::with_home(kind, home, Vec::new()).await
    }

    pub(crate) async fn with_home(
        kind: ShellKind,
        home: TempDir,
        more: Vec<(ByteString, ByteString)>,
    ) -> Self {
        let state = TempDir::new().expect("a directory");
        let engine = open_engine(state.path(), |settings| settings.base_env = Vec::new()).await;
        let mut env = vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("HOME".into(), home.path().into()),
            ("LANG".into(), "C.UTF-8".into()),
        ];
        env.extend(more);
        let size = TermSize { cols: 80, rows: 24 };
        let cwd = home.path().into();
        let request = engine.shell_request(kind, cwd, size, env).await;
        let started = engine
            .start(&test_caller(), request.expect("a request"))
            .await;
        let id = started.expect("it starts").id.to_string();
        Self {
            engine,
            kind,
            id,
            home,
            _state: state,
        }
    }

    pub(crate) async fn run_for(&self, script: &str, at_most: Duration) -> Result<ShellRun, Error> {
        let command = ShellCommand {
            script: script.to_owned(),
            timeout: at_most,
            lease: None,
            idempotency: None,
        };
        self.engine
            .run_in_shell(&test_caller(), &self.id, command)
            .await
    }

    pub(crate) async fn run(&self, script: &str) -> ShellRun {
        let run = self.run_for(script, PATIENCE).await;
        run.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Status and output of a command that ends.
    pub(crate) async fn run_to_end(&self, script: &str) -> (i32, String) {
        let run = self.run(script).await;
        let output = self.output(&run).await;
        match run.end {
            ShellEnd::Finished { status, .. } => (status, output),
            other => panic!("{:?}: {script}: {other:?} with {output:?}", self.kind),
        }
    }

    pub(crate) async fn run_end(&self, script: &str) -> ShellEnd {
        self.run(script).await.end
    }

    pub(crate) async fn cwd(&self, script: &str) -> Option<String> {
        match self.run_end(script).await {
            ShellEnd::Finished { cwd, status: 0 } => cwd,
            other => panic!("{:?}: {script}: {other:?}", self.kind),
        }
    }

    pub(crate) async fn output(&self, run: &ShellRun) -> String {
        String::from_utf8(self.bytes(run.from, run.to).await).expect("text")
    }

    pub(crate) async fn bytes(&self, from: u64, to: u64) -> Vec<u8> {
        let query = TerminalPageQuery {
            offset: Some(from),
            limit: Some(to - from),
        };
        let page = self
            .engine
            .read_terminal(&test_caller(), &self.id, query)
            .await;
        let page = page.expect("readable");
        assert!(!page.truncated);
        page.data
    }

    /// Until the screen shows this.
    pub(crate) async fn wait_output(&self, text: &str) {
        let mut watch = self.engine.watch(&test_caller(), &self.id).expect("known");
        let looks = async {
            loop {
                watch.refresh();
                let view = self.engine.screen(&test_caller(), &self.id).await;
                if view.expect("a screen").text().contains(text) {
                    break;
                }
                watch.changed().await;
            }
        };
        tokio::time::timeout(PATIENCE, looks).await.expect("shown");
    }

    pub(crate) async fn type_in(&self, text: &str) {
        let taken = self
            .engine
            .write(&test_caller(), &self.id, text.into())
            .await;
        assert_eq!(taken.expect("accepted"), text.len() as u64);
    }

    pub(crate) async fn end(self) {
        let request = StopRequest {
            force: true,
            ..StopRequest::default()
        };
        let stopped = self.engine.stop(&test_caller(), &self.id, request).await;
        stopped.expect("stopped");
        self.engine.shutdown().await;
    }

    /// In the words of this shell.
    pub(crate) fn script_for<'a>(&self, posix: &'a str, fish: &'a str) -> &'a str {
        match self.kind {
            ShellKind::Bash | ShellKind::Zsh => posix,
            ShellKind::Fish => fish,
        }
    }
}

pub(crate) fn busy_message(run: Result<ShellRun, Error>) -> String {
    match run {
        Err(Error::ShellBusy { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}
