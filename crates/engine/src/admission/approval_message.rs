//! The question to a person whether a start may run: all of the request that decides what it does.

use ostler_model::{BackendName, ByteString, IsolationLevel, SandboxOptions, visible};
use ostler_policy::PolicyVerdict;

use super::approval::ApprovalSubject;
use super::named_files::NamedFiles;

/// The most bytes of a directory, a rule and a reason in a question.
const PART_BYTES: usize = 4 * 1024;
/// The most files that are listed in a question.
const FILES_SHOWN: usize = 16;

/// The question, whose first lines are the directory, the command line as `display` says it, and the
/// rule.
pub(super) fn approval_message(
    verdict: &PolicyVerdict,
    subject: &ApprovalSubject,
    display: &str,
    is_escaped: bool,
) -> String {
    let cwd = render_part(&subject.cwd.to_string_lossy());
    let (rule, reason) = (render_part(&verdict.rule), render_part(&verdict.reason));
    let mut message = format!("May this run in {cwd}?\n{display}\n(rule '{rule}': {reason})");
    message.push_str(&render_container(subject));
    message.push_str(&render_sandbox(subject));
    message.push_str(&render_files(&subject.files));
    if is_escaped {
        message.push_str(ESCAPES_NOTE);
    }
    message
}

/// That it runs in a container, where the request says so, and in which image.
fn render_container(subject: &ApprovalSubject) -> String {
    let backend = subject.backend.as_ref();
    let by_backend = backend.is_some_and(|it| *it == BackendName::container());
    if subject.level != Some(IsolationLevel::Container) && !by_backend {
        return String::new();
    }
    let image = subject.container.image.as_deref();
    let image = image.map_or_else(String::new, |it| format!(" of image {}", render_part(it)));
    format!("\n(in a container{image})")
}

/// What the request says about its sandbox, its environment and secrets; nothing where it takes the
/// settings.
fn render_sandbox(subject: &ApprovalSubject) -> String {
    let SandboxOptions {
        workspace,
        overlay,
        network,
        read,
        write,
        forwards,
        allow_degraded,
    } = &subject.confine;
    let list = |label: &str, words: Vec<String>| {
        (!words.is_empty()).then(|| format!("{label} {}", words.join(", ")))
    };
    let paths = |paths: &[ByteString]| paths.iter().map(|it| it.to_string_lossy().into()).collect();
    let level = subject.level.filter(|it| *it != IsolationLevel::Container);
    let parts = [
        level.map(|level| format!("isolation {level}")),
        network.as_ref().map(|network| format!("network {network}")),
        list("secrets", subject.secrets.clone()),
        workspace
            .as_ref()
            .map(|it| format!("workspace {}", it.to_string_lossy())),
        overlay.then(|| "writes go to an overlay".to_owned()),
        list("also writes", paths(write)),
        list("also reads", paths(read)),
        list("ports", forwards.iter().map(ToString::to_string).collect()),
        list(
            "may run without",
            allow_degraded
                .iter()
                .map(|it| it.as_str().to_owned())
                .collect(),
        ),
        subject.inherit_env.map(|inherits| match inherits {
            true => "inherits the environment".to_owned(),
            false => "does not inherit the environment".to_owned(),
        }),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .map(|it| render_part(&it))
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("\n({})", parts.join("; ")),
    }
}

/// The note that control characters were escaped.
const ESCAPES_NOTE: &str = "\n(control characters are shown as escapes: \\n is a line end, \\r a \
                       carriage return, \\\\ a backslash)";

/// The files of the workspace that an approval covers.
fn render_files(files: &NamedFiles) -> String {
    let mut own = files
        .iter()
        .map(|(_, file)| file)
        .filter(|it| !it.is_program);
    let mut text = String::new();
    for file in own.by_ref().take(FILES_SHOWN) {
        let path = render_part(&file.resolved.display().to_string());
        let digest = file.digest().unwrap_or_else(|| "not read".to_owned());
        text.push_str(&format!("\n{path}: {} bytes, SHA-256 {digest}…", file.size));
    }
    let more = own.count();
    if more > 0 {
        text.push_str(&format!("\nand {more} other files as they are now"));
    }
    if files.is_truncated() {
        text.push_str("\nIT NAMES MORE FILES THAN CAN BE HELD TO THEIR CONTENT");
    }
    text
}

/// Untrusted text of a question, on one line.
fn render_part(text: &str) -> String {
    let mut line = visible(text).into_owned();
    if line.len() > PART_BYTES {
        let end = line.floor_char_boundary(PART_BYTES);
        line.truncate(end);
        line.push('…');
    }
    line
}
