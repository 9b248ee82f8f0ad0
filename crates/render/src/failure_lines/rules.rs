//! How compilers, test runners, package managers and programs report failures.
//!
//! The first rule that matches a line decides, so special rules come before general ones. To
//! support another tool, add a rule here and a line to the tests.

/// One form of a failure line.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailureRule {
    /// A regular expression for the line without colours.
    pub(super) pattern: &'static str,
    /// Its significance for the cause, to 100.
    pub(super) weight: u8,
    /// Number of lines before it that belong to it.
    pub(super) lines_before: u8,
    /// Number of lines after it that belong to it.
    pub(super) lines_after: u8,
}

const fn rule(weight: u8, lines_before: u8, lines_after: u8, pattern: &'static str) -> FailureRule {
    FailureRule {
        pattern,
        weight,
        lines_before,
        lines_after,
    }
}

/// A prefilter that nearly every rule requires: a scan with it finds the few lines to classify.
/// Warnings are not worth a scan.
pub const CANDIDATES: &str = concat!(
    r"(?i-u:error|fail|fatal|panic|exception|traceback|not ok|undefined|unresolved|cannot |",
    r"abort|segmentation|killed|denied|no such file|not found|refused|timed out|out of memory|",
    r"overflow|assert|interrupt|npm err|exit|returned |severe|critical|caused by|\*\*\*|sanitizer)",
    r"|(?-u:^E[: ] )|✖|✗|✘|✕|×|⨯|❌|●|错误|失败|錯誤|エラー|오류|(?i:ошибка)|(?i-u:erreur|fehler|erro:)",
);

/// Mentions of zero errors; removed before the rules are applied.
pub(super) const NEGATED_FAILURES: &str = concat!(
    r"(?i-u)\b(?:0|no|zero|without(?: any)?)\s+",
    r"(?:\w+ )?(?:errors?|failures?|failed|failing|fails?|exceptions?|problems?|panics?|issues?)\b",
    r"|\b(?:errors?|failures?|failed|fail|exceptions?)\s*[:=]\s*0\b|\bfail 0\b",
    r"|\b(?:expected|ignored|allowed) (?:errors?|failures?)\b",
);

/// Lines with words of failure that report none: progress, tests that pass.
pub(super) const HARMLESS_LINES: &[&str] = &[
    r"(?-u)\.\.\. (?:ok|ignored)\b",
    r"(?-u)\b(?:PASSED|XFAIL|SKIPPED|xfailed)\b",
    r"(?-u)^\s*(?:ok \d|PASS\b|ok\s+\S+\s+[\d.]+s$)|^\s*--- (?:PASS|SKIP)",
    r"^\s*(?:✔|✓|√|✅|﹣)",
    r"(?-u)^\s*\d+ +\|",
    r"(?-u)# (?:TODO|SKIP|skip|Subtest)\b",
    concat!(
        r"(?-u)^\s*(?:Compiling|Checking|Downloaded|Downloading|Fresh|Documenting|Running|",
        r"Installing|Adding|Building|Updating|Unpacking|Preparing|Collecting|Copying|Selecting|",
        r"Setting up|Get:|CC|CXX|AR|LD|Doc-tests|creating|adding)\b[^!]*$",
    ),
];

