//! Whether a source file starts a server, and on which port.

use std::sync::LazyLock;

use regex::Regex;

/// A port on a line that starts a server: `listen(3000`, `port=8000`, `("", 8000)`.
static AT_START: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?:\bport['"]?\s*[:=]\s*|listen\(\s*|\(\(\s*["'][^"']*["']\s*,\s*)(\d{2,5})\b"#,
    )
    .expect("a constant")
});
/// A named port: `const PORT = process.env.PORT || 3000`.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)^\s*(?:(?:export\s+)?(?:const|let|var)\s+)?(?:(?:\w*_)?port|(?-i:[a-z]\w*Port))\s*[:=]\s*(?:[^=\d].{0,60}?)?\b(\d{4,5})\b"#,
    )
    .expect("a constant")
});

/// The extensions and files that a name may stand for.
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

/// The paths that a name may stand for, best first.
pub(super) fn candidate_paths(name: &str) -> impl Iterator<Item = String> {
    let name = name.trim_end_matches('/').to_owned();
    ENDINGS.iter().map(move |ending| format!("{name}{ending}"))
}

/// Whether a text contains one of the markers outside of comments; of a marker with ` & `, all parts.
pub(super) fn contains_marker(text: &str, markers: &[&str]) -> bool {
    let is_present = |part: &str| code_lines(text).any(|line| line.contains(part));
    markers.iter().any(|mark| mark.split(" & ").all(is_present))
}

/// The port in a source text: on a line that starts a server, else a named one.
pub(super) fn find_port(text: &str, markers: &[&str]) -> Option<u16> {
    let parts: Vec<&str> = markers.iter().flat_map(|mark| mark.split(" & ")).collect();
    let starts = code_lines(text).filter(|line| parts.iter().any(|part| line.contains(part)));
    let first = |expression: &Regex, line: &str| {
        let found = expression.captures(line)?;
        found.get(1)?.as_str().parse().ok().filter(|port| *port > 0)
    };
    let at_start = starts.filter_map(|line| first(&AT_START, line)).next();
    at_start.or_else(|| code_lines(text).find_map(|line| first(&NAMED, line)))
}

/// The lines that are not comments.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with('#') && !line.starts_with("//") && !line.starts_with('*')
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_port_that_a_source_tells() {
        let marks = [
            ".listen(",
            "uvicorn.run(",
            "serve_forever(",
            "Server((",
            "serve({ & fetch",
        ];
        for (text, port) in [
            ("app.listen(3000)", Some(3000)),
            ("app.listen(process.env.PORT || 8080)", None),
            (
                "const port = process.env.PORT || 8080;\napp.listen(port)",
                Some(8080),
            ),
            (
                "PORT = int(os.environ.get('PORT', '5001'))\nserver.serve_forever()",
                Some(5001),
            ),
            ("uvicorn.run(app, host=\"0.0.0.0\", port=9000)", Some(9000)),
            (
                "HTTPServer((\"\", 8000), Handler).serve_forever()",
                Some(8000),
            ),
            ("serve({ fetch: app.fetch, port: 8787 })", Some(8787)),
            ("redis.connect(port=6379)\napp.listen(n)", None),
            ("# app.listen(3000)", None),
            ("app.listen(70000)", None),
            ("report = 2024\napp.listen(n)", None),
            ("port == 2024\napp.listen(n)", None),
            ("SERVER_PORT=8000\napp.listen(n)", Some(8000)),
        ] {
            assert_eq!(super::find_port(text, &marks), port, "{text}");
        }
    }
}
