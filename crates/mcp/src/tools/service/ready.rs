//! `ready_when`: the condition of readiness, in one word.

use ostler_model::{ByteString, ReadyCondition};

use ostler_interface::error::ApiError;

/// The allowed values, for errors.
const ALLOWED: &str = "auto, listening, responding, log, notify, quiet:SECONDS, tcp:PORT, \
                       exec:COMMAND, a path such as /health, or an http URL";
/// The shell of `exec:`.
const SHELL: &str = "/bin/sh";
/// The longest quiet time, in seconds: an hour.
const QUIET_LIMIT_S: f64 = 3_600.0;

/// Parses the condition.
pub(super) fn parse_ready_when(given: &str) -> Result<ReadyCondition, ApiError> {
    parse_word(given.trim()).ok_or_else(|| {
        ApiError::value(format!(
            "parameter 'ready_when' is '{given}'; allowed: {ALLOWED}"
        ))
    })
}

fn parse_word(word: &str) -> Option<ReadyCondition> {
    if word.starts_with('/') || word.starts_with("http://") || word.starts_with("https://") {
        let target = word.to_owned();
        return Some(ReadyCondition::Http { target });
    }
    let (kind, rest) = word.split_once(':').unwrap_or((word, ""));
    let rest = rest.trim();
    Some(match (kind, rest) {
        ("auto", "") => ReadyCondition::Auto,
        ("listening", "") => ReadyCondition::Listening,
        ("responding", "") => ReadyCondition::Responding,
        ("log", "") => ReadyCondition::Log,
        ("notify", "") => ReadyCondition::Notify,
        ("tcp", port) => ReadyCondition::Tcp {
            port: port.parse().ok().filter(|port| *port > 0)?,
        },
        ("quiet", seconds) => ReadyCondition::Quiet {
            ms: parse_quiet_ms(seconds)?,
        },
        ("exec", script) if !script.is_empty() => ReadyCondition::Exec {
            argv: [SHELL, "-c", script].map(ByteString::from).to_vec(),
        },
        _ => return None,
    })
}

/// Parses seconds, with or without a unit, to milliseconds.
fn parse_quiet_ms(seconds: &str) -> Option<u64> {
    let number = seconds.strip_suffix('s').unwrap_or(seconds);
    let seconds: f64 = number.parse().ok()?;
    let is_valid = seconds > 0.0 && seconds <= QUIET_LIMIT_S;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and at most an hour"
    )]
    is_valid.then_some((seconds * 1_000.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        for (given, read) in [
            ("auto", ReadyCondition::Auto),
            (" listening ", ReadyCondition::Listening),
            ("responding", ReadyCondition::Responding),
            ("log", ReadyCondition::Log),
            ("notify", ReadyCondition::Notify),
            ("tcp:5432", ReadyCondition::Tcp { port: 5432 }),
            ("quiet:5", ReadyCondition::Quiet { ms: 5_000 }),
            ("quiet: 0.5s", ReadyCondition::Quiet { ms: 500 }),
        ] {
            assert_eq!(parse_ready_when(given), Ok(read), "{given}");
        }
        for target in ["/health", "http://localhost:1/x", "https://127.0.0.1/"] {
            let target = target.to_owned();
            assert_eq!(
                parse_ready_when(&target),
                Ok(ReadyCondition::Http { target })
            );
        }
        let argv = ["/bin/sh", "-c", "pg_isready -p 5432"].map(ByteString::from);
        let argv = argv.to_vec();
        assert_eq!(
            parse_ready_when("exec:pg_isready -p 5432"),
            Ok(ReadyCondition::Exec { argv })
        );
    }

    #[test]
    fn invalid_values_are_reported_with_what_is_allowed() {
        for given in [
            "",
            "soon",
            "tcp",
            "tcp:0",
            "tcp:65536",
            "quiet:",
            "quiet:-1",
            "quiet:3601",
            "quiet:NaN",
            "exec:",
            "log:x",
        ] {
            let failure = parse_ready_when(given).unwrap_err();
            assert!(failure.message.ends_with(ALLOWED), "{given}");
        }
    }
}
