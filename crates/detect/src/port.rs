//! The port that a command line requests, and how to request another.

use super::arguments::ParsedArguments;
use super::simple_command::SimpleCommand;
use super::table::TableEntry;

/// A port that a command requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestedPort {
    pub(super) port: u16,
    /// Whether an argument requests it, not a variable.
    pub(super) by_argument: bool,
}

/// The port that a command requests; the first `used` operands are not ports.
pub(super) fn requested_port(
    entry: &TableEntry,
    call: &SimpleCommand,
    arguments: &ParsedArguments<'_>,
    used: usize,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<RequestedPort> {
    entry.text.port.iter().find_map(|source| {
        let by_argument = !source.starts_with('$');
        let port = match source.split_at_checked(1) {
            Some(("$", name)) => variable(name).and_then(|value| port_of(&value)),
            Some(("~", text)) => call.args().iter().find_map(|word| port_after(word, text)),
            Some(("@", minimum)) => {
                let least = minimum.parse().unwrap_or(1);
                let mut rest = arguments.operands.iter().skip(used);
                rest.find_map(|word| port_of(word).filter(|port| *port >= least))
            }
            _ => arguments.value(source).and_then(port_of),
        };
        port.map(|port| RequestedPort { port, by_argument })
    })
}

/// Whether it listens on a unix socket: `--bind unix:/run/app.sock`, `--uds`.
pub(super) fn uses_unix_socket(entry: &TableEntry, arguments: &ParsedArguments<'_>) -> bool {
    let is_port_option = |name: &str| entry.text.port.iter().any(|it| it == name);
    let is_socket = |value: Option<&str>| value.is_some_and(|it| it.starts_with("unix:"));
    let mut options = arguments.options.iter();
    options.any(|(name, value)| *name == "--uds" || (is_port_option(name) && is_socket(*value)))
}

/// The arguments that, appended to the command as given, set its port.
pub(super) fn port_arguments(
    entry: &TableEntry,
    call: &SimpleCommand,
    requested: Option<RequestedPort>,
) -> Option<Vec<String>> {
    let template = entry.text.port_arguments.as_ref()?;
    if requested.is_some_and(|port| port.by_argument) {
        return None;
    }
    // It follows the variable by itself.
    let names_variable = |word: &String| ["$PORT", "${PORT}"].iter().any(|it| word.contains(it));
    if call.args().iter().any(names_variable) {
        return call.variable("PORT").is_none().then(Vec::new);
    }
    let by_variable = || {
        let honoured = template.is_empty() || entry.text.port.iter().any(|it| it == "$PORT");
        (honoured && call.variable("PORT").is_none()).then(Vec::new)
    };
    match &call.argument_prefix {
        Some(lead) if !template.is_empty() => Some(lead.iter().chain(template).cloned().collect()),
        Some(_) | None => by_variable(),
    }
}

/// The port in `8000`, `:8000`, `url_host:8000`, `[::1]:8000`, `http://host:8000/path`.
fn port_of(text: &str) -> Option<u16> {
    let text = text.split([';', ',']).next()?;
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let text = text.split(['/', '?']).next()?;
    let digits = text.rsplit(':').next()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // `::1` and `fe80::8000` are addresses, not ports.
    let bare_ipv6 = text.matches(':').count() > 1 && !text.contains(']');
    if !is_number || bare_ipv6 {
        return None;
    }
    digits.parse().ok().filter(|port| *port > 0)
}

/// The digits after `text` in a word: `--args=--server.port=8081`.
fn port_after(word: &str, text: &str) -> Option<u16> {
    let (_, rest) = word.split_once(text)?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..end)?.parse().ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_all_their_forms() {
        for (text, port) in [
            ("8000", Some(8000)),
            (":8000", Some(8000)),
            ("*:8000", Some(8000)),
            ("0.0.0.0:8001", Some(8001)),
            ("[::]:8002", Some(8002)),
            ("http://localhost:5000;https://localhost:5001", Some(5000)),
            ("http://+:80/", Some(80)),
            ("tcp:8080", Some(8080)),
            ("::1", None),
            ("fe80::8000", None),
            ("unix:/run/x", None),
            ("0", None),
            ("70000", None),
            ("hello", None),
            ("", None),
            ("80a", None),
        ] {
            assert_eq!(port_of(text), port, "{text}");
        }
        assert_eq!(
            port_after("--args=--server.port=81", "server.port="),
            Some(81)
        );
        assert_eq!(port_after("--x", "server.port="), None);
    }
}
