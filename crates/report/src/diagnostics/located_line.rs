//! Tools that print a diagnostic in one line that begins with its place: gcc, clang, mypy, ruff,
//! flake8, go, javac, `ShellCheck`.

use super::location::split_location;
use crate::diagnostic::{DiagnosticSeverity, SourceLocation, Tool, ToolDiagnostic};
use crate::output_line::PlainLine;
use crate::report_builder::ReportBuilder;

/// Extensions of what C and C++ compilers and assemblers read.
const C_EXTENSIONS: &[&str] = &[
    "c", "h", "cc", "cpp", "cxx", "c++", "hpp", "hh", "hxx", "inl", "ipp", "tcc", "m", "mm", "s",
    "S", "cu", "cuh",
];

/// The part of a diagnostic that is printed after its place.
struct Finding<'a> {
    tool: Tool,
    severity: DiagnosticSeverity,
    rule: Option<&'a str>,
    message: &'a str,
}

/// Parses such lines.
#[derive(Debug, Default)]
pub(super) struct LocatedLineParser {
    /// The number of diagnostics in the report at the last line of an earlier run of ruff.
    earlier: usize,
}

impl LocatedLineParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        if let Some(count) = ruff_findings(line.text) {
            report.name_as_ruff(self.earlier, count);
            self.earlier = report.diagnostic_count();
            return;
        }
        let text = line.text.strip_prefix("vet: ").unwrap_or(line.text);
        let Some((location, rest)) = split_location(text) else {
            return;
        };
        let Some(finding) = classify(&location, rest) else {
            return;
        };
        report.add_diagnostic(ToolDiagnostic {
            tool: finding.tool,
            severity: finding.severity,
            rule: finding.rule.map(str::to_owned),
            message: finding.message.to_owned(),
            position: line.position,
            location: Some(location),
        });
    }
}

/// The number of diagnostics before the last line of ruff, `Found 3 errors.` or
/// `Found 3 errors (1 fixed, 2 remaining).`; that of mypy goes on after the word.
fn ruff_findings(text: &str) -> Option<usize> {
    let (found, rest) = text.strip_prefix("Found ")?.split_once(" error")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    if rest == "." {
        return found.parse().ok();
    }
    let fixed_and_remaining = rest.strip_prefix(" (")?.strip_suffix(" remaining).")?;
    fixed_and_remaining.rsplit(' ').next()?.parse().ok()
}

fn classify<'a>(location: &SourceLocation, rest: &'a str) -> Option<Finding<'a>> {
    let (_, extension) = location.file.rsplit_once('.')?;
    let severity = split_severity(rest);
    if let Some((severity, message)) = severity
        && let Some(rule) = shellcheck_rule(message)
    {
        return Some(Finding {
            tool: Tool::Shellcheck,
            severity,
            rule: Some(rule),
            message: without_rule(message),
        });
    }
    match (extension, severity) {
        ("py" | "pyi", Some((severity, message))) => Some(mypy(severity, message)),
        ("py" | "pyi" | "ipynb", None) => python_linter(rest),
        ("java", Some((severity, message))) => Some(javac(severity, message)),
        ("go", None) => {
            let is_position = location.column.is_some() && !location.file.contains(' ');
            is_position.then_some(Finding {
                tool: Tool::Go,
                severity: DiagnosticSeverity::Error,
                rule: None,
                message: rest,
            })
        }
        // What a C compiler notes belongs to the error before.
        (_, Some((DiagnosticSeverity::Note, _)) | None) => None,
        (extension, Some((severity, message))) => C_EXTENSIONS
            .contains(&extension)
            .then(|| cc(severity, message)),
    }
}

/// Splits `error: message`.
fn split_severity(text: &str) -> Option<(DiagnosticSeverity, &str)> {
    let (word, message) = text.split_once(": ")?;
    let severity = match word {
        "error" | "fatal error" | "internal compiler error" => DiagnosticSeverity::Error,
        "warning" => DiagnosticSeverity::Warning,
        "note" => DiagnosticSeverity::Note,
        _ => return None,
    };
    Some((severity, message))
}

/// What stands in square brackets at the end of a message.
fn bracketed(message: &str) -> Option<&str> {
    let (_, rule) = message.strip_suffix(']')?.rsplit_once('[')?;
    (!rule.is_empty() && !rule.contains(' ')).then_some(rule)
}

/// The message before what stands in square brackets at its end.
fn without_rule(message: &str) -> &str {
    message
        .rfind('[')
        .map_or(message, |at| message[..at].trim_end())
}

fn shellcheck_rule(message: &str) -> Option<&str> {
    bracketed(message).filter(|rule| {
        let digits = rule.strip_prefix("SC").unwrap_or_default();
        digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn cc(severity: DiagnosticSeverity, message: &str) -> Finding<'_> {
    let rule = bracketed(message).filter(|rule| rule.starts_with("-W"));
    Finding {
        tool: Tool::Cc,
        severity,
        rule,
        message: rule.map_or(message, |_| without_rule(message)),
    }
}

fn mypy(severity: DiagnosticSeverity, message: &str) -> Finding<'_> {
    let is_code = |rule: &&str| {
        rule.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    // Two spaces before it tell a code from a part of the message.
    let rule = bracketed(message)
        .filter(is_code)
        .filter(|rule| message.ends_with(&format!("  [{rule}]")));
    Finding {
        tool: Tool::Mypy,
        severity,
        rule,
        message: rule.map_or(message, |_| without_rule(message)),
    }
}

/// `CODE message`, or `CODE [*] message` where ruff can fix it.
fn python_linter(rest: &str) -> Option<Finding<'_>> {
    let (code, message) = rest.split_once(' ')?;
    let code = code.strip_suffix(':').unwrap_or(code);
    let letters = code.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = code.bytes().skip(letters);
    let is_code = (1..=4).contains(&letters)
        && (1..=4).contains(&digits.len())
        && digits.clone().all(|byte| byte.is_ascii_digit());
    if !is_code && !matches!(code, "SyntaxError" | "invalid-syntax") {
        return None;
    }
    let (tool, message) = match message.strip_prefix("[*] ") {
        Some(message) => (Tool::Ruff, message),
        None => (Tool::Flake8, message),
    };
    Some(Finding {
        tool,
        severity: DiagnosticSeverity::Error,
        rule: Some(code),
        message,
    })
}

/// `warning: [deprecation] message`.
fn javac(severity: DiagnosticSeverity, message: &str) -> Finding<'_> {
    let lint = message
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let (rule, message) = match lint {
        Some((rule, message)) => (Some(rule), message),
        None => (None, message),
    };
    Finding {
        tool: Tool::Javac,
        severity,
        rule,
        message,
    }
}
