//! Validation of a request's arguments, independent of the machine's state.

use std::time::Duration;

use ostler_model::{
    AlertThresholds, ByteString, Command, Lifetime, Limits, TemplateRecord, TermSize, suggestion,
};

pub use crate::error::ArgumentError;
use crate::request::StartRequest;
use ostler_model::RetentionRequest;

/// The longest argument, or variable with its name, in bytes: the kernel's `MAX_ARG_STRLEN` without
/// the final NUL.
pub const ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// Bytes of all arguments and set variables together, with their pointers: a quarter of the
/// usual stack limit, less what the kernel and we add.
pub const ARGUMENTS_BYTES: usize = 2 * 1024 * 1024 - 64 * 1024;
/// The longest description, in bytes.
pub const DESCRIPTION_BYTES: usize = 4 * 1024;
/// The most labels of one execution.
pub const LABELS: usize = 64;
/// The longest label, in bytes.
pub const LABEL_BYTES: usize = 256;
/// The longest timeout, idle limit and retention, in seconds: ten years.
pub const DURATION_MAX_S: u64 = 10 * 366 * 24 * 60 * 60;
/// The longest reason of a stop, in bytes.
pub const REASON_BYTES: usize = 4 * 1024;

/// Validates everything that does not depend on the machine.
///
/// # Errors
/// The first invalid argument.
pub fn check(request: &StartRequest) -> Result<(), ArgumentError> {
    check_command(&request.command)?;
    check_environment(&request.options.set_env)?;
    check_total(request)?;
    check_durations(request)?;
    if let Some(template) = &request.template {
        check_template(template)?;
    }
    check_labels(&request.options.labels)?;
    check_length(
        "the description",
        request.options.description.len(),
        DESCRIPTION_BYTES,
    )?;
    check_limits(&request.options.limits)?;
    check_alerts(&request.options.alerts)?;
    request.options.pty.map_or(Ok(()), check_terminal_size)
}

/// Validates the size of a terminal.
///
/// # Errors
/// The allowed sizes.
pub fn check_terminal_size(size: TermSize) -> Result<(), ArgumentError> {
    if size.is_valid() {
        return Ok(());
    }
    const { assert!(TermSize::COLS_MAX == 1_000 && TermSize::ROWS_MAX == 1_000) };
    let allowed = "columns and rows are from 1 to 1000";
    Err(invalid("the terminal's size", allowed))
}

fn check_command(command: &Command) -> Result<(), ArgumentError> {
    if command.program().is_empty() {
        return Err(ArgumentError::EmptyCommand);
    }
    let argv = command.argv();
    for (index, word) in argv.iter().enumerate() {
        let what = || match index {
            0 => "the command".to_owned(),
            place => format!("argument {place}"),
        };
        if word.has_nul() {
            return Err(ArgumentError::Nul { what: what() });
        }
        if word.len() > ARGUMENT_BYTES {
            check_length(&what(), word.len(), ARGUMENT_BYTES)?;
        }
    }
    Ok(())
}

fn check_environment(set: &[(ByteString, ByteString)]) -> Result<(), ArgumentError> {
    for (name, value) in set {
        let problem = if name.is_empty() {
            Some("it is empty")
        } else if name.as_bytes().contains(&b'=') {
            Some("it contains '='")
        } else if name.has_nul() {
            Some("it contains a NUL byte")
        } else {
            None
        };
        if let Some(problem) = problem {
            let name = name.to_string();
            return Err(ArgumentError::Variable { name, problem });
        }
        let what = || format!("variable {name}");
        if value.has_nul() {
            return Err(ArgumentError::Nul { what: what() });
        }
        check_length(&what(), name.len() + 1 + value.len(), ARGUMENT_BYTES)?;
    }
    Ok(())
}

fn check_total(request: &StartRequest) -> Result<(), ArgumentError> {
    const POINTER_AND_NUL_BYTES: usize = 9;
    let argv = request.command.argv();
    let words = argv.iter().map(|word| word.len() + POINTER_AND_NUL_BYTES);
    let variables = request
        .options
        .set_env
        .iter()
        .map(|(name, value)| name.len() + 1 + value.len() + POINTER_AND_NUL_BYTES);
    let total: usize = words.chain(variables).sum();
    check_length("the command with its variables", total, ARGUMENTS_BYTES)
}

fn check_durations(request: &StartRequest) -> Result<(), ArgumentError> {
    let (timeout, idle) = match &request.lifetime {
        Some(Lifetime::Finite { timeout, idle }) => (*timeout, *idle),
        Some(Lifetime::Service { .. })
            if request.options.timeout.or(request.options.idle).is_some() =>
        {
            return Err(invalid("timeout", "a service has none"));
        }
        Some(Lifetime::Service { .. }) | None => (request.options.timeout, request.options.idle),
    };
    check_positive("timeout", timeout)?;
    check_positive("idle", idle)?;
    match request.options.retention {
        RetentionRequest::For(time) => check_duration("retention", time),
        RetentionRequest::Default | RetentionRequest::Forever => Ok(()),
    }
}

fn check_positive(what: &'static str, time: Option<Duration>) -> Result<(), ArgumentError> {
    match time {
        Some(Duration::ZERO) => Err(duration_error(what, Duration::ZERO)),
        Some(time) => check_duration(what, time),
        None => Ok(()),
    }
}

