//! The limits that an execution reached, in words.

use crate::isolation::{LimitKind, Limits};
use crate::termination::{Termination, TerminationCause};

/// The limits that were reached with their effects, and the cause where memory ran out.
#[must_use]
pub fn describe_limits_hit(
    hit: &[LimitKind],
    limits: &Limits,
    ending: Option<&Termination>,
) -> Vec<String> {
    let mut lines: Vec<String> = hit.iter().map(|it| describe_limit(*it, limits)).collect();
    let out_of_memory = ending.is_some_and(|it| it.cause == TerminationCause::OutOfMemory);
    if out_of_memory && !hit.contains(&LimitKind::Memory) {
        lines.push(match limits.memory_bytes {
            Some(bytes) => format!(
                "memory ran out: the kernel killed it; its limit was {}",
                format_bytes(bytes)
            ),
            None => "the machine ran out of memory: the kernel killed it".to_owned(),
        });
    }
    lines
}

fn describe_limit(limit: LimitKind, limits: &Limits) -> String {
    let bytes = |bytes: Option<u64>| {
        bytes.map_or_else(String::new, |it| format!(" of {}", format_bytes(it)))
    };
    let count = |count: Option<u32>| count.map_or_else(String::new, |it| format!(" of {it}"));
    match limit {
        LimitKind::Pids => format!(
            "it reached its limit{} processes: more could not be started (limit pids)",
            count(limits.pids)
        ),
        LimitKind::Memory => format!(
            "it reached its memory limit{}: the kernel killed processes of it (limit memory)",
            bytes(limits.memory_bytes)
        ),
        LimitKind::Cpu => "it was held to its share of processor time (limit cpus)".to_owned(),
        LimitKind::OpenFiles => format!(
            "it reached its limit{} open files (limit files)",
            count(limits.open_files)
        ),
        LimitKind::FileSize => format!(
            "a file reached its limit{}: the write failed (limit file_size)",
            bytes(limits.file_bytes)
        ),
        LimitKind::Disk => format!(
            "its files grew beyond its limit{}: it was stopped (limit disk)",
            bytes(limits.disk_bytes)
        ),
    }
}

/// `512 B`, `1.5 MiB`, `1 GiB`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
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
