//! The command policy: its verdict on a request, and whether a person has approved it.
//!
//! By default there is no policy, and every command may run. A file in the workspace can only
//! tighten a policy; without one it has no effect.

use std::path::PathBuf;

use ostler_model::{ByteString, TemplateRecord, has_hidden, shell_quote, visible};
use ostler_policy::{CommandContext, PolicyDecision, PolicyVerdict, RuleSet};
use ostler_terminal::shell::shell_launch;

use super::approval::{Approval, ApprovalStatus, ApprovalSubject};
use super::approval_message::approval_message;
use super::named_files::NamedFiles;
use super::workspace_rules::with_workspace_rules;
use super::{environment, isolation_level, program};
use crate::error::Error;
use crate::interaction_id::InteractionId;
use crate::request::{StartRequest, StdinRequest};
use crate::secret_texts::{ResolvedSecret, SecretTexts};
use crate::settings::{ApprovalPath, Settings};
use crate::shell_script_dir::scripts_dir;

/// The longest displayed command line that a person can approve, in bytes.
const SHOWN_BYTES: usize = 32 * 1024;
/// The most bytes of standard input that are displayed.
const INPUT_BYTES: usize = 4 * 1024;

/// The verdict on a start: that of the policy, and that its template requires a person's agreement;
/// none where there is neither. A deny is an error.
pub(crate) fn evaluate(
    settings: &Settings,
    request: &StartRequest,
) -> Result<Option<PolicyVerdict>, Error> {
    let verdict = evaluate_policy(settings, request)?;
    Ok(match &request.template {
        Some(template) if template.confirm => Some(confirmation_verdict(verdict, template)),
        Some(_) | None => verdict,
    })
}

/// A verdict that asks at least.
fn confirmation_verdict(
    verdict: Option<PolicyVerdict>,
    template: &TemplateRecord,
) -> PolicyVerdict {
    match verdict {
        Some(verdict) if verdict.decision != PolicyDecision::Allow => verdict,
        allowed => PolicyVerdict {
            decision: PolicyDecision::Ask,
            rule: template.label(),
            reason: "the template requires confirmation".to_owned(),
            fired: allowed.map(|verdict| verdict.fired).unwrap_or_default(),
        },
    }
}

/// The policy's verdict; none where there is no policy.
fn evaluate_policy(
    settings: &Settings,
    request: &StartRequest,
) -> Result<Option<PolicyVerdict>, Error> {
    let Some(set) = &settings.policy else {
        return Ok(None);
    };
    super::arguments::check(request)?;
    let tightened = with_workspace_rules(set, &request.cwd)?;
    let set = tightened.as_ref().unwrap_or(set);
    let verdict = evaluate_command(set, settings, request);
    if verdict.decision == PolicyDecision::Deny {
        return Err(Error::Denied {
            rule: verdict.rule,
            reason: verdict.reason,
        });
    }
    evaluate_probes(set, settings, request)?;
    Ok(Some(verdict))
}

/// Probes of a service and health checks of a container run repeatedly and unattended: there is no person to approve them, so they
/// must be allowed outright.
fn evaluate_probes(
    set: &RuleSet,
    settings: &Settings,
    request: &StartRequest,
) -> Result<(), Error> {
    for probe in super::service_plan::unattended_commands(request) {
        let command_text = probe.display();
        let request = StartRequest {
            command: probe,
            lifetime: None,
            ..request.clone()
        };
        let verdict = evaluate_command(set, settings, &request);
        if verdict.decision != PolicyDecision::Allow {
            return Err(Error::Denied {
                rule: verdict.rule,
                reason: format!(
                    "its probe `{command_text}` is not allowed: {}",
                    verdict.reason
                ),
            });
        }
    }
    Ok(())
}

/// The verdict of `set` on the command of a request, whatever it is.
pub(crate) fn evaluate_command(
    set: &RuleSet,
    settings: &Settings,
    request: &StartRequest,
) -> PolicyVerdict {
    let in_container = isolation_level::runs_in_container(&settings.isolation, request);
    let path = search_path(settings, request);
    let find = |name: &str| {
        let found = program::find(&ByteString::from(name), &path, &request.cwd).ok()?;
        Some(PathBuf::from(found.as_path()))
    };
    set.evaluate(&CommandContext {
        command: &request.command,
        cwd: &request.cwd,
        set_env: &requested_variables(settings, request),
        // What a name stands for in an image is not known here.
        lookup: (!in_container).then_some(&find),
    })
}

/// The variables that a request sets, without those by which the engine integrates a shell: nobody
/// chose them, and they differ for each shell.
fn requested_variables(
    settings: &Settings,
    request: &StartRequest,
) -> Vec<(ByteString, ByteString)> {
    let variables = &request.options.set_env;
    let (Some(session), Ok(scripts)) = (&request.shell, scripts_dir(&settings.state_dir)) else {
        return variables.clone();
    };
    let env = match request.base_env.is_empty() {
        true => &settings.base_env,
        false => &request.base_env,
    };
    let own = shell_launch(session, &ByteString::from(scripts), env).set_env;
    let chosen = variables.iter().filter(|it| !own.contains(it));
    chosen.cloned().collect()
}

