//! `ostler top`.

use std::io;

use clap::{Args, ValueEnum};
use hyper::Method;
use jiff::Timestamp;
use ostler_api::{ExecutionUsageBody, ResourceListBody, UsagePointBody};
use ostler_model::duration;
use ostler_render::isolation::format_bytes;
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::attach::{Tty, is_stdin_terminal, stop_self, window_size};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, Style, StyledLine, TextTable, cells, print_json};

/// The time between two updates.
const INTERVAL_MS: u64 = 1_000;
/// The width of a table that is not shown on a terminal, in columns.
const COLUMNS: usize = 80;
/// The fewest characters of a command that are shown.
const MIN_CHARS: usize = 8;
/// The rows above the table.
const HEADER_ROWS: usize = 2;
/// The alternate screen, without a cursor; what follows a program on the terminal restores both.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// Moves the cursor home and clears the screen.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";
const CTRL_C: u8 = 0x03;
const CTRL_Z: u8 = 0x1a;

/// What `top` takes.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// By what to sort
    #[arg(short, long, value_enum, default_value_t = SortKey::Cpu)]
    sort: SortKey,
    /// Print once, as without a terminal or on one with TERM=dumb
    #[arg(long)]
    once: bool,
    /// Print once, as JSON
    #[arg(long)]
    json: bool,
}

/// What the table is sorted by, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortKey {
    /// Processor time of the last interval
    Cpu,
    /// Resident memory
    Memory,
    /// How long it has run
    Time,
}

/// What a typed key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyAction {
    Quit,
    /// Stop this process until it gets SIGCONT.
    Suspend,
    Sort(SortKey),
    Ignore,
}

/// Shows what the living executions use, until a person ends it.
///
/// # Errors
/// When the daemon cannot be reached, or nothing can be printed.
pub(crate) fn run(context: &CliContext, args: &TopArgs) -> CommandResult {
    let client = context.client();
    if args.json || args.once || !is_stdin_terminal() || !Style::is_stdout_screen(&context.env) {
        return block_on(print_once(&client, args));
    }
    block_on(show(&client, args.sort))
}

async fn print_once(client: &DaemonClient, args: &TopArgs) -> CommandResult {
    let mut used = fetch(client).await?;
    sort(&mut used.executions, args.sort);
    if args.json {
        print_json(&used)?;
        return Ok(0);
    }
    let mut out = StdoutWriter::new();
    let columns = window_size().map_or(COLUMNS, |size| size.cols.into());
    table(&used.executions, columns).print(&mut out)?;
    out.flush()?;
    Ok(0)
}

async fn fetch(client: &DaemonClient) -> Result<ResourceListBody, CommandError> {
    let path = "/api/v1/resources?watch=true&limit=1000";
    client.call(Method::GET, path, RequestBody::None).await
}

/// Redraws each second and on keys, until q or ctrl-c. The terminal is restored on every way out.
async fn show(client: &DaemonClient, sort_key: SortKey) -> CommandResult {
    let mut events = TopEvents::install()?;
    let mut tty = Tty::open();
    tty.show(ENTER).await?;
    let mut sort_key = sort_key;
    let mut used = ResourceListBody {
        executions: Vec::new(),
        more: false,
    };
    // Keys and signals count also while the daemon does not answer.
    let mut fetching = std::pin::pin!(fetch(client));
    let mut is_fetching = true;
    loop {
        tokio::select! {
            fetched = &mut fetching, if is_fetching => {
                used = fetched?;
                is_fetching = false;
            }
            event = events.next() => match event {
                TopEvent::Tick if is_fetching => continue,
                TopEvent::Tick => {
                    fetching.set(fetch(client));
                    is_fetching = true;
                    continue;
                }
                TopEvent::Resume => tty.reapply_raw_mode(),
                TopEvent::Key(KeyAction::Suspend) => suspend(&mut tty).await?,
                TopEvent::Resize | TopEvent::Key(KeyAction::Ignore) => {}
                TopEvent::Key(KeyAction::Sort(key)) => sort_key = key,
                TopEvent::Key(KeyAction::Quit) | TopEvent::End => return Ok(0),
            },
        }
        sort(&mut used.executions, sort_key);
        tty.show(&screen(&used, sort_key)).await?;
    }
}

