//! Who is who in a shell's terminal.

use ostler_model::Observation;
use ostler_model::evidence::Evidence;

use crate::core::Core;
use crate::entry::Entry;

/// A look at the kernel; none between two attempts, when there is nothing to look at.
pub(super) async fn observe(core: &Core, entry: &Entry) -> Option<Evidence> {
    let what = Observation {
        foreground: true,
        ..Observation::default()
    };
    core.place.observe(entry.id, what).await.ok()
}

/// What the leader is called: the shell, until it executes another program.
pub(super) fn leader(evidence: &Evidence) -> Option<String> {
    evidence.members.first().map(|leader| leader.name.clone())
}

/// Who has the terminal instead of the shell.
pub(super) fn runs(evidence: &Evidence) -> Option<(&str, u32)> {
    let pid = evidence.foreground?.pid;
    let (leader, others) = evidence.members.split_first()?;
    if leader.pid == pid {
        return None;
    }
    let member = others.iter().find(|member| member.pid == pid)?;
    Some((&member.name, pid))
}
