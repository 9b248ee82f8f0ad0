//! Which commands a script consists of.

use super::{ListOperator, ListStep, command_list};

/// The steps of a script, one text for each.
fn steps(script: &str) -> Option<Vec<String>> {
    let variable = |name: &str| (name == "PORT").then(|| "3000".to_owned());
    let text = |step: &ListStep| match step {
        ListStep::Command(command) => {
            let assignments = command.assignments.iter();
            let assignments =
                assignments.map(|it| format!("{}={}", it.name, it.value.expand(&variable)));
            let words = command.words.iter().map(|word| word.expand(&variable));
            assignments.chain(words).collect::<Vec<_>>().join("|")
        }
        ListStep::Operator(operator) => match operator {
            ListOperator::And => "&&",
            ListOperator::Or => "||",
            ListOperator::Next => ";",
            ListOperator::Background => "&",
            ListOperator::Pipe => "¦",
        }
        .to_owned(),
        ListStep::SubshellStart => "(".to_owned(),
        ListStep::SubshellEnd => ")".to_owned(),
        ListStep::GroupEnd => "}".to_owned(),
    };
    Some(command_list(script)?.steps.iter().map(text).collect())
}

#[test]
fn quotes_escapes_variables_and_comments() {
    for (script, wanted) in [
        ("a 'b c' \"d e\"", "a|b c|d e"),
        ("a b\\ c \"\\\"x\\y\"", "a|b c|\"x\\y"),
        ("a $PORT ${PORT} ${X:-4} $X", "a|3000|3000|4|$X"),
        (
            "a ${PORT:-4}x ${PORT:+4} ${#PORT}",
            "a|3000x|${PORT:+4}|${#PORT}",
        ),
        ("a \"${X:-${Y}}/b\" $1 $?", "a|${Y}/b|$1|$?"),
        ("a # b", "a"),
        ("a http://x/#b", "a|http://x/#b"),
        ("a $(b; c) `d e` \"$(f)/g\"", "a|$(b; c)|`d e`|$(f)/g"),
        ("a $'b\\x41' $\"c\"", "a|bA|c"),
        ("a \\\n b", "a|b"),
        ("a ''", "a|"),
        ("A=b C=$PORT a d=e", "A=b|C=3000|a|d=e"),
    ] {
        assert_eq!(steps(script), Some(vec![wanted.to_owned()]), "{script}");
    }
}

#[test]
fn operators_groups_and_redirections() {
    for (script, wanted) in [
        ("a&&b||c", vec!["a", "&&", "b", "||", "c"]),
        ("a\nb\n\nc", vec!["a", ";", "b", ";", "c"]),
        ("a > f 2>&1 b", vec!["a|b"]),
        ("> f a b", vec!["a|b"]),
        ("a &> f &", vec!["a", "&"]),
        ("a >>f <g|b", vec!["a", "¦", "b"]),
        ("a 2 >f", vec!["a|2"]),
        (
            "(a;b)\n(c)",
            vec!["(", "a", ";", "b", ")", ";", "(", "c", ")"],
        ),
        ("{ a; } && ! b", vec!["a", ";", "}", "&&", "b"]),
        ("a <<< x", vec!["a"]),
        ("A=b C=d; a", vec!["A=b|C=d", ";", "a"]),
        ("A=b\nC=d", vec!["A=b", ";", "C=d"]),
        ("export A=b C; a", vec!["export|A=b|C", ";", "a"]),
        ("[ -f x ] && a", vec!["test", "&&", "a"]),
    ] {
        let wanted: Vec<String> = wanted.into_iter().map(str::to_owned).collect();
        assert_eq!(steps(script), Some(wanted), "{script}");
    }
}

#[test]
fn what_is_more_than_a_list_has_none() {
    for script in [
        "a <<E\nE",
        "a 'b",
        "a \"b",
        "a $(b",
        "a >",
        "a \\",
        "${a",
        "if a; then b; fi",
        "for i in 1; do a; done",
        "while a; do b; done",
        "case a in a) b;; esac",
        "f() { a; }",
        "(( 1 ))",
        "a; )",
        "a;; b",
        "echo \\ a",
        "a#b",
    ] {
        assert_eq!(steps(script), None, "{script}");
    }
}

#[test]
fn a_comment_at_the_end_is_known() {
    for (script, ends) in [
        ("a # b", true),
        ("a # b\nc", false),
        ("a #b\n", true),
        ("a", false),
    ] {
        let list = command_list(script).expect("a list");
        assert_eq!(list.ends_in_comment, ends, "{script}");
    }
}
