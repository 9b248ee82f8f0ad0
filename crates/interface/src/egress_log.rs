//! The decision log of an execution's egress proxy: one JSON line per decision.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use ostler_api::{EgressDecisionBody, EgressPageBody};

/// The log's file name in an execution's directory.
const FILE: &str = "network.jsonl";
/// The most bytes read for one page, in place; a line has some hundred.
const PAGE_BYTES: u64 = 256 * 1024;

/// Decisions from the byte offset `from` on, at most `limit`; none where there is no log.
/// Incomplete and damaged lines are skipped.
pub fn read_page(directory: &Path, from: u64, limit: usize) -> io::Result<EgressPageBody> {
    let mut page = EgressPageBody {
        decisions: Vec::new(),
        next: from,
        more: false,
    };
    let mut file = match File::open(directory.join(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(page),
        Err(error) => return Err(error),
    };
    let end = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(PAGE_BYTES).read_to_end(&mut bytes)?;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if !line.ends_with(b"\n") || page.decisions.len() == limit {
            break;
        }
        page.next += line.len() as u64;
        page.decisions.extend(parse_decision(line));
    }
    page.more = page.next > from && page.next < end;
    Ok(page)
}

/// Refused hosts, each once with the reason, in order of the first request.
pub fn refused_hosts(directory: &Path, limit: usize) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    let mut from = 0;
    for _ in 0..PAGES {
        let Ok(page) = read_page(directory, from, usize::MAX) else {
            break;
        };
        for host in page
            .decisions
            .iter()
            .filter(|it| is_refusal(it))
            .map(describe_refusal)
        {
            if !hosts.contains(&host) && hosts.len() <= limit {
                hosts.push(host);
            }
        }
        from = page.next;
        if !page.more || hosts.len() > limit {
            break;
        }
    }
    if hosts.len() > limit {
        hosts.truncate(limit);
        hosts.push("more".to_owned());
    }
    hosts
}

/// The most pages searched for refusals.
const PAGES: usize = 16;

/// All decisions but those that allowed.
fn is_refusal(decision: &EgressDecisionBody) -> bool {
    !["allowed", "allow", "answered", "connected", "closed"].contains(&decision.decision.as_str())
}

/// `evil.example:443 (not on the list)`.
fn describe_refusal(decision: &EgressDecisionBody) -> String {
    let port = decision
        .port
        .map_or_else(String::new, |it| format!(":{it}"));
    let reason = decision.reason.as_deref().filter(|it| !it.is_empty());
    let reason = reason.map_or_else(String::new, |it| format!(" ({it})"));
    format!("{}{port}{reason}", decision.host)
}

fn parse_decision(line: &[u8]) -> Option<EgressDecisionBody> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"at":"2026-11-21T10:00:00Z","host":"example.org","port":443,"address":"203.0.113.223","decision":"allowed","reason":""}"#,
        "\n",
        r#"{"at":"2026-11-21T10:00:01Z","host":"evil.example","decision":"refused","reason":"not on the list"}"#,
        "\n",
        "garbage\n",
        r#"{"at":"2026-11-21T10:00:02Z","host":"evil.example","decision":"refused","reason":"not on the list"}"#,
        "\n",
        r#"{"at":"2026-11-21T10:00:03Z","host":"10.0.0.1","port":22,"decision":"refused"}"#,
        "\n",
        r#"{"at":"2026-11-21T10"#,
    );

    #[test]
    fn pages_go_on_where_the_last_ended() {
        let directory = tempfile::tempdir().unwrap();
        let none = read_page(directory.path(), 0, 10).unwrap();
        assert!(none.decisions.is_empty() && !none.more);
        std::fs::write(directory.path().join(FILE), LINES).unwrap();
        let first = read_page(directory.path(), 0, 2).unwrap();
        assert_eq!((first.decisions.len(), first.more), (2, true));
        let rest = read_page(directory.path(), first.next, 10).unwrap();
        assert_eq!(rest.decisions.len(), 2);
        // The incomplete line comes later.
        let again = read_page(directory.path(), rest.next, 10).unwrap();
        assert_eq!((again.decisions.len(), again.next), (0, rest.next));
        assert!(!again.more);
    }

    #[test]
    fn refusals_are_reported_once() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), LINES).unwrap();
        let actual = refused_hosts(directory.path(), 5);
        assert_eq!(actual, ["evil.example (not on the list)", "10.0.0.1:22"]);
        let actual = refused_hosts(directory.path(), 1);
        assert_eq!(actual, ["evil.example (not on the list)", "more"]);
    }
}
