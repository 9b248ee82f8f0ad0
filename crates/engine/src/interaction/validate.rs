//! Whether a value is a valid answer to a question, and the bytes it is delivered as.

use std::path::Path;

use super::files::SelectableFiles;
use super::question::{ANSWER_BYTES, Question};
use crate::error::InteractionError;
use crate::prompt::QuestionKind;

/// Longest marker of an option, for example the `12` of `12) the blue one`.
const MARKER_CHARS: usize = 3;

/// Normalises `value`: an option as the question spells it, `y` for a `yes` where `y` is the
/// option, the default for an empty value. A path is one of `files`.
pub(super) fn normalise(
    question: &Question,
    value: &str,
    files: &SelectableFiles,
) -> Result<String, InteractionError> {
    let is_for_execution = question.execution.is_some();
    let refuse = |allowed: &str| Err(refusal(question, value, allowed));
    if value.len() > ANSWER_BYTES {
        return refuse(&format!("at most {ANSWER_BYTES} bytes"));
    }
    if is_for_execution && value.chars().any(|it| it.is_control() && it != '\t') {
        return refuse("one line without control characters");
    }
    if value.trim().is_empty()
        && let Some(default) = &question.default
    {
        return Ok(default.clone());
    }
    let normalised = match question.kind {
        QuestionKind::Confirmation => confirmation(question, value.trim()),
        QuestionKind::ChoiceSelection => choice(question, value),
        QuestionKind::InputRequest => {
            (is_for_execution || !value.trim().is_empty()).then(|| value.to_owned())
        }
        QuestionKind::FileSelection => file(question, value, files),
    };
    normalised.ok_or_else(|| refusal(question, value, &allowed(question)))
}

fn refusal(question: &Question, value: &str, allowed: &str) -> InteractionError {
    /// The most characters of a refused value that an error repeats.
    const EXCERPT_CHARS: usize = 64;
    let value = if question.secret {
        "(secret)".to_owned()
    } else {
        value.chars().take(EXCERPT_CHARS).collect()
    };
    InteractionError::Value {
        value,
        kind: question.kind,
        allowed: allowed.to_owned(),
    }
}

fn allowed(question: &Question) -> String {
    let listed = || format!("one of {}", question.options.join(" | "));
    match question.kind {
        QuestionKind::Confirmation if question.options.is_empty() => "yes or no".to_owned(),
        QuestionKind::Confirmation | QuestionKind::ChoiceSelection => listed(),
        QuestionKind::InputRequest => "a line of text that is not empty".to_owned(),
        QuestionKind::FileSelection if !question.options.is_empty() => listed(),
        QuestionKind::FileSelection => match &question.workspace {
            Some(workspace) => format!("the path of a file in {}", workspace.display()),
            None if question.execution.is_some() => "a path in a directory that exists".to_owned(),
            None => "the path of something that exists".to_owned(),
        },
    }
}

