//! Isolation as text: the level in force, the missing capabilities, the limits that were reached,
//! and the changes in an overlay. Pure.

pub use ostler_model::limits_hit::{describe_limits_hit, format_bytes};
use ostler_model::{
    AutorunFinding, AutorunReport, ByteString, ChangeKind, ConflictReason, ContainerSpec, FileKind,
    IsolationLevel, IsolationSpec, MissingCapability, NetworkAccess, OverlayChange, OverlayChanges,
    OverlayConflict, OverlayOutcome, SandboxSpec,
};

use super::truncated;

/// What keeps clients apart, and what commands.
pub const SESSION_NOTE: &str = "Session isolation is between clients; only levels high and container \
                            keep commands apart from each other and from Ostler.";

/// The most hosts of an allow list shown.
const HOSTS_SHOWN: usize = 5;
/// The most characters of a path.
const PATH_CHARS: usize = 200;

/// The missing capabilities with their reasons: `landlock (the kernel has none)`. Names come before
/// reasons, so that truncation removes only reasons.
#[must_use]
pub fn describe_missing(missing: &[MissingCapability]) -> String {
    if let [one] = missing {
        return format!("{} ({})", one.ability.as_str(), one.reason);
    }
    let names: Vec<&str> = missing.iter().map(|it| it.ability.as_str()).collect();
    let reasons = missing
        .iter()
        .map(|it| format!("; {}: {}", it.ability.as_str(), it.reason));
    names.join(", ") + &reasons.collect::<String>()
}

/// The note on isolation in every response: at level high and in a container what is in force, below
/// it only missing capabilities that are a warning.
#[must_use]
pub fn describe_level(
    policy: &IsolationSpec,
    container: Option<&ContainerSpec>,
    warnings: &[MissingCapability],
) -> Option<String> {
    let missing = describe_missing(warnings);
    if policy.level < IsolationLevel::High {
        let lacking = || format!("isolation {} lacks: {missing}", policy.level);
        return (!missing.is_empty()).then(lacking);
    }
    let mut text = format!("isolation {}", policy.level);
    if let Some(confinement) = &policy.confinement {
        text.push_str(&format!(
            ": network {}",
            describe_network(&confinement.network)
        ));
        text.push_str(workspace_note(confinement));
    }
    if let Some(container) = container {
        let image = truncated(&container.image, PATH_CHARS);
        text.push_str(&format!(": image {image}, network {}", container.network));
    }
    if !missing.is_empty() {
        text.push_str(&format!("; as allowed, WITHOUT {missing}"));
    }
    Some(text)
}

fn describe_network(network: &NetworkAccess) -> String {
    let NetworkAccess::AllowList { hosts } = network else {
        return network.to_string();
    };
    let mut named: Vec<String> = hosts
        .iter()
        .take(HOSTS_SHOWN)
        .map(|host| truncated(&host.to_string(), PATH_CHARS))
        .collect();
    if let Some(more @ 1..) = hosts.len().checked_sub(HOSTS_SHOWN) {
        named.push(format!("{more} more"));
    }
    format!("only {}", named.join(", "))
}

const fn workspace_note(confinement: &SandboxSpec) -> &'static str {
    match (&confinement.workspace, confinement.overlay) {
        (Some(_), true) => "; writes to the workspace are kept apart",
        (Some(_), false) => "",
        (None, _) => "; no workspace: what it writes is gone with it",
    }
}

/// Files that tools run automatically, one line each.
#[must_use]
pub fn describe_autorun(report: &AutorunReport) -> Vec<String> {
    let line = |it: &AutorunFinding| {
        let path = path_text(&it.path);
        let reason = truncated(&it.why, PATH_CHARS);
        format!(
            "made or changed, and used unasked by {}: {} {reason}",
            it.reader, path
        )
    };
    let mut lines: Vec<String> = report.found.iter().map(line).collect();
    if report.more > 0 {
        lines.push(format!(
            "{} more files that are used unasked were made or changed",
            report.more
        ));
    }
    let incomplete = report.incomplete.as_ref();
    lines.extend(incomplete.map(|why| {
        let reason = truncated(why, PATH_CHARS);
        format!(
            "not all files that are used unasked were looked for: {}",
            reason.escape_debug()
        )
    }));
    lines
}

