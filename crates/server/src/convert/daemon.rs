//! Events, questions to people, what a running tree uses, and screens.

use ostler_api::resources::TreeMemberBody;
use ostler_api::terminal::{ScreenCursorBody, ScreenModesBody};
use ostler_api::{ApprovalBody, EventBody, InteractionBody, ResourcesBody, ScreenBody};
use ostler_engine::{ExecutionInfo, Interaction};
use ostler_journal::LedgerRecord;
use ostler_model::TreeSnapshot;
use ostler_terminal::ScreenSnapshot;

/// An entry of the ledger.
pub(crate) fn event_body(record: LedgerRecord) -> EventBody {
    let LedgerRecord { seq, entry, .. } = record;
    EventBody {
        cursor: seq + 1,
        at: entry.at,
        id: entry.execution.map(|id| id.short()),
        uuid: entry.execution,
        session: entry.by.session.map(|name| name.0),
        event: entry.event,
        request: entry.detail,
    }
}

/// A question to a person.
pub(crate) fn interaction_body(interaction: &Interaction) -> InteractionBody {
    let question = &interaction.question;
    let approval = question.approval.as_ref().map(|approval| ApprovalBody {
        rule: approval.rule.clone(),
        reason: approval.reason.clone(),
        command: approval.command.clone(),
    });
    InteractionBody {
        id: interaction.id.to_string(),
        kind: question.kind,
        message: question.message.clone(),
        options: question.options.clone(),
        status: interaction.state.as_str().to_owned(),
        approval,
        execution: question.execution.map(|id| id.short()),
        session: interaction.owner.session.as_ref().map(ToString::to_string),
        created_at: interaction.created_at,
        expires_at: interaction.expires_at,
    }
}

/// A snapshot of a process tree, with what is known of its execution besides.
pub(crate) fn resources_body(snapshot: TreeSnapshot, info: &ExecutionInfo) -> ResourcesBody {
    let ticks = snapshot.usage.cpu_ticks as f64;
    let page = rustix::param::page_size() as u64;
    ResourcesBody {
        cpu_seconds: ticks / rustix::param::clock_ticks_per_second() as f64,
        memory_bytes: snapshot.usage.resident_pages.saturating_mul(page),
        disk_bytes: snapshot.disk_bytes,
        processes: snapshot
            .members
            .into_iter()
            .map(TreeMemberBody::from)
            .collect(),
        usage: info.state.usage,
        limits: info.spec.policy.limits,
        limits_hit: info.state.limits_hit.clone(),
    }
}

/// What is on a terminal's screen.
pub(crate) fn screen_body(screen: ScreenSnapshot) -> ScreenBody {
    ScreenBody {
        size: screen.size,
        rows: screen.rows,
        cursor: ScreenCursorBody {
            col: screen.cursor.col,
            row: screen.cursor.row,
            visible: screen.cursor.visible,
        },
        title: screen.title,
        alternate: screen.alternate,
        modes: ScreenModesBody {
            bracketed_paste: screen.modes.bracketed_paste,
            application_cursor: screen.modes.application_cursor,
            application_keypad: screen.modes.application_keypad,
            mouse: screen.modes.mouse,
        },
        offset: screen.offset,
        exact: screen.exact,
    }
}
