//! Parses `.env` files.

/// The variables of the file, in order. Invalid lines are skipped, as other runners do.
pub(super) fn read(text: &str) -> Vec<(String, String)> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'));
    lines.filter_map(pair).collect()
}

fn pair(line: &str) -> Option<(String, String)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"_.-".contains(&it));
    is_name.then(|| (name.to_owned(), plain(value.trim())))
}

/// The value without its quotes, or without a trailing comment.
fn plain(value: &str) -> String {
    for quote in ['"', '\''] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|it| it.split_once(quote));
        if let Some((inner, _)) = inner {
            return inner.to_owned();
        }
    }
    let value = value.split_once(" #").map_or(value, |(value, _)| value);
    value.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn variables_with_quotes_and_comments() {
        let text = "# c\nA=1\nexport B='two words' # c\nC=\"x=y\"\nD=v # c\n=no\nE\nF=\n";
        let pairs = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x=y"),
            ("D", "v"),
            ("F", ""),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(super::read(text), pairs);
    }
}
