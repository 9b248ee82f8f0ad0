//! Whether a source file starts a server.

/// Endings and files a name may stand for.
const ENDINGS: [&str; 8] = [
    "",
    ".js",
    ".ts",
    ".py",
    "/index.js",
    "/index.ts",
    "/main.go",
    "/__main__.py",
];

/// The paths a name may mean, best first.
pub(super) fn paths(name: &str) -> impl Iterator<Item = String> {
    let name = name.trim_end_matches('/').to_owned();
    ENDINGS.iter().map(move |ending| format!("{name}{ending}"))
}

/// Whether one of the marks stands in a text: all parts of it joined by ` & `, outside of lines
/// that are comments.
pub(super) fn has_mark(text: &str, marks: &[String]) -> bool {
    let is_comment = |line: &str| {
        let line = line.trim_start();
        line.starts_with('#') || line.starts_with("//") || line.starts_with('*')
    };
    let stands = |part: &str| {
        text.lines()
            .any(|line| line.contains(part) && !is_comment(line))
    };
    marks.iter().any(|mark| mark.split(" & ").all(stands))
}