/// The rules, special before general.
pub(super) const RULES: &[FailureRule] = &[
    // The last lines of a build, after the causes.
    rule(
        72,
        0,
        2,
        r"(?-u)^error: (?:could not compile|aborting due|test failed|\d+ targets? failed|build failed)",
    ),
    rule(68, 0, 0, r"(?-u)^For more information about this error"),
    rule(84, 0, 0, r"(?-u)^test result: FAILED"),
    rule(90, 0, 0, r"(?-u)^=+ .*\b[1-9]\d* (?:failed|errors?)\b.*=+$"),
    rule(
        86,
        0,
        0,
        r"(?-u)^(?:Tests?|Test Suites|Test Files):?\s.*\b[1-9]\d* failed",
    ),
    rule(
        86,
        0,
        0,
        r"(?-u)(?:Failures|Errors): [1-9]\d*|^# fail [1-9]|^\d+ examples?, [1-9]\d* fail",
    ),
    rule(
        86,
        0,
        0,
        r"(?-u)^FAILED \((?:failures|errors)=|^Found [1-9]\d* errors?\b|\b[1-9]\d* failing$",
    ),
    rule(86, 0, 0, r"^ℹ fail [1-9]|^✖ \d+ problems?"),
    rule(
        84,
        0,
        1,
        r"(?-u)BUILD FAIL(?:ED|URE)|\bFAILURE: |^> Task \S+ FAILED",
    ),
    rule(
        80,
        0,
        0,
        r"(?-u)\*\*\* \[.+\] (?:Error|Segmentation|Killed|Aborted|Terminated)|\*\*\* .*[Ss]top\.|^ninja: build stopped",
    ),
    rule(
        72,
        0,
        0,
        r"(?-u)collect2: error|linker command failed|\bld returned [1-9]",
    ),
    // Compilers.
    rule(95, 0, 9, r"(?-u)^error(?:\[[A-Z]+\d+\])?: "),
    rule(
        95,
        0,
        3,
        r"(?-u)^(?:[A-Za-z]:)?[^:\s][^:]*:\d+(?::\d+)?: (?:fatal |internal compiler )?(?:error|Error|ERROR)\b",
    ),
    rule(94, 0, 2, r"(?-u)\berror (?:TS|CS|MSB|NU|FS|C|LNK|AL)\d+\b"),
    rule(
        92,
        1,
        1,
        r"(?-u)undefined reference to|[Uu]ndefined symbols?\b|unresolved external|multiple definition of",
    ),
    rule(92, 0, 5, r"(?-u)^CMake Error|^ERROR in |^Module not found"),
    rule(
        90,
        0,
        2,
        r"(?-u)^[\w./-]+\.(?:go|kt|swift|scala|hs|ts|tsx|js|vue):\d+:\d+:? \S",
    ),
    rule(86, 0, 2, r"(?-u)^e: |^\s+\d+:\d+\s+error\s"),
    rule(90, 0, 4, r"^╷|^│ Error: |^\s*× \S"),
    // Crashed programs, with a stack trace.
    rule(95, 0, 3, r"(?-u)panicked at "),
    rule(
        95,
        0,
        6,
        r"(?-u)^panic: |^fatal error: |^Exception in thread ",
    ),
    rule(
        74,
        0,
        2,
        r"(?-u)^\s*(?:\| )?Traceback \(most recent call last\)",
    ),
    rule(92, 0, 3, r"(?-u)^\s*Caused by: "),
    rule(
        92,
        4,
        1,
        r"(?-u)^(?:Uncaught )?(?:[A-Za-z_][\w.]*\.)?(?:[A-Z]\w*)?(?:Error|Exception|Interrupt|SystemExit)(?: \[\w+\])?(?:: |$)",
    ),
    rule(
        90,
        0,
        4,
        r"(?-u)^\s+(?:Uncaught )?(?:[A-Z]\w*)?(?:Error|Exception)(?: \[\w+\])?: ",
    ),
    rule(
        92,
        1,
        3,
        r"(?-u)[Ss]egmentation fault|core dumped|[Oo]ut of memory|\boom-kill|[Ss]tack overflow|\w+Sanitizer:|^Killed$|^Aborted$|Bus error",
    ),
    rule(
        90,
        1,
        3,
        r"(?i-u)\bassert(?:ion)?\b.{0,60}\bfailed\b|static assertion",
    ),
    rule(
        90,
        0,
        3,
        r"(?-u)^\*\* \(\w|\((?:\w+::)*\w*Error\)|^PHP (?:Fatal|Parse) error|^goroutine \d+ \[running",
    ),
    // Test runners.
    rule(90, 4, 2, r"(?-u)^E {2,}\S"),
    rule(87, 0, 0, r"(?-u)^(?:FAILED|ERROR) \S+(?:::| - )"),
    rule(86, 0, 3, r"(?-u)^\s*--- FAIL: |^(?:FAIL|ERROR): \w"),
    rule(84, 0, 15, r"(?-u)^\s*not ok \d+"),
    rule(84, 0, 1, r"(?-u)^\s*FAIL(?:ED)?\b[:\s]"),
    rule(
        80,
        0,
        0,
        r"(?-u)^test .+ \.\.\. FAILED|::.+ (?:FAILED|ERROR)\b",
    ),
    rule(82, 0, 5, r"^\s*(?:✖|✗|✘|✕|⨯|❌|●) ?\S"),
    rule(
        56,
        0,
        2,
        r"(?-u)^_{3,} .+ _{3,}$|^---- .+ stdout ----$|^\s+\d+\) \S+.*(?:[Ff]ail|[Ee]rror)",
    ),
    // Package managers, version control, shells.
    rule(
        84,
        0,
        3,
        r"(?-u)^npm (?:ERR!|error) (?:code|[A-Z]\d|\d{3}|Missing|Could|Cannot|missing)",
    ),
    rule(76, 0, 2, r"(?-u)^npm (?:ERR!|error) \S"),
    rule(
        88,
        0,
        2,
        r"(?-u)^(?:ERROR|E|fatal|FATAL|yarn error)\s?: |^error [A-Z]",
    ),
    rule(80, 0, 1, r"(?-u)^\[(?:ERROR|FATAL|CRITICAL)\]"),
    rule(
        70,
        0,
        1,
        r"(?-u): command not found|[Nn]o such file or directory|[Pp]ermission denied|Operation not permitted|[Cc]annot (?:open|find|stat|access|create|connect|resolve)",
    ),
    rule(
        70,
        0,
        0,
        r"(?i-u)\b(?:exit(?:ed)?(?: with)?(?: code| status)?:?|returned (?:a )?(?:non-zero )?(?:exit (?:status|code)|code)):? \(?[1-9]",
    ),
    // General words.
    rule(
        70,
        0,
        1,
        r"(?i)(?:错误|失败|錯誤|エラー|오류|ошибка|\berreur|\bfehler|\berro)\s*[:：]",
    ),
    rule(
        76,
        0,
        2,
        r"(?i-u)(?:^|[^\w./-])(?:fatal|error|exception):\s",
    ),
    rule(
        66,
        0,
        1,
        r"(?-u)\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b|[Ll]evel=\x22?(?:error|fatal|panic)|\x22level\x22: ?\x22(?:error|fatal)",
    ),
    rule(
        78,
        0,
        0,
        r"(?i-u)\b[1-9]\d* (?:tests? )?(?:errors?|failed|failures?|failing|problems?)\b",
    ),
    rule(18, 0, 0, r"(?i-u)^\s*(?:\S+: )?warn(?:ing)?\b"),
    rule(
        52,
        0,
        1,
        r"(?i-u)(?:^|[^\w./:-])(?:connection refused|timed out|unresolved import|unhandled|uncaught|aborted)\b",
    ),
    rule(
        48,
        0,
        1,
        r"(?i-u)(?:^|[^\w./-])(?:errors?|failed|failures?|failing|fails|fatal|exceptions?|panic(?:ked)?|crash(?:ed)?)(?:[^\w./(=-]|[.)]?(?:\s|$))",
    ),
    rule(16, 0, 0, r"(?i-u)\bwarn(?:ing)?\b|\bdeprecated\b"),
];
