//! Classifies a line of output: failure, ready or neither.
//!
//! Failures take precedence: a line that reports one never counts as ready. The generic expressions
//! hold for every program (studied on 120 real starts); those of one framework are in the detection
//! table.

use std::sync::LazyLock;

use ostler_model::ReadyRule;
use regex::{Regex, RegexSet, SetMatches};

use super::printed_address::{
    AddressWeight, PrintedAddress, ascii_classes, extract_addresses, from_captures,
};

/// The classification of one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LineMeaning {
    /// The failure it reports.
    pub(super) failure: Option<LineFailure>,
    /// Whether a ready expression of the rule matches.
    pub(super) ready: bool,
    /// Whether it looks like an idle watcher.
    pub(super) idle: bool,
    /// Whether a watcher restarts its program.
    pub(super) restart: bool,
    /// The addresses it contains.
    pub(super) addresses: Vec<PrintedAddress>,
}

/// Failures, in order of certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFailure {
    /// The application has failed.
    Dead,
    /// The application has ended successfully under a watcher: no failure, but no server either.
    Ended,
    /// A port is in use; the line does not say whether the program continues on another.
    InUse,
    /// A port is in use and the program continues on another.
    Moved,
    /// An error that usually ends the program.
    Fatal,
    /// A line that calls itself an error.
    Error,
}

/// The expressions of a rule, compiled.
#[derive(Debug, Clone)]
pub(super) struct LogPatterns {
    ready: Vec<Regex>,
    fail: Vec<Regex>,
    url: Vec<Regex>,
}

impl LogPatterns {
    /// Compiles a rule's expressions; those that do not compile match nothing.
    pub(super) fn new(rule: &ReadyRule) -> Self {
        let compiled = |list: &[String]| list.iter().filter_map(|it| Regex::new(it).ok()).collect();
        Self {
            ready: compiled(&rule.ready),
            fail: compiled(&rule.fail),
            url: compiled(&rule.url),
        }
    }

    /// Classifies a line.
    pub(super) fn analyze(&self, line: &str) -> LineMeaning {
        let generic = PatternMatches::new(line);
        let failure = if matches(&self.fail, line) {
            Some(LineFailure::Dead)
        } else {
            generic.failure()
        };
        match failure {
            Some(
                LineFailure::Dead | LineFailure::Ended | LineFailure::InUse | LineFailure::Moved,
            ) => LineMeaning {
                failure,
                ..LineMeaning::default()
            },
            Some(LineFailure::Fatal | LineFailure::Error) | None => LineMeaning {
                failure,
                ready: matches(&self.ready, line),
                idle: generic.has(GenericPattern::Idle),
                restart: generic.has(GenericPattern::Restart),
                addresses: self.find_addresses(line, generic.has(GenericPattern::Side)),
            },
        }
    }

    /// Classifies a later part of a long line, by the rule's own expressions alone: the generic ones
    /// are about the beginnings of lines.
    pub(super) fn analyze_later_part(&self, part: &str) -> LineMeaning {
        let is_dead = matches_inside(&self.fail, part);
        LineMeaning {
            failure: is_dead.then_some(LineFailure::Dead),
            ready: !is_dead && matches_inside(&self.ready, part),
            ..LineMeaning::default()
        }
    }

    /// The addresses that a line contains.
    pub(super) fn addresses(&self, line: &str) -> Vec<PrintedAddress> {
        self.find_addresses(line, PatternMatches::new(line).has(GenericPattern::Side))
    }

    fn find_addresses(&self, line: &str, side: bool) -> Vec<PrintedAddress> {
        let mut addresses: Vec<PrintedAddress> = self
            .url
            .iter()
            .filter_map(|it| from_captures(&it.captures(line)?))
            .collect();
        addresses.extend(extract_addresses(line));
        if side {
            addresses
                .iter_mut()
                .filter(|it| it.weight != AddressWeight::Rule)
                .for_each(|it| {
                    it.weight = AddressWeight::Side;
                });
        }
        addresses
    }

    /// The first of the ready expressions, as given.
    pub(super) fn first_ready(&self) -> Option<&str> {
        self.ready.first().map(Regex::as_str)
    }

