//! Isolation in words: the level in force, what is missing of it, limits that were reached,
//! and what a command did to a workspace whose writes were kept apart. Pure.

use ostler_model::ending::Cause;
use ostler_model::policy::{Degraded, Limit, Limits};
use ostler_model::{
    Autorun, AutorunReport, Change, ChangeKind, Changes, Confinement, Conflict, ConflictReason,
    Ending, Fate, FileKind, IsolationLevel, Network, Policy,
};

use super::clamped;

/// The most hosts of an allow list that are named.
const HOSTS_SHOWN: usize = 5;
/// The most characters of a path.
const PATH_CHARS: usize = 200;

/// Each missing piece with its reason: `landlock (the kernel has none)`. Of several the names
/// come first, so that what is cut short is a reason.
#[must_use]
pub fn pieces(missing: &[Degraded]) -> String {
    if let [one] = missing {
        return format!("{} ({})", one.ability.as_str(), one.reason);
    }
    let names: Vec<&str> = missing.iter().map(|it| it.ability.as_str()).collect();
    let reasons = missing
        .iter()
        .map(|it| format!("; {}: {}", it.ability.as_str(), it.reason));
    names.join(", ") + &reasons.collect::<String>()
}

/// What every answer says of the walls: at level high what is in force, below it only what is
/// missing of it, as far as that is a warning (D8).
#[must_use]
pub fn level(policy: &Policy, warnings: &[Degraded]) -> Option<String> {
    let missing = pieces(warnings);
    if policy.level < IsolationLevel::High {
        let told = || format!("isolation {} lacks: {missing}", policy.level);
        return (!missing.is_empty()).then(told);
    }
    let mut told = format!("isolation {}", policy.level);
    if let Some(confinement) = &policy.confinement {
        told.push_str(&format!(": network {}", network(&confinement.network)));
        told.push_str(writable(confinement));
    }
    if !missing.is_empty() {
        told.push_str(&format!("; as allowed, WITHOUT {missing}"));
    }
    Some(told)
}

fn network(network: &Network) -> String {
    let Network::AllowList { hosts } = network else {
        return network.to_string();
    };
    let mut named: Vec<String> = hosts
        .iter()
        .take(HOSTS_SHOWN)
        .map(|host| clamped(&host.to_string(), PATH_CHARS))
        .collect();
    if let Some(more @ 1..) = hosts.len().checked_sub(HOSTS_SHOWN) {
        named.push(format!("{more} more"));
    }
    format!("only {}", named.join(", "))
}

const fn writable(confinement: &Confinement) -> &'static str {
    match (&confinement.workspace, confinement.overlay) {
        (Some(_), true) => "; writes to the workspace are kept apart",
        (Some(_), false) => "",
        (None, _) => "; no workspace: what it writes is gone with it",
    }
}

/// Each limit that was reached, and what that did; and why memory ran out, where it did.
#[must_use]
pub fn reached(hit: &[Limit], limits: &Limits, ending: Option<&Ending>) -> Vec<String> {
    let mut told: Vec<String> = hit.iter().map(|it| limit(*it, limits)).collect();
    let starved = ending.is_some_and(|it| it.cause == Cause::OutOfMemory);
    if starved && !hit.contains(&Limit::Memory) {
        told.push(match limits.memory_bytes {
            Some(bytes) => format!(
                "memory ran out: the kernel killed it; its limit was {}",
                size(bytes)
            ),
            None => "the machine ran out of memory: the kernel killed it".to_owned(),
        });
    }
    told
}

fn limit(limit: Limit, limits: &Limits) -> String {
    let bytes =
        |bytes: Option<u64>| bytes.map_or_else(String::new, |it| format!(" of {}", size(it)));
    let count = |count: Option<u32>| count.map_or_else(String::new, |it| format!(" of {it}"));
    match limit {
        Limit::Pids => format!(
            "it reached its limit{} processes: more could not be started (limit pids)",
            count(limits.pids)
        ),
        Limit::Memory => format!(
            "it reached its memory limit{}: the kernel killed processes of it (limit memory)",
            bytes(limits.memory_bytes)
        ),
        Limit::Cpu => "it was held to its share of processor time (limit cpus)".to_owned(),
        Limit::OpenFiles => format!(
            "it reached its limit{} open files (limit files)",
            count(limits.open_files)
        ),
        Limit::FileSize => format!(
            "a file reached its limit{}: the write failed (limit file_size)",
            bytes(limits.file_bytes)
        ),
        Limit::Disk => format!(
            "its files grew beyond its limit{}: it was stopped (limit disk)",
            bytes(limits.disk_bytes)
        ),
    }
}