/// Parses a word as an answer to a yes-or-no question.
pub(crate) fn parse_yes_no(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

fn confirmation(question: &Question, value: &str) -> Option<String> {
    let options = &question.options;
    if options.is_empty() {
        return parse_yes_no(value).map(|_| value.to_owned());
    }
    let named = options.iter().find(|it| it.eq_ignore_ascii_case(value));
    let same_meaning = || {
        let expected = parse_yes_no(value)?;
        options.iter().find(|it| parse_yes_no(it) == Some(expected))
    };
    named.or_else(same_meaning).cloned()
}

fn choice(question: &Question, value: &str) -> Option<String> {
    let options = &question.options;
    if question.execution.is_none() {
        return options.iter().find(|it| *it == value).cloned();
    }
    let value = value.trim();
    let matches = |option: &&String| match split_marker(option) {
        Some((marker, text)) => *option == value || marker == value || text == value,
        None => *option == value,
    };
    let found = options.iter().find(matches);
    let found = found.or_else(|| {
        let mut alike = options.iter().filter(|it| it.eq_ignore_ascii_case(value));
        alike.next().filter(|_| alike.next().is_none())
    })?;
    let answer = split_marker(found).map_or(found.as_str(), |(marker, _)| marker);
    Some(answer.to_owned())
}

/// Marker and text of an option such as `2) the blue one` or `[b] back`.
fn split_marker(option: &str) -> Option<(&str, &str)> {
    let option = option.trim_start();
    let inner = option.strip_prefix(['[', '(']).unwrap_or(option);
    let (marker, rest) = inner.split_at(inner.find([')', ']', '.', ':'])?);
    let text = rest.get(1..)?.trim();
    let short = (1..=MARKER_CHARS).contains(&marker.chars().count());
    (short && marker.chars().all(char::is_alphanumeric) && !text.is_empty())
        .then_some((marker, text))
}

/// An option, or the path of a file.
fn file(question: &Question, value: &str, files: &SelectableFiles) -> Option<String> {
    if !question.options.is_empty() {
        return choice(question, value);
    }
    let entered = Path::new(value);
    let cwd = files.cwd.as_deref();
    let exists = match &question.workspace {
        Some(workspace) => files.is_file_in(workspace, &cwd.unwrap_or(workspace).join(entered)),
        None => {
            let path = cwd.map_or(entered.to_owned(), |it| it.join(entered));
            exists_for_command(question, &path, files)
        }
    };
    (!value.trim().is_empty() && exists).then(|| value.to_owned())
}

/// A command may be about to create the file: for an answer to it, an existing directory suffices.
fn exists_for_command(question: &Question, path: &Path, files: &SelectableFiles) -> bool {
    if question.execution.is_some() {
        files.exists(path) || path.parent().is_some_and(|it| files.is_dir(it))
    } else {
        path.is_absolute() && path.exists()
    }
}

/// Checks the default as an answer, and that the workspace is a directory.
pub(super) fn check(question: &Question, files: &SelectableFiles) -> Result<(), InteractionError> {
    let invalid = |what: String| Err(InteractionError::Question { what });
    if let Some(workspace) = &question.workspace
        && !(workspace.is_absolute() && workspace.is_dir())
    {
        let workspace = workspace.display();
        return invalid(format!(
            "directory '{workspace}' is no directory that exists"
        ));
    }
    let Some(default) = &question.default else {
        return Ok(());
    };
    let required = Question {
        default: None,
        ..question.clone()
    };
    match normalise(&required, default, files) {
        Err(InteractionError::Value { value, allowed, .. }) => {
            invalid(format!("default '{value}' is no answer to it: {allowed}"))
        }
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::ExecutionId;

    use super::*;

    fn question(kind: QuestionKind, options: &[&str], bound: bool) -> Question {
        let mut question = Question::new(kind, "well?");
        question.options = options.iter().map(|it| (*it).to_owned()).collect();
        question.execution = bound.then(ExecutionId::mint);
        question
    }

    #[track_caller]
    fn table(question: &Question, rows: &[(&str, Option<&str>)]) {
        let files = SelectableFiles::of_host("/usr".into());
        for (value, expected) in rows {
            let taken = normalise(question, value, &files);
            assert_eq!(
                taken.ok().as_deref(),
                *expected,
                "{value:?} to {question:?}"
            );
        }
    }

    #[test]
    fn yes_and_no_as_the_question_spells_them() {
        let open = question(QuestionKind::Confirmation, &[], false);
        table(
            &open,
            &[
                ("y", Some("y")),
                (" YES ", Some("YES")),
                ("n", Some("n")),
                ("No", Some("No")),
                ("maybe", None),
                ("", None),
            ],
        );
        let words = question(QuestionKind::Confirmation, &["yes", "no"], true);
        table(
            &words,
            &[("y", Some("yes")), ("NO", Some("no")), ("ok", None)],
        );
        let letters = question(QuestionKind::Confirmation, &["Y", "n"], true);
        table(&letters, &[("yes", Some("Y")), ("no", Some("n"))]);
        let mut with_default = letters;
        with_default.default = Some("Y".to_owned());
        table(&with_default, &[("", Some("Y")), ("  ", Some("Y"))]);
    }

    #[test]
    fn one_of_the_options() {
        let colours = question(QuestionKind::ChoiceSelection, &["red", "green"], false);
        table(
            &colours,
            &[("red", Some("red")), ("Red", None), ("1", None), ("", None)],
        );
        let menu = question(
            QuestionKind::ChoiceSelection,
            &["1) red", "2) green", "[b] back"],
            true,
        );
        table(
            &menu,
            &[
                ("1", Some("1")),
                ("2) green", Some("2")),
                ("green", Some("2")),
                ("back", Some("b")),
                ("3", None),
                ("blue", None),
            ],
        );
        let letters = question(QuestionKind::ChoiceSelection, &["y", "n", "a", "A"], true);
        table(
            &letters,
            &[("y", Some("y")), ("Y", Some("y")), ("A", Some("A"))],
        );
    }

    #[test]
    fn text_and_paths() {
        let free = question(QuestionKind::InputRequest, &[], false);
        table(
            &free,
            &[("a b", Some("a b")), (" ", None), ("a\nb", Some("a\nb"))],
        );
        let typed = question(QuestionKind::InputRequest, &[], true);
        table(
            &typed,
            &[
                ("", Some("")),
                ("a\tb", Some("a\tb")),
                ("a\nb", None),
                ("\u{3}", None),
            ],
        );
        let file = question(QuestionKind::FileSelection, &[], false);
        table(
            &file,
            &[
                ("/usr", Some("/usr")),
                ("bin", Some("bin")),
                ("/no/such", None),
            ],
        );
        let mut in_workspace = question(QuestionKind::FileSelection, &[], true);
        in_workspace.workspace = Some("/usr/share".into());
        table(
            &in_workspace,
            &[
                ("/usr/share/no-such", None),
                ("/usr/share", None),
                ("share/../../etc/passwd", None),
                ("/etc/passwd", None),
                ("", None),
            ],
        );
        let new_file = question(QuestionKind::FileSelection, &[], true);
        table(
            &new_file,
            &[
                ("bin", Some("bin")),
                ("not-there-yet", Some("not-there-yet")),
                ("/no/such", None),
                ("", None),
            ],
        );
    }

    #[test]
    fn a_file_is_in_the_workspace_whatever_links_say() {
        let dir = tempfile::tempdir().expect("a directory");
        let (workspace, outside) = (dir.path().join("work"), dir.path().join("outside"));
        std::fs::create_dir(&workspace).expect("made");
        for file in [&outside, &workspace.join("inside")] {
            std::fs::write(file, "x").expect("written");
        }
        std::os::unix::fs::symlink(&outside, workspace.join("link")).expect("linked");
        let mut file = question(QuestionKind::FileSelection, &[], false);
        file.workspace = Some(workspace.clone());
        let inside = workspace.join("inside").display().to_string();
        for (value, good) in [
            ("inside", true),
            ("./inside", true),
            (inside.as_str(), true),
            ("../work/inside", true),
            ("link", false),
            ("../outside", false),
            ("inside/", false),
            ("in\0side", false),
        ] {
            assert_eq!(
                normalise(&file, value, &SelectableFiles::default()).is_ok(),
                good,
                "{value:?}"
            );
        }
        file.default = Some("link".to_owned());
        assert!(
            check(&file, &SelectableFiles::default()).is_err(),
            "the default is outside"
        );
        file.default = Some("inside".to_owned());
        assert_eq!(check(&file, &SelectableFiles::default()), Ok(()));
        file.workspace = Some(outside);
        assert!(
            check(&file, &SelectableFiles::default()).is_err(),
            "no directory"
        );
    }

    #[test]
    fn a_default_is_an_answer() {
        for (kind, default, good) in [
            (QuestionKind::Confirmation, "yes", true),
            (QuestionKind::Confirmation, "perhaps", false),
            (QuestionKind::ChoiceSelection, "red", true),
            (QuestionKind::ChoiceSelection, "blue", false),
            (QuestionKind::InputRequest, "text", true),
            (QuestionKind::InputRequest, " ", false),
        ] {
            let is_choice = kind == QuestionKind::ChoiceSelection;
            let options: &[&str] = if is_choice { &["red", "green"] } else { &[] };
            let mut question = question(kind, options, false);
            question.default = Some(default.to_owned());
            assert_eq!(
                check(&question, &SelectableFiles::default()).is_ok(),
                good,
                "{default}"
            );
        }
    }

    #[test]
    fn the_length_of_a_line_is_the_limit() {
        let typed = question(QuestionKind::InputRequest, &[], true);
        for (bytes, good) in [
            (ANSWER_BYTES - 1, true),
            (ANSWER_BYTES, true),
            (ANSWER_BYTES + 1, false),
        ] {
            assert_eq!(
                normalise(&typed, &"x".repeat(bytes), &SelectableFiles::default()).is_ok(),
                good,
                "{bytes}"
            );
        }
    }

    #[test]
    fn a_secret_is_not_in_its_refusal() {
        let mut secret = question(QuestionKind::InputRequest, &[], true);
        secret.secret = true;
        let refused =
            normalise(&secret, "hunter2\n", &SelectableFiles::default()).expect_err("two lines");
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
    }
}