    /// Whether it has ready expressions.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }
}

/// Whether a line says that a port is in use.
pub fn is_port_conflict(line: &str) -> bool {
    PatternMatches::new(line).has(GenericPattern::InUse)
}

/// The line that explains best why a program failed: a port in use, else the last fatal error, else
/// a failure expression of its kind, else the first line marked as an error.
pub fn failure_line<'a>(rule: &ReadyRule, lines: &'a [String]) -> Option<&'a String> {
    let own = LogPatterns::new(rule).fail;
    let has = |which: GenericPattern, line: &str| PatternMatches::new(line).has(which);
    let is_fatal =
        |line: &&String| has(GenericPattern::Fatal, line) && !line.starts_with("Traceback (");
    let is_failure = |line: &&String| matches(&own, line) || has(GenericPattern::Dead, line);
    let mut all = lines.iter();
    all.find(|line| has(GenericPattern::InUse, line))
        .or_else(|| lines.iter().rev().find(is_fatal))
        .or_else(|| lines.iter().rev().find(is_failure))
        .or_else(|| lines.iter().find(|line| has(GenericPattern::Error, line)))
}

fn matches(list: &[Regex], line: &str) -> bool {
    list.iter().any(|it| it.is_match(line))
}

/// Whether one matches behind the first character of a part of a line, which is no beginning of a
/// line.
fn matches_inside(list: &[Regex], part: &str) -> bool {
    let first = part.chars().next().map_or(0, char::len_utf8);
    list.iter().any(|it| it.is_match_at(part, first))
}

/// The generic expressions, in the order of [`GENERIC`].
#[derive(Debug, Clone, Copy)]
enum GenericPattern {
    Dead,
    Ended,
    InUse,
    Moved,
    Question,
    Side,
    Fatal,
    Error,
    Idle,
    Restart,
}

/// All of them in one pass: output is analysed line by line while a service starts.
static GENERIC: LazyLock<RegexSet> = LazyLock::new(|| {
    let all = [
        DEAD, ENDED, IN_USE, MOVED, QUESTION, SIDE, FATAL, ERROR, IDLE, RESTART,
    ];
    RegexSet::new(all.map(ascii_classes)).expect("constants")
});

/// Those that match a line.
struct PatternMatches(SetMatches);

impl PatternMatches {
    fn new(line: &str) -> Self {
        Self(GENERIC.matches(line))
    }

    fn has(&self, which: GenericPattern) -> bool {
        self.0.matched(which as usize)
    }

    fn failure(&self) -> Option<LineFailure> {
        if self.has(GenericPattern::Dead) {
            Some(LineFailure::Dead)
        } else if self.has(GenericPattern::Ended) {
            Some(LineFailure::Ended)
        } else if self.has(GenericPattern::InUse) {
            Some(self.in_use())
        } else if self.has(GenericPattern::Fatal) {
            Some(LineFailure::Fatal)
        } else {
            self.has(GenericPattern::Error)
                .then_some(LineFailure::Error)
        }
    }

    /// A port in use: a secondary port (a debugger, live reload) counts as moved.
    fn in_use(&self) -> LineFailure {
        let moved = self.has(GenericPattern::Moved) && !self.has(GenericPattern::Question);
        if moved || self.has(GenericPattern::Side) {
            LineFailure::Moved
        } else {
            LineFailure::InUse
        }
    }
}

/// A watcher reports that its program has failed (nodemon, node --watch), or a server that its
/// application cannot be loaded (uvicorn --reload, gunicorn, django, spring).
const DEAD: &str = concat!(
    r"app crashed - waiting for (?:file )?changes|(?:^|\s)Failed running '",
    r"|Error loading ASGI app\b|\bWorker failed to boot\b|APPLICATION FAILED TO START",
    r"|Exception in thread django-main-thread\b",
);

/// The same, the program having exited with 0.
const ENDED: &str = r"clean exit - waiting for (?:file )?changes|(?:^|\s)Completed running '";

/// A watcher restarts its program.
const RESTART: &str = r"\[nodemon\] (?:re)?starting |(?:^|\s)Restarting '";

