//! Parses command lines of compose files.

/// Splits a command line as compose does: quotes and backslashes, no shell. None where a quote is
/// not closed.
pub(super) fn split_words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) =
        (Vec::new(), None, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().push(chars.next()?),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Replaces variables as compose does: `$NAME`, `${NAME:-default}`, `$$`. The error is the name of
/// the first variable that has neither a value nor a default.
pub(super) fn interpolate(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        output.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            output.push('$');
            rest = after;
            continue;
        }
        let braced = after.strip_prefix('{').and_then(|it| it.split_once('}'));
        let (inner, after) = braced.unwrap_or_else(|| after.split_at(name_end(after)));
        if inner.is_empty() {
            output.push('$');
        } else {
            output.push_str(&resolve_variable(inner, variable)?);
        }
        rest = after;
    }
    output.push_str(rest);
    Ok(output)
}

fn name_end(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.find(|c| !is_name(c)).unwrap_or(text.len())
}

fn resolve_variable(
    inner: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let (name, rest) = inner.split_at(name_end(inner));
    let value = variable(name);
    let is_set = value
        .as_ref()
        .is_some_and(|it| !it.is_empty() || !rest.starts_with(':'));
    match rest.trim_start_matches(':').split_at_checked(1) {
        None | Some(("", _)) => value.ok_or_else(|| name.to_owned()),
        Some(("-", other)) if !is_set => Ok(other.to_owned()),
        Some(("+", other)) if is_set => Ok(other.to_owned()),
        Some(("+", _)) => Ok(String::new()),
        Some((_, _)) => value.filter(|_| is_set).ok_or_else(|| name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_as_compose_does() {
        for (line, words) in [
            ("npm run dev", Some(vec!["npm", "run", "dev"])),
            (
                r#"sh -c "sleep 1 && exec web""#,
                Some(vec!["sh", "-c", "sleep 1 && exec web"]),
            ),
            (r"a\ b 'c\d' ''", Some(vec!["a b", r"c\d", ""])),
            ("  ", Some(vec![])),
            ("'open", None),
            ("end\\", None),
        ] {
            let words = words.map(|it| it.into_iter().map(str::to_owned).collect());
            assert_eq!(split_words(line), words, "{line}");
        }
    }

    #[test]
    fn variables_are_put_in() {
        let known = |name: &str| (name == "PORT").then(|| "80".to_owned());
        let actual = |text: &str| interpolate(text, &known);
        for (text, done) in [
            ("no", "no"),
            ("$PORT:${PORT}/", "80:80/"),
            ("${HOST:-localhost}:${HOST-x}", "localhost:x"),
            ("${PORT:+yes}${HOST+no}", "yes"),
            ("$$HOME $ ${PORT?must}", "$HOME $ 80"),
        ] {
            assert_eq!(actual(text), Ok(done.to_owned()), "{text}");
        }
        assert_eq!(actual("${HOST}"), Err("HOST".to_owned()));
        assert_eq!(actual("${HOST:?must}"), Err("HOST".to_owned()));
    }
}