/// A request as its caller made it, for people and for what an approval covers.
pub(crate) fn as_requested(settings: &Settings, request: &StartRequest) -> StartRequest {
    let mut requested = request.clone();
    requested.options.set_env = requested_variables(settings, request);
    requested
}

/// The search path of programs named without a path.
pub(crate) fn search_path(settings: &Settings, request: &StartRequest) -> ByteString {
    let inherit = request.options.inherit_env.unwrap_or(settings.inherit_env);
    let env = environment::build(settings, request, inherit);
    let path = environment::value(&env, b"PATH").unwrap_or(&settings.trusted_path);
    path.clone()
}

/// The subject of an approval: the start as requested, and the files it names.
pub(crate) fn approval_subject(request: StartRequest, files: NamedFiles) -> ApprovalSubject {
    ApprovalSubject {
        command: request.command,
        cwd: request.cwd,
        set_env: request.options.set_env,
        inherit_env: request.options.inherit_env,
        stdin: request.stdin,
        level: request.options.level,
        backend: request.options.backend,
        container: request.options.container,
        confine: request.options.sandbox,
        secrets: request.options.secrets,
        files,
    }
}

/// What follows from the status of an approval.
#[derive(Debug)]
pub(crate) enum ApprovalDecision {
    /// A person approved exactly this, by this answer.
    Start(InteractionId),
    /// A person has been asked exactly this; the start is refused meanwhile.
    Pending(InteractionId),
    /// It is refused.
    Refuse(Error),
    /// A person is asked this; the start is refused meanwhile.
    Ask {
        /// The question, for people.
        message: String,
        /// What is approved by a yes.
        approval: Box<Approval>,
    },
}

/// Decides about a start that needs an approval. `display` is the redacted start for people.
pub(crate) fn decide_approval(
    verdict: &PolicyVerdict,
    status: ApprovalStatus,
    subject: ApprovalSubject,
    display: StartDisplay,
) -> ApprovalDecision {
    let denied = |reason: String| {
        ApprovalDecision::Refuse(Error::Denied {
            rule: verdict.rule.clone(),
            reason,
        })
    };
    match status {
        ApprovalStatus::Granted(id) => ApprovalDecision::Start(id),
        ApprovalStatus::NotWritten { path, problem } => ApprovalDecision::Refuse(Error::Storage {
            what: "cannot write",
            path,
            source: std::io::Error::other(problem),
        }),
        ApprovalStatus::Changed(path) => denied(format!(
            "{} changed after a person agreed to it; what is there now was not started: ask again",
            path.display()
        )),
        ApprovalStatus::Open(id) => ApprovalDecision::Pending(id),
        ApprovalStatus::Refused => denied(format!("a person said no ({})", verdict.reason)),
        ApprovalStatus::None if display.text.len() > SHOWN_BYTES => denied(format!(
            "{}; a person cannot be asked about {} bytes, at most about {SHOWN_BYTES}",
            verdict.reason,
            display.text.len()
        )),
        ApprovalStatus::None => ApprovalDecision::Ask {
            message: approval_message(verdict, &subject, &display.text, display.is_escaped),
            approval: Box::new(Approval {
                rule: verdict.rule.clone(),
                reason: verdict.reason.clone(),
                command: display.text,
                covered: subject.covered(),
                cwd: subject.cwd,
            }),
        },
    }
}

/// The refusal of a start while a person is asked, who answers at `path`.
pub(crate) fn required_error(
    verdict: &PolicyVerdict,
    interaction: InteractionId,
    path: ApprovalPath,
) -> Error {
    Error::ApprovalRequired {
        rule: verdict.rule.clone(),
        reason: verdict.reason.clone(),
        interaction: interaction.to_string(),
        path,
    }
}

/// A start for people, whole and on one line: its variables, command and input, with secrets
/// redacted.
#[derive(Debug)]
pub(crate) struct StartDisplay {
    text: String,
    /// Whether control characters were escaped.
    is_escaped: bool,
}

/// A start for people.
pub(crate) fn display_start(request: &StartRequest, secrets: &[ResolvedSecret]) -> StartDisplay {
    let texts = SecretTexts::new(secrets);
    let redact = |text: &ByteString| texts.redact(text);
    let variables = request.options.set_env.iter().map(|(name, value)| {
        let value = redact(value);
        format!("{}={} ", name.to_string_lossy(), shell_quote(&value))
    });
    let command = request.command.map_words(redact).display();
    let input = match &request.stdin {
        StdinRequest::Bytes(bytes) if !bytes.is_empty() => render_input(bytes, redact),
        StdinRequest::Bytes(_)
        | StdinRequest::Default
        | StdinRequest::Empty
        | StdinRequest::Open => String::new(),
    };
    let whole = variables.collect::<String>() + &command + &input;
    StartDisplay {
        is_escaped: has_hidden(&whole),
        text: visible(&whole).into_owned(),
    }
}

fn render_input(bytes: &[u8], redact: impl Fn(&ByteString) -> ByteString) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.len() <= INPUT_BYTES => {
            format!(" <<< {}", shell_quote(&redact(&ByteString::from(text))))
        }
        Ok(_) | Err(_) => format!(" <<< ({} bytes that are not shown)", bytes.len()),
    }
}
