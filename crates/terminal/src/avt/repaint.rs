//! A dump in sequences that every terminal understands.

use crate::graphemes::{Graphemes, JOINER};

/// Rewrites a dump for a real terminal: repetition (`CSI b`) is expanded, because not every
/// terminal supports it; tab stops are set by HTS, colours use semicolons; stand-ins are replaced
/// by
/// their clusters.
pub(super) fn for_real_terminal(dump: &str, clusters: &Graphemes) -> String {
    let mut out = String::with_capacity(dump.len() * 2);
    let mut last = ' ';
    let mut rest = dump;
    while let Some(c) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[")
            && let Some(end) = sequence.find(|c: char| ('@'..='~').contains(&c))
        {
            let (parameters, after) = sequence.split_at(end);
            push_csi(&mut out, parameters, &after[..1], |out, times| {
                for _ in 0..times {
                    push_cell(out, last, clusters);
                }
            });
            rest = &after[1..];
            continue;
        }
        push_cell(&mut out, c, clusters);
        if c >= ' ' {
            last = c;
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

fn push_csi(out: &mut String, parameters: &str, end: &str, repeat: impl FnOnce(&mut String, u16)) {
    match (parameters, end) {
        (times, "b") => repeat(out, times.parse().unwrap_or(0)),
        ("5", "W") => out.push_str("\u{1b}[3g"),
        ("0", "W") => out.push_str("\u{1b}H"),
        _ => {
            out.push_str("\u{1b}[");
            out.push_str(&parameters.replace(':', ";"));
            out.push_str(end);
        }
    }
}

/// Appends the content of a cell, without a joiner at its end: it would join the next cell to it.
fn push_cell(out: &mut String, c: char, clusters: &Graphemes) {
    clusters.push_expanded(c, out);
    out.truncate(out.trim_end_matches(JOINER).len());
}