/// A port is in use, in the wording of libc (in some languages), node, go, rust, java, .NET, erlang
/// and of frameworks.
const IN_USE: &str = concat!(
    r"(?i:\bEADDRINUSE\b|\bWSAEADDRINUSE\b)|\bAddrInUse\b|\bConnection in use\b",
    r"|(?i:\baddress (?:is )?(?:already )?(?:being )?(?:in use|used)\b|\baddress already bound\b)",
    r"|(?i:\bonly one usage of each socket address\b|\banother .{1,40} already running on port\b)",
    r"|Adresse wird bereits verwendet|Adresse d.{1,2}j.{1,2} utilis|direcci.{1,2}n ya se est",
    r"|(?i:\bserver running on port: \d+ \?)",
    r"|(?i:\bport:? (?:[\x22'`]?\d{1,5}[\x22'`]? )?(?:(?:is|was) )?(?:already |currently )?",
    r"(?:in use|being used|used by|taken|occupied|allocated|not available|unavailable)\b)",
    r"|(?i:\bport [\x22'`]?\d{1,5}[\x22'`]? (?:could not be used|(?:is )?not free)\b)",
    r"|(?i:\b(?:could not|can.t|cannot) (?:listen|bind) (?:on|to) port \d{1,5}(?:[,;.]|$))",
    r"|(?i:\balready (?:running|listening) on port \d)",
);

/// It continues on another port, or retries.
const MOVED: &str = concat!(
    r"(?i)\btrying (?:another|other|the next|next|again|a different|an? |port|\d)",
    r"|\battempting to use\b|\b(?:available|alternative|next) port\b|\binstead\b|\bretrying\b",
    r"|\busing (?:port )?\d|\b(?:switch|fall)(?:ed|ing)? (?:over |back )?to\b",
);

/// A question to the user is no decision.
const QUESTION: &str = r"(?i)\bwould you like\b|\bdo you want\b|\by/n\b";

/// Lines about a secondary component.
const SIDE: &str = concat!(
    r"(?i)/metrics\b|/debug/pprof|\badmin(?:istration)? (?:endpoint|api|interface|server|port)\b",
    r"|\b(?:metrics|prometheus|debugg(?:er|ing)|inspector|devtools|hmr|live ?reload|pprof",
    r"|web ?socket server|proxy(?:ing)?|upstream|connect(?:ed|ing)? to)\b",
);

/// Errors that usually end a program.
const FATAL: &str = concat!(
    r"Traceback \(most recent call last\)|\bCannot find module '|\bModuleNotFoundError\b",
    r"|\bERR_MODULE_NOT_FOUND\b|^(?:Uncaught )?(?:[A-Z]\w*)?(?:Error|Exception)(?: \[\w+\])?: ",
    r"|panicked at |^panic: |\bUnhandled ?(?:Promise)? ?(?:[Rr]ejection|exception)",
    r"|^Exception in thread |\b[Ss]egmentation fault\b|: (?:command )?not found$",
    r"|\bBUILD FAIL(?:ED|URE)\b|^error: could not compile |^Failed to compile",
);

/// A line that begins by calling itself an error, after a time or a name in brackets.
const ERROR: &str = concat!(
    r"^\W{0,8}(?:\d[\d:.,TZ+-]* ){0,2}(?:[\[(][^\])]{1,40}[\])] ?)*",
    r"(?i:error|err!|fatal|critical|panic|failed)(?-i)\b",
    r"(?:[:!\]]|$|\s+(?:in\b|code\b|to\b|while\b|when\b|occurred\b|\W|[A-Z]))",
);

/// A watcher has finished its first run.
const IDLE: &str = concat!(
    r"(?i)\bwatching (?:for|files|the|path|dir|src|\S+ for)\b|\bwaiting for (?:file )?changes\b",
    r"|\bfound 0 errors\b|\bcompiled (?:successfully|with)\b|\b(?:ready|built|created .{1,60}) in \d",
    r"|\bbuild (?:finished|complete|completed|succeeded)\b|\bready[.!]?$",
    r"|\bserver (?:is )?(?:ready|started|listening|running)\b",
);

#[cfg(test)]
#[path = "expressions_tests.rs"]
mod tests;