/// Whether a duration is not beyond [`DURATION_MAX_S`].
///
/// # Errors
/// When it is.
pub fn check_duration(what: &'static str, time: Duration) -> Result<(), ArgumentError> {
    if time.as_secs() > DURATION_MAX_S {
        return Err(duration_error(what, time));
    }
    Ok(())
}

fn duration_error(what: &'static str, given: Duration) -> ArgumentError {
    ArgumentError::Duration {
        what,
        given: format!("{} s", given.as_secs_f64()),
        allowed: format!("more than 0 and at most {DURATION_MAX_S} s are allowed"),
    }
}

fn check_template(template: &TemplateRecord) -> Result<(), ArgumentError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if template.id.is_empty() || !template.id.chars().all(is_allowed) {
        let allowed = "it is letters, digits, '_' and '-'";
        return Err(invalid("the template's id", allowed));
    }
    check_length(
        "the template's id",
        template.id.len(),
        TemplateRecord::ID_BYTES,
    )?;
    if template.parameters.len() > TemplateRecord::PARAMETERS {
        return Err(ArgumentError::TooMany {
            what: "parameters of the template",
            count: template.parameters.len(),
            limit: TemplateRecord::PARAMETERS,
        });
    }
    let sizes = template.parameters.iter();
    let total = sizes.map(|(name, value)| name.len() + value.len()).sum();
    check_length("the template's parameters", total, ARGUMENTS_BYTES)
}

fn check_labels(labels: &[String]) -> Result<(), ArgumentError> {
    if labels.len() > LABELS {
        return Err(ArgumentError::TooMany {
            what: "labels",
            count: labels.len(),
            limit: LABELS,
        });
    }
    for (index, label) in labels.iter().enumerate() {
        let what = format!("label {}", index + 1);
        if label.is_empty() {
            return Err(invalid(what, "it is empty"));
        }
        if label.chars().any(char::is_control) {
            return Err(invalid(what, "it contains a control character"));
        }
        check_length(&what, label.len(), LABEL_BYTES)?;
    }
    Ok(())
}

fn check_limits(limits: &Limits) -> Result<(), ArgumentError> {
    refuse_zero([
        ("the limit on processes", limits.pids == Some(0)),
        ("the limit on memory", limits.memory_bytes == Some(0)),
        ("the limit on cpu", limits.cpu_millis == Some(0)),
        ("the limit on open files", limits.open_files == Some(0)),
    ])
}

/// A threshold of zero would always be crossed.
fn check_alerts(alerts: &AlertThresholds) -> Result<(), ArgumentError> {
    if alerts.cpu_percent > Some(AlertThresholds::CPU_PERCENT_MAX) {
        let allowed = "at most 102400 percent of one core are possible";
        return Err(invalid("the alert on cpu", allowed));
    }
    refuse_zero([
        ("the alert on cpu", alerts.cpu_percent == Some(0)),
        ("the alert on memory", alerts.memory_bytes == Some(0)),
        ("the alert on disk", alerts.disk_bytes == Some(0)),
        (
            "the alert on run time",
            alerts.run_time == Some(Duration::ZERO),
        ),
        (
            "the alert on idle time",
            alerts.idle == Some(Duration::ZERO),
        ),
    ])
}

fn refuse_zero<const N: usize>(zeros: [(&str, bool); N]) -> Result<(), ArgumentError> {
    match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((what, _)) => Err(invalid(what, "at least 1 is needed")),
        None => Ok(()),
    }
}

/// Whether `bytes` are within `limit`.
///
/// # Errors
/// When they are more.
pub fn check_length(what: &str, bytes: usize, limit: usize) -> Result<(), ArgumentError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(ArgumentError::TooLong {
        what: what.to_owned(),
        bytes,
        limit,
    })
}

fn invalid(what: impl Into<String>, problem: &'static str) -> ArgumentError {
    ArgumentError::Invalid {
        what: what.into(),
        problem,
    }
}

/// Labels without duplicates, in the order given.
#[must_use]
pub fn dedup(labels: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    labels
        .into_iter()
        .filter(|label| seen.insert(label.clone()))
        .collect()
}

/// The label, when it names an encoding.
///
/// # Errors
/// When it does not, with the nearest one that does.
pub fn check_encoding(label: Option<String>) -> Result<Option<String>, ArgumentError> {
    let Some(label) = label else {
        return Ok(None);
    };
    if ostler_journal::encoding_for_label(&label).is_ok() {
        return Ok(Some(label));
    }
    let lower = label.to_ascii_lowercase();
    let nearest = suggestion::nearest(&lower, COMMON_ENCODINGS);
    Err(ArgumentError::Encoding {
        label,
        suggestion: nearest.map(str::to_owned),
    })
}

const COMMON_ENCODINGS: [&str; 24] = [
    "utf-8",
    "utf-16le",
    "utf-16be",
    "gbk",
    "gb18030",
    "gb2312",
    "cp936",
    "big5",
    "shift_jis",
    "euc-jp",
    "iso-2022-jp",
    "euc-kr",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "windows-1254",
    "iso-8859-1",
    "iso-8859-2",
    "iso-8859-15",
    "latin1",
    "koi8-r",
    "ibm866",
    "macintosh",
    "auto",
];
