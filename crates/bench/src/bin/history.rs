//! Measures the history, for `cargo xtask bench history`. Takes a directory and, for a server of
//! PostgreSQL instead of a file, its address.
//!
//! Reads one request per line and answers each with a duration in nanoseconds:
//!
//! * `fill ROWS`: of the fold of one execution, when so many are added in one batch.
//! * `newest`, `middle`, `text`, `failed`, `statistics`: of one query.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_journal::{Ledger, LedgerEntry};
use ostler_model::termination::WaitStatus;
use ostler_model::{
    Caller, Event, ExecutionId, Owner, Principal, RequestChannel, Scope, Termination,
    TerminationCause, Timestamp,
};
use ostler_store::{
    Fingerprint, HistoryQuery, HistoryStatus, HistoryStore, HistoryUpdater, PostgresSettings,
    UpdateOutcome,
};
use serde_json::{Value, json};

/// Rows of one page.
const PAGE: u64 = 50;
/// Of so many executions, one fails.
const FAILURE_INTERVAL: u64 = 20;
/// The number of different commands.
const COMMANDS: u64 = 997;
const DIRECTORY: &str = "/home/user/project";

struct History {
    ledger: Ledger,
    store: Arc<HistoryStore>,
    updater: HistoryUpdater,
    rows: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir: PathBuf = std::env::args_os().nth(1).ok_or("a directory")?.into();
    let mut history = History::open(&dir, std::env::args().nth(2))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let took = match line.split_once(' ') {
            Some(("fill", rows)) => history.fill(rows.parse()?)?,
            _ => history.query(&line)?,
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", took.as_nanos())?;
        out.flush()?;
    }
    Ok(())
}

impl History {
    fn open(dir: &Path, server: Option<String>) -> Result<Self, Box<dyn Error>> {
        let ledger = Ledger::open(&dir.join("ledger"))?;
        let store = Arc::new(match server {
            Some(url) => HistoryStore::postgres(PostgresSettings {
                address: url.parse()?,
                schema: "ostler".parse().map_err(|()| "no name of a schema")?,
                ledger: dir.display().to_string(),
                password: None,
            }),
            None => HistoryStore::sqlite(dir.join("history.db")),
        });
        let retention = Duration::from_secs(90 * 24 * 60 * 60);
        let updater = HistoryUpdater::new(ledger.reader(), Arc::clone(&store), retention);
        Ok(Self {
            ledger,
            store,
            updater,
            rows: 0,
        })
    }

    fn fill(&mut self, rows: u64) -> Result<Duration, Box<dyn Error>> {
        for _ in 0..rows {
            self.add_execution()?;
        }
        let begin = Instant::now();
        loop {
            match self.updater.step(self.ledger.end(), Timestamp::now()) {
                UpdateOutcome::Advanced(_) => {}
                UpdateOutcome::UpToDate(_) => break,
                UpdateOutcome::Restarted(reason) => return Err(reason.into()),
                UpdateOutcome::Failed(error) => return Err(error.into()),
            }
        }
        Ok(begin.elapsed() / u32::try_from(rows)?)
    }

    fn add_execution(&mut self) -> Result<(), Box<dyn Error>> {
        let (id, number) = (ExecutionId::mint(), self.rows);
        self.rows += 1;
        let created = json!({
            "command": command(number), "cwd": DIRECTORY, "face": "mcp", "level": "medium",
            "in_force": ["clean_environment", "own_group", "tree_kill", "own_cgroup"],
        });
        self.append(
            id,
            Event::Created {
                missing: Vec::new(),
            },
            created,
        )?;
        self.append(id, Event::Started { attempt: 1, pid: 7 }, json!({}))?;
        let code = i32::from(number % FAILURE_INTERVAL == 0);
        let ending = Termination::new(TerminationCause::Exited, WaitStatus::Code(code));
        let totals = json!({
            "user_us": number, "system_us": 9, "max_rss_bytes": 1 << 20, "output_bytes": 77,
            "attempts": 1, "prompts": 0,
        });
        self.append(id, Event::Finished { ending }, totals)
    }

    fn append(
        &mut self,
        id: ExecutionId,
        event: Event,
        detail: Value,
    ) -> Result<(), Box<dyn Error>> {
        let Value::Object(detail) = detail else {
            return Err("details are an object".into());
        };
        self.ledger.append(&LedgerEntry {
            at: Timestamp::now(),
            execution: Some(id),
            by: owner(),
            event,
            detail: detail.into_iter().collect::<BTreeMap<_, _>>(),
        })?;
        Ok(())
    }

    fn query(&self, kind: &str) -> Result<Duration, Box<dyn Error>> {
        let caller = Caller {
            owner: owner(),
            scope: Scope::Principal,
            projects: ostler_model::ProjectView::default(),
        };
        let mut query = HistoryQuery {
            limit: PAGE,
            ..HistoryQuery::all_of(caller)
        };
        match kind {
            "newest" => {}
            "middle" => query.before = Some(self.ledger.end() / 2),
            "text" => query.text = Some("crate_77 ".to_owned()),
            "failed" => query.status = Some(HistoryStatus::Failed),
            "statistics" => return self.statistics(),
            _ => return Err(format!("unknown request: {kind}").into()),
        }
        let begin = Instant::now();
        let page = self.store.list(&query)?;
        let took = begin.elapsed();
        if page.rows.is_empty() {
            return Err(format!("{kind} found nothing").into());
        }
        Ok(took)
    }

    fn statistics(&self) -> Result<Duration, Box<dyn Error>> {
        let fingerprint = Fingerprint::of(&command(5), DIRECTORY).ok_or("no fingerprint")?;
        let begin = Instant::now();
        let found = self
            .store
            .statistics(&owner().principal, fingerprint, Timestamp::now())?;
        let took = begin.elapsed();
        found.map(|_| took).ok_or_else(|| "no statistics".into())
    }
}

fn owner() -> Owner {
    Owner {
        principal: Principal::unix(1_000),
        project: Some(DIRECTORY.to_owned()),
        session: None,
        task: None,
        channel: RequestChannel::Local,
    }
}

/// A command line; several of them have the same fingerprint.
fn command(number: u64) -> String {
    let letter = char::from(b'a' + u8::try_from(number % 23).unwrap_or_default());
    let crate_number = number % COMMANDS;
    format!("cargo test --package module_{letter} --test crate_{crate_number} -- --nocapture")
}
