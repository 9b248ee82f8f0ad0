//! Questions to people.

use ostler_api::{ApprovalBody, InteractionBody, InteractionEndBody};
use ostler_engine::interaction::{CancelReason, InteractionState};
use ostler_engine::{Engine, Interaction, InteractionOutcome};
use ostler_model::{ByteString, Timestamp, duration};

/// A question to a person, without its answer.
pub fn interaction_body(engine: &Engine, interaction: &Interaction) -> InteractionBody {
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
        default: question.default.clone(),
        secret: question.secret,
        source: Some(question.source),
        status: interaction.state.as_str().to_owned(),
        approval,
        execution: question.execution.map(|id| id.short()),
        directory: question.directory.as_deref().map(ByteString::from),
        evidence: question.evidence.clone(),
        holder: interaction
            .is_open()
            .then(|| engine.interaction_holder(interaction))
            .flatten()
            .map(|it| it.name),
        principal: interaction.owner.principal.to_string(),
        session: interaction.owner.session.as_ref().map(ToString::to_string),
        created_at: interaction.created_at,
        expires_at: interaction.expires_at,
        remaining_ms: interaction
            .is_open()
            .then(|| remaining_ms(interaction.expires_at)),
        end: end_body(&interaction.state),
    }
}

/// A question with its answer, if it has one.
pub fn answered_body(
    engine: &Engine,
    interaction: &Interaction,
    outcome: InteractionOutcome,
) -> InteractionBody {
    let mut body = interaction_body(engine, interaction);
    let answer = match outcome {
        InteractionOutcome::Answered(answer) | InteractionOutcome::Default(answer) => Some(answer),
        InteractionOutcome::Cancelled(_) | InteractionOutcome::TimedOut => None,
    };
    if let Some(end) = &mut body.end {
        end.answer = answer.filter(|_| !interaction.question.secret);
    }
    body
}

fn remaining_ms(expires_at: Timestamp) -> u64 {
    let remaining = duration::between(Timestamp::now(), expires_at);
    u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX)
}

fn end_body(state: &InteractionState) -> Option<InteractionEndBody> {
    let (by, at, took_default) = match state {
        InteractionState::Open => return None,
        InteractionState::Answered { by, at } => (Some(by), Some(*at), false),
        InteractionState::Cancelled {
            reason: CancelReason::Requested { by, .. },
        } => (Some(by), None, false),
        InteractionState::Cancelled { .. } => (None, None, false),
        InteractionState::TimedOut { took_default } => (None, None, *took_default),
    };
    Some(InteractionEndBody {
        text: state.to_string(),
        by: by.map(ToString::to_string),
        at,
        took_default,
        answer: None,
    })
}