/// What was left that tools run or obey unasked, a line each.
#[must_use]
pub fn autorun(report: &AutorunReport) -> Vec<String> {
    let line = |it: &Autorun| {
        let path = clamped(&it.path.to_string_lossy(), PATH_CHARS);
        let why = clamped(&it.why, PATH_CHARS);
        format!(
            "made or changed, and used unasked by {}: {} {why}",
            it.reader,
            path.escape_debug()
        )
    };
    let mut told: Vec<String> = report.found.iter().map(line).collect();
    if report.more > 0 {
        told.push(format!(
            "{} more files that are used unasked were made or changed",
            report.more
        ));
    }
    let unseen = report.incomplete.as_ref();
    told.extend(unseen.map(|why| {
        let why = clamped(why, PATH_CHARS);
        format!(
            "not all files that are used unasked were looked for: {}",
            why.escape_debug()
        )
    }));
    told
}

/// What the overlay holds, a line each, at most so many; the sums first.
#[must_use]
pub fn changes(changes: &Changes, lines: usize) -> String {
    let [created, changed, deleted] = changes.totals;
    if created + changed + deleted == 0 {
        return "no changes".to_owned();
    }
    let mut told = format!("{created} created, {changed} changed, {deleted} deleted");
    let shown = changes.changes.iter().take(lines);
    let count = shown.len() as u64;
    for change in shown {
        told.push('\n');
        told.push_str(&line(change));
    }
    let left = (created + changed + deleted).saturating_sub(count);
    if left > 0 {
        told.push_str(&format!("\n… {left} more"));
    }
    told
}

/// `+ src/new.rs 1.2 KiB`, `~ Cargo.toml 400 B (was 380 B)`, `- old/`.
fn line(change: &Change) -> String {
    let mark = match change.kind {
        ChangeKind::Created => '+',
        ChangeKind::Changed => '~',
        ChangeKind::Deleted => '-',
    };
    let path = clamped(&change.path.to_string_lossy(), PATH_CHARS);
    let path = path.escape_debug();
    match change.what {
        FileKind::Directory => format!("{mark} {path}/"),
        FileKind::Symlink => format!("{mark} {path} (a link)"),
        FileKind::Special => format!("{mark} {path} (a pipe or socket; never committed)"),
        FileKind::File => match (change.kind, change.bytes_before) {
            (ChangeKind::Changed, Some(before)) => {
                format!(
                    "{mark} {path} {} (was {})",
                    size(change.bytes),
                    size(before)
                )
            }
            (ChangeKind::Created | ChangeKind::Changed | ChangeKind::Deleted, _) => {
                format!("{mark} {path} {}", size(change.bytes))
            }
        },
    }
}

/// What the host changed meanwhile: `src/lib.rs: modified`.
#[must_use]
pub fn conflict(conflict: &Conflict) -> String {
    let reason = match conflict.reason {
        ConflictReason::Replaced => "another file stands there",
        ConflictReason::Modified => "modified meanwhile",
        ConflictReason::Appeared => "appeared meanwhile",
        ConflictReason::Vanished => "gone meanwhile",
    };
    let path = clamped(&conflict.path.to_string_lossy(), PATH_CHARS);
    format!("! {}: {reason}", path.escape_debug())
}

/// What became of changes, in a word for people.
#[must_use]
pub const fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Open => "open",
        Fate::Committed => "committed",
        Fate::Discarded => "discarded",
    }
}

/// `512 B`, `1.5 MiB`, `1 GiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut tenths = u128::from(bytes) * 10;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths = tenths.div_ceil(1_024);
        unit += 1;
    }
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit]),
        tenth => format!("{}.{tenth} {}", tenths / 10, UNITS[unit]),
    }
}

#[cfg(test)]
#[path = "walls_tests.rs"]
mod tests;