/// The changes in an overlay: totals first, then at most `lines` lines.
#[must_use]
pub fn describe_changes(changes: &OverlayChanges, lines: usize) -> String {
    let [created, changed, deleted] = changes.totals;
    if created + changed + deleted == 0 {
        return "no changes".to_owned();
    }
    let mut text = format!("{created} created, {changed} changed, {deleted} deleted");
    let listed = changes.changes.iter().take(lines);
    let count = listed.len() as u64;
    for change in listed {
        text.push('\n');
        text.push_str(&change_line(change));
    }
    let unlisted = (created + changed + deleted).saturating_sub(count);
    if unlisted > 0 {
        text.push_str(&format!("\n… {unlisted} more"));
    }
    text
}

/// A path on one line; bytes that are not UTF-8 as `\xff`.
fn path_text(path: &ByteString) -> String {
    if let Ok(text) = std::str::from_utf8(path.as_bytes()) {
        return truncated(text, PATH_CHARS).escape_debug().to_string();
    }
    let mut text = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        text.extend(chunk.valid().escape_debug());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    truncated(&text, PATH_CHARS)
}

/// `+ src/new.rs 1.2 KiB`, `~ Cargo.toml 400 B (was 380 B)`, `- old/`.
fn change_line(change: &OverlayChange) -> String {
    let mark = match change.kind {
        ChangeKind::Created => '+',
        ChangeKind::Changed => '~',
        ChangeKind::Deleted => '-',
    };
    let path = path_text(&change.path);
    match change.what {
        FileKind::Directory => format!("{mark} {path}/"),
        FileKind::Symlink => format!("{mark} {path} (a link)"),
        FileKind::Special => format!("{mark} {path} (a pipe or socket; never committed)"),
        FileKind::File => match (change.kind, change.bytes_before) {
            (ChangeKind::Changed, Some(before)) => {
                format!(
                    "{mark} {path} {} (was {})",
                    format_bytes(change.bytes),
                    format_bytes(before)
                )
            }
            (ChangeKind::Created | ChangeKind::Changed | ChangeKind::Deleted, _) => {
                format!("{mark} {path} {}", format_bytes(change.bytes))
            }
        },
    }
}

/// What the host changed meanwhile: `src/lib.rs: modified`.
#[must_use]
pub fn describe_conflict(conflict: &OverlayConflict) -> String {
    let reason = match conflict.reason {
        ConflictReason::Replaced => "another file stands there",
        ConflictReason::Modified => "modified meanwhile",
        ConflictReason::Appeared => "appeared meanwhile",
        ConflictReason::Vanished => "gone meanwhile",
    };
    format!("! {}: {reason}", path_text(&conflict.path))
}

/// What the host changed since the command started, while nothing is decided: a heading, then at
/// most `lines` lines; empty where there is nothing.
#[must_use]
pub fn describe_host_changes(changes: &[OverlayConflict], lines: usize) -> Vec<String> {
    if changes.is_empty() {
        return Vec::new();
    }
    let heading = "the host changed too since the command started; a diff compares with it as it \
                   is now, and a commit would write nothing:";
    let mut described = vec![heading.to_owned()];
    described.extend(changes.iter().take(lines).map(describe_conflict));
    if let Some(more @ 1..) = changes.len().checked_sub(lines) {
        described.push(format!("… {more} more"));
    }
    described
}

/// The outcome of changes, as a word.
#[must_use]
pub const fn outcome_word(fate: OverlayOutcome) -> &'static str {
    match fate {
        OverlayOutcome::Open => "open",
        OverlayOutcome::Committed => "committed",
        OverlayOutcome::Discarded => "discarded",
    }
}

#[cfg(test)]
#[path = "isolation_tests.rs"]
mod tests;