/// Gives the terminal back, stops this process, and takes the terminal again when it continues.
async fn suspend(tty: &mut Tty) -> Result<(), CommandError> {
    tty.restore();
    crate::print_note("stopped; `fg` goes on");
    stop_self();
    tty.enter();
    tty.show(ENTER).await
}

/// What the screen is redrawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TopEvent {
    Tick,
    Key(KeyAction),
    Resize,
    /// The process was stopped and continues.
    Resume,
    /// A signal, or the end of input.
    End,
}

#[derive(Debug)]
struct TopEvents {
    ticks: Interval,
    stdin: tokio::io::Stdin,
    terminate: unix::Signal,
    hangup: unix::Signal,
    interrupt: unix::Signal,
    stop: unix::Signal,
    window: unix::Signal,
    resume: unix::Signal,
}

impl TopEvents {
    fn install() -> Result<Self, CommandError> {
        Self::register()
            .map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))
    }

    fn register() -> io::Result<Self> {
        let mut ticks = interval(std::time::Duration::from_millis(INTERVAL_MS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let resume = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        Ok(Self {
            ticks,
            stdin: tokio::io::stdin(),
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            window: signal(SignalKind::window_change())?,
            resume: signal(resume)?,
        })
    }

    async fn next(&mut self) -> TopEvent {
        let mut key = [0];
        tokio::select! {
            _ = self.terminate.recv() => TopEvent::End,
            _ = self.hangup.recv() => TopEvent::End,
            _ = self.interrupt.recv() => TopEvent::End,
            _ = self.stop.recv() => TopEvent::Key(KeyAction::Suspend),
            _ = self.window.recv() => TopEvent::Resize,
            _ = self.resume.recv() => TopEvent::Resume,
            read = self.stdin.read(&mut key) => match read {
                Ok(count) if count > 0 => TopEvent::Key(key_action(key[0])),
                Ok(_) | Err(_) => TopEvent::End,
            },
            _ = self.ticks.tick() => TopEvent::Tick,
        }
    }
}

const fn key_action(key: u8) -> KeyAction {
    match key {
        b'q' | b'Q' | CTRL_C => KeyAction::Quit,
        CTRL_Z => KeyAction::Suspend,
        b'c' | b'C' => KeyAction::Sort(SortKey::Cpu),
        b'm' | b'M' => KeyAction::Sort(SortKey::Memory),
        b't' | b'T' => KeyAction::Sort(SortKey::Time),
        _ => KeyAction::Ignore,
    }
}

/// Sorts the most first; of equals, the newest.
fn sort(executions: &mut [ExecutionUsageBody], key: SortKey) {
    let usage = |one: &ExecutionUsageBody| -> (f32, u64) {
        let usage = one.usage.as_ref();
        let cpu = usage.and_then(|it| it.cpu_percent).unwrap_or_default();
        (cpu, usage.map_or(0, |it| it.memory_bytes))
    };
    executions.sort_by(|one, other| {
        let most_first = match key {
            SortKey::Cpu => usage(other).0.total_cmp(&usage(one).0),
            SortKey::Memory => usage(other).1.cmp(&usage(one).1),
            SortKey::Time => one.started_at.cmp(&other.started_at),
        };
        most_first.then_with(|| other.uuid.cmp(&one.uuid))
    });
}

/// The whole screen.
fn screen(used: &ResourceListBody, sort_key: SortKey) -> Vec<u8> {
    let size = window_size();
    let columns = size.map_or(COLUMNS, |size| size.cols.into());
    // The last row stays free: a longer table would scroll the headings away.
    let rows = size.map_or(usize::MAX, |size| usize::from(size.rows).saturating_sub(1));
    let mut lines = vec![
        summary(used, sort_key).shortened(columns),
        StyledLine::from(""),
    ];
    lines.extend(table(&used.executions, columns).lines());
    let mut bytes = CLEAR.to_vec();
    for line in lines.into_iter().take(rows.max(HEADER_ROWS)) {
        bytes.extend_from_slice(line.shortened(columns).rendered().as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn summary(used: &ResourceListBody, sort_key: SortKey) -> StyledLine {
    let usages = used.executions.iter().filter_map(|one| one.usage.as_ref());
    let (mut cpu, mut memory) = (0.0, 0_u64);
    for usage in usages {
        cpu += usage.cpu_percent.unwrap_or_default();
        memory = memory.saturating_add(usage.memory_bytes);
    }
    let count = used.executions.len();
    let more = if used.more { "+" } else { "" };
    let by = match sort_key {
        SortKey::Cpu => "cpu",
        SortKey::Memory => "memory",
        SortKey::Time => "time",
    };
    let memory = format_bytes(memory);
    StyledLine::from(
        format!(
            "{count}{more} running, cpu {cpu:.0}%, memory {memory}; by {by} \
             (c cpu, m memory, t time, q quit)"
        )
        .as_str(),
    )
}

fn table(executions: &[ExecutionUsageBody], columns: usize) -> TextTable {
    let titles = [
        "ID",
        "CPU",
        "MEMORY",
        "READ",
        "WRITTEN",
        "PROCESSES",
        "FOR",
        "COMMAND",
    ];
    let mut table = TextTable::new(&titles);
    let now = Timestamp::now();
    let bytes = |bytes: Option<u64>| bytes.map_or("-".to_owned(), format_bytes);
    for one in executions {
        let usage = one.usage.as_ref();
        let of = |value: fn(&UsagePointBody) -> Option<u64>| bytes(usage.and_then(value));
        let cpu = usage.and_then(|it| it.cpu_percent);
        let cpu = match cpu {
            _ if one.paused => "paused".to_owned(),
            Some(cpu) => format!("{cpu:.0}%"),
            None => "-".to_owned(),
        };
        let age = one.started_at.map(|at| duration::between(at, now));
        let name = match &one.service {
            Some(name) => format!("{name}: {}", one.command),
            None => one.command.clone(),
        };
        table.push_row(cells![
            &one.id,
            cpu,
            of(|it| Some(it.memory_bytes)),
            of(|it| it.read_bytes),
            of(|it| it.written_bytes),
            usage.map_or("-".to_owned(), |it| it.processes.to_string()),
            age.map_or("-".to_owned(), duration::compact),
            name,
        ]);
    }
    table.fit_width("COMMAND", columns, MIN_CHARS);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(number: u8, cpu: Option<f32>, memory: u64) -> ExecutionUsageBody {
        let at = Timestamp::from_second(1_000 - i64::from(number)).unwrap();
        ExecutionUsageBody {
            id: number.to_string(),
            uuid: ostler_model::ExecutionId::mint(),
            command: "true".to_owned(),
            service: None,
            paused: false,
            started_at: Some(at),
            usage: Some(UsagePointBody {
                at,
                cpu_percent: cpu,
                memory_bytes: memory,
                disk_bytes: None,
                read_bytes: None,
                written_bytes: None,
                received_bytes: None,
                sent_bytes: None,
                processes: 1,
            }),
        }
    }

    #[test]
    fn the_most_comes_first() {
        let mut executions = vec![
            execution(1, Some(5.0), 30),
            execution(2, None, 40),
            execution(3, Some(90.0), 10),
        ];
        let mut order = |key| {
            sort(&mut executions, key);
            executions
                .iter()
                .map(|one| one.id.clone())
                .collect::<String>()
        };
        assert_eq!(order(SortKey::Cpu), "312");
        assert_eq!(order(SortKey::Memory), "213");
        assert_eq!(order(SortKey::Time), "321");
    }

    #[test]
    fn keys() {
        assert_eq!(key_action(b'q'), KeyAction::Quit);
        assert_eq!(key_action(CTRL_C), KeyAction::Quit);
        assert_eq!(key_action(b'm'), KeyAction::Sort(SortKey::Memory));
        assert_eq!(key_action(CTRL_Z), KeyAction::Suspend);
        assert_eq!(key_action(b'x'), KeyAction::Ignore);
    }
}
