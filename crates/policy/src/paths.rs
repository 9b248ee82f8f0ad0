//! Paths in words, without access to a file system.

/// Whether `text` matches `pattern`, in which `*` matches any text.
pub(crate) fn matches_pattern(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// A word itself, the value after its `=`, the value joined to a short option, and each as a
/// normalized path.
pub(crate) fn spellings(word: &str) -> Vec<String> {
    let mut texts = vec![word];
    texts.extend(word.split_once('=').map(|(_, value)| value));
    let joined = word
        .strip_prefix('-')
        .and_then(|rest| rest.find(['/', '~']).and_then(|at| rest.get(at..)));
    texts.extend(joined);
    texts.extend(word.strip_prefix('@'));
    let plain = texts.iter().map(|text| plain_path(text));
    let plain: Vec<String> = plain.collect();
    let mut all: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    all.extend(plain);
    all
}

/// Normalizes a path: removes `.`, doubled slashes, and names cancelled by a following `..`.
pub(crate) fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let absolute = path.starts_with('/');
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts
                .last()
                .is_some_and(|last| *last != ".." && *last != "~") =>
            {
                parts.pop();
            }
            ".." if absolute && parts.is_empty() => {}
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    match (absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Whether a word names something that is not below `cwd`.
pub(crate) fn leads_outside(word: &str, cwd: &str) -> bool {
    let values = spellings(word);
    values.iter().any(|text| is_outside(text, cwd))
}

fn is_outside(path: &str, cwd: &str) -> bool {
    if path.starts_with('~') {
        return true;
    }
    let plain = plain_path(path);
    if !plain.starts_with('/') {
        return plain == ".." || plain.starts_with("../");
    }
    let below = plain
        .strip_prefix(cwd.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !below || cwd == "/"
}

/// Whether a redirection may write there without approval: below `cwd`, and not a hidden name.
pub(crate) fn is_harmless_target(path: &str, cwd: &str) -> bool {
    let plain = plain_path(path);
    let inner = if plain.starts_with('/') {
        plain
            .strip_prefix(cwd.trim_end_matches('/'))
            .unwrap_or("/.")
    } else {
        plain.as_str()
    };
    let visible = inner
        .split('/')
        .all(|part| !part.starts_with('.') && !part.starts_with('~'));
    !path.is_empty() && visible && !leads_outside(path, cwd)
}

/// Devices that neither store nor reveal data.
pub(crate) fn is_harmless_device(path: &str) -> bool {
    matches!(
        path,
        "/dev/null"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/stdin"
            | "/dev/zero"
            | "/dev/tty"
            | "/dev/full"
            | "/dev/urandom"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness() {
        for (text, pattern, is) in [
            ("abc", "abc", true),
            ("abc", "a*", true),
            ("abc", "*c", true),
            ("abc", "*b*", true),
            ("abc", "a*c", true),
            ("abc", "a*b", false),
            ("aa", "a*a", true),
            ("a", "a*a", false),
            ("", "*", true),
            ("x.ssh/y", "*.ssh*", true),
        ] {
            assert_eq!(matches_pattern(text, pattern), is, "{text} {pattern}");
        }
    }

    #[test]
    fn places() {
        for (word, outside) in [
            ("src", false),
            ("./src/../x", false),
            ("../x", true),
            ("src/../../x", true),
            ("/w/x", false),
            ("/w/../x", true),
            ("/wx", true),
            ("/", true),
            ("~", true),
            ("--file=/etc/x", true),
            ("-f/etc/x", true),
            ("-la", false),
        ] {
            assert_eq!(leads_outside(word, "/w"), outside, "{word}");
        }
        for (path, good) in [
            ("out.txt", true),
            ("a/b", true),
            ("/w/a", true),
            (".git/hooks/x", false),
            ("a/.b", false),
            ("../a", false),
            ("/etc/x", false),
            ("~/x", false),
        ] {
            assert_eq!(is_harmless_target(path, "/w"), good, "{path}");
        }
    }
}
