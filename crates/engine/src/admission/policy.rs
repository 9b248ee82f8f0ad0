//! The command policy (B3): what it says about a request, and whether a person has agreed.
//!
//! By default there is none, and every command may run. A file in the workspace tightens what
//! is set; without a policy it means nothing.

use std::path::{Path, PathBuf};

use ostler_model::{Caller, Text};
use ostler_policy::{Decision, PolicySet, Source, Subject, Tier, Verdict};

use super::{environment, program};
use crate::core::Core;
use crate::error::Error;
use crate::interaction::{Approval, AskedStart, Consent, Kind, Question};
use crate::request::StartRequest;
use crate::settings::Settings;

/// A workspace's own rules, below its directory.
pub const WORKSPACE_FILE: &str = ".ostler/policy.toml";
/// The rule named where a workspace's rules cannot be read.
const UNREADABLE: &str = "workspace-policy";
/// Characters of a command line in a question.
const COMMAND_CHARS: usize = 2_000;
/// Bytes of a workspace's rules.
const FILE_BYTES: u64 = 256 * 1024;
/// Directories above the working directory that are looked through.
const ANCESTORS: usize = 64;

/// What the policy says; none where there is no policy. A deny is an error.
pub(crate) fn judge(settings: &Settings, request: &StartRequest) -> Result<Option<Verdict>, Error> {
    let Some(set) = &settings.policy else {
        return Ok(None);
    };
    super::arguments::check(request)?;
    let tightened = with_workspace(set, &request.cwd)?;
    let set = tightened.as_ref().unwrap_or(set);
    let verdict = verdict(set, settings, request);
    if verdict.decision == Decision::Deny {
        return Err(Error::Denied {
            rule: verdict.rule,
            reason: verdict.reason,
        });
    }
    judge_probes(set, settings, request)?;
    Ok(Some(verdict))
}

/// What looks at a service runs again and again and unattended: nobody can be asked about it,
/// so it must be allowed outright.
fn judge_probes(set: &PolicySet, settings: &Settings, request: &StartRequest) -> Result<(), Error> {
    for probe in super::service::probes(request.lifetime.as_ref()) {
        let told = probe.display();
        let request = StartRequest {
            command: probe,
            lifetime: None,
            ..request.clone()
        };
        let verdict = verdict(set, settings, &request);
        if verdict.decision != Decision::Allow {
            return Err(Error::Denied {
                rule: verdict.rule,
                reason: format!("its probe `{told}` is not allowed: {}", verdict.reason),
            });
        }
    }
    Ok(())
}

fn verdict(set: &PolicySet, settings: &Settings, request: &StartRequest) -> Verdict {
    let inherit = request.inherit_env.unwrap_or(settings.inherit_env);
    let env = environment::build(settings, request, inherit);
    let path = environment::value(&env, b"PATH").unwrap_or(&settings.trusted_path);
    let find = |name: &str| {
        let found = program::find(&Text::from(name), path, &request.cwd).ok()?;
        Some(PathBuf::from(found.as_path()))
    };
    set.judge(&Subject {
        command: &request.command,
        cwd: &request.cwd,
        set_env: &request.set_env,
        find: Some(&find),
    })
}

/// The policy with the rules of the nearest workspace file, if there is one. A file that
/// cannot be read or would loosen lets nothing run.
///
/// # Errors
/// [`Error::Denied`], with what is wrong with the file.
pub fn with_workspace(set: &PolicySet, cwd: &Text) -> Result<Option<PolicySet>, Error> {
    let files = cwd.as_path().ancestors().take(ANCESTORS);
    let Some(file) = files
        .map(|directory| directory.join(WORKSPACE_FILE))
        .find(|file| file.symlink_metadata().is_ok())
    else {
        return Ok(None);
    };
    let unusable = |reason: String| Error::Denied {
        rule: UNREADABLE.to_owned(),
        reason,
    };
    let text = read(&file).map_err(|error| unusable(format!("{}: {error}", file.display())))?;
    let source = Source::new(Tier::Workspace, file.display().to_string(), text);
    let tightened = set.tightened(&source);
    tightened
        .map(Some)
        .map_err(|error| unusable(error.to_string()))
}

fn read(file: &Path) -> std::io::Result<String> {
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > FILE_BYTES {
        return Err(std::io::Error::other("no file of rules"));
    }
    std::fs::read_to_string(file)
}

/// What a person is asked about: the start as it was requested.
pub(crate) fn asked(request: &StartRequest) -> AskedStart {
    AskedStart {
        command: request.command.clone(),
        cwd: request.cwd.clone(),
        set_env: request.set_env.clone(),
        inherit_env: request.inherit_env,
        stdin: request.stdin.clone(),
        level: request.level,
        confine: request.confine.clone(),
        secrets: request.secrets.clone(),
    }
}

/// Goes on where a person has agreed to exactly this; asks otherwise. `told` is the command
/// line for people, without secrets.
pub(crate) fn consent(
    core: &Core,
    caller: &Caller,
    verdict: Verdict,
    (asked, named, told): (AskedStart, Option<&str>, &str),
) -> Result<(), Error> {
    let required = |interaction: String| {
        Err(Error::ApprovalRequired {
            rule: verdict.rule.clone(),
            reason: verdict.reason.clone(),
            interaction,
        })
    };
    match core.desk.consent(&caller.owner, &asked, named) {
        Consent::Granted => Ok(()),
        Consent::Open(id) => required(id.to_string()),
        Consent::Refused => Err(Error::Denied {
            rule: verdict.rule,
            reason: format!("a person said no ({})", verdict.reason),
        }),
        Consent::None => {
            let question = question(&verdict, asked, told);
            let asked = core.ask(caller, question)?;
            required(asked.id.to_string())
        }
    }
}

fn question(verdict: &Verdict, asked: AskedStart, told: &str) -> Question {
    let command: String = told.chars().take(COMMAND_CHARS).collect();
    let message = format!(
        "May this run in {}?\n{command}\n(rule '{}': {})",
        asked.cwd, verdict.rule, verdict.reason
    );
    let message = message.chars().take(COMMAND_CHARS * 2).collect::<String>();
    Question {
        options: vec!["yes".to_owned(), "no".to_owned()],
        approval: Some(Box::new(Approval {
            rule: verdict.rule.clone(),
            reason: verdict.reason.clone(),
            command,
            asked,
        })),
        ..Question::new(Kind::Confirmation, clipped(message))
    }
}

/// At most what a question may be long.
fn clipped(mut message: String) -> String {
    let mut end = crate::interaction::MESSAGE_BYTES.min(message.len());
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    message
}
