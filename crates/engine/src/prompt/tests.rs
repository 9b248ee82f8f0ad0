//! Tables of prompts, most of them as printed by real programs.

use crate::interaction::QuestionKind::{
    self, ChoiceSelection, Confirmation, FileSelection, InputRequest,
};

use super::{DetectedPrompt, PromptContext, detect};

const READING: PromptContext<'_> = PromptContext {
    before: "",
    finished: false,
    reading: true,
    echo: None,
    lines: None,
    full_screen: false,
};
const POLLING: PromptContext<'_> = PromptContext {
    reading: false,
    ..READING
};

#[derive(Debug, PartialEq, Eq)]
struct Row {
    kind: QuestionKind,
    options: Vec<String>,
    default: Option<String>,
    secret: bool,
}

fn row(kind: QuestionKind, options: &[&str], default: Option<&str>) -> Row {
    Row {
        kind,
        options: options.iter().map(|it| (*it).to_owned()).collect(),
        default: default.map(str::to_owned),
        secret: false,
    }
}

fn secret() -> Row {
    Row {
        secret: true,
        ..row(InputRequest, &[], None)
    }
}

fn seen_as(text: &str, seen: PromptContext<'_>) -> Option<Row> {
    let DetectedPrompt {
        kind,
        options,
        default,
        secret,
        basis: _,
    } = detect(text, seen)?;
    Some(Row {
        kind,
        options,
        default,
        secret,
    })
}

/// Rows that are prompts by their text alone, with any evidence.
#[track_caller]
fn table(rows: &[(&str, Row)]) {
    for (text, expected) in rows {
        for seen in [READING, POLLING] {
            assert_eq!(
                seen_as(text, seen).as_ref(),
                Some(expected),
                "{text:?} {seen:?}"
            );
        }
    }
}

#[test]
fn yes_or_no_with_the_capital_letter_as_default() {
    let yn = |default| row(Confirmation, &["y", "n"], default);
    table(&[
        (
            "Do you want to continue? [Y/n] ",
            row(Confirmation, &["Y", "n"], Some("Y")),
        ),
        (
            "Remove them? [y/N]: ",
            row(Confirmation, &["y", "N"], Some("N")),
        ),
        ("Proceed (y/n)? ", yn(None)),
        ("Proceed (Y/N)? ", row(Confirmation, &["Y", "N"], None)),
        ("Proceed ([y]/n)? ", yn(Some("y"))),
        ("rm: really? y/n ", yn(None)),
        ("Continue? [yN] ", row(Confirmation, &["y", "N"], Some("N"))),
        (
            "Delete? [yes/No] ",
            row(Confirmation, &["yes", "No"], Some("No")),
        ),
        (
            "Are you sure you want to continue connecting (yes/no)? ",
            row(Confirmation, &["yes", "no"], None),
        ),
        (
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
            row(Confirmation, &["yes", "no"], None),
        ),
        (
            "\x1b[1mOverwrite\x1b[0m (y/N) \x1b[?25h",
            row(Confirmation, &["y", "N"], Some("N")),
        ),
        (
            "Reset your password? [y/N]: ",
            row(Confirmation, &["y", "N"], Some("N")),
        ),
        ("保存？[y/n] ", yn(None)),
    ]);
}

#[test]
fn questions_that_want_a_yes_or_a_no() {
    let yes_no = |default| row(Confirmation, &["yes", "no"], default);
    table(&[
        // Common prompts.
        ("Do you want to continue?", yes_no(None)),
        ("Are you sure?", yes_no(None)),
        ("Proceed with the installation?", yes_no(None)),
        ("Continue?", yes_no(None)),
        ("CONTINUE? ", yes_no(None)),
        // npm init.
        ("Is this OK? (yes) ", yes_no(Some("yes"))),
        ("Would you like to install it? ", yes_no(None)),
        ("File exists. Overwrite? ", yes_no(None)),
        ("是否继续？", yes_no(None)),
    ]);
    assert_eq!(
        seen_as("Would you like to use tabs or spaces? ", READING),
        Some(row(InputRequest, &[], None)),
    );
}

#[test]
fn secrets() {
    for text in [
        "Password: ",
        "Password:",
        "[sudo] password for bob: ",
        "bob@example.org's password: ",
        "Enter passphrase for key '/home/ann/.ssh/id_ed25519': ",
        "Enter passphrase (empty for no passphrase): ",
        "Enter PIN: ",
        "Verification code: ",
        "Password for 'https://bob@example.org': ",
        "Enter your API key: ",
        "Passphrase ",
        "请输入密码：",
        "? Enter a password: [hidden]",
        "? Enter your npm token: [input is hidden] ",
        "? Password [hidden]",
    ] {
        for seen in [READING, POLLING] {
            assert_eq!(seen_as(text, seen), Some(secret()), "{text:?}");
        }
    }
    for text in [
        "Username: ",
        "Pinned version: ",
        "Tokens left: ",
        "Compass heading: ",
    ] {
        assert_eq!(
            seen_as(text, READING),
            Some(row(InputRequest, &[], None)),
            "{text:?}"
        );
    }
}

#[test]
fn a_terminal_without_echo_hides_the_answer_unless_a_line_editor_draws_it() {
    let hidden = PromptContext {
        echo: Some(false),
        lines: Some(true),
        ..READING
    };
    assert_eq!(seen_as("Who goes there? ", hidden), Some(secret()));
    assert_eq!(seen_as("", hidden), Some(secret()));
    let editor = PromptContext {
        lines: Some(false),
        ..hidden
    };
    assert_eq!(
        seen_as("user@host:~$ ", editor),
        Some(row(InputRequest, &[], None))
    );
    assert_eq!(seen_as("Password: ", editor), Some(secret()));
    let shown = PromptContext {
        echo: Some(true),
        lines: Some(true),
        ..READING
    };
    assert_eq!(seen_as("name? ", shown), Some(row(InputRequest, &[], None)));
}

#[test]
fn menus_above_the_prompt() {
    let colours = ["1) red", "2) green", "3) blue"];
    let menus = [
        "Colours:\n1) red\n2) green\n3) blue\n",
        "1. red\n2. green\n3. blue\n\n",
        "[1] red\n[2] green\n[3] blue\n",
        "  > 1) red\n    2) green\n    3) blue\n",
        "1) red    2) green    3) blue\n",
        "1) red    3) blue\n2) green\n",
        "x\n1: red\n2: green\n3: blue\nYou may choose now.\n",
    ];
    for before in menus {
        for text in ["#? ", "Select: ", "Choose one [1-3]: ", "Your choice? "] {
            let seen = PromptContext { before, ..READING };
            let expected = row(ChoiceSelection, &colours, None);
            assert_eq!(seen_as(text, seen), Some(expected), "{before:?} {text:?}");
        }
    }
    let seen = PromptContext {
        before: menus[0],
        ..READING
    };
    let with_default = Some(row(ChoiceSelection, &colours, Some("2")));
    assert_eq!(seen_as("Select [2]: ", seen), with_default);
    assert_eq!(seen_as("Select (default: 2): ", seen), with_default);
    for before in [
        "1) red\n",
        "3) red\n4) green\n",
        "1) red\n3) green\n",
        "1) red\n2) green\na\nb\nc\n",
        "12:30 begin\n",
    ] {
        let seen = PromptContext { before, ..READING };
        assert_eq!(
            seen_as("Name: ", seen),
            Some(row(InputRequest, &[], None)),
            "{before:?}"
        );
    }
}

#[test]
fn choices_in_the_prompt() {
    table(&[
        (
            "(1/2) Stage this hunk [y,n,q,a,d,e,?]? ",
            row(ChoiceSelection, &["y", "n", "q", "a", "d", "e", "?"], None),
        ),
        (
            "Colour (red/green/blue): ",
            row(ChoiceSelection, &["red", "green", "blue"], None),
        ),
        (
            "Format (json|yaml|toml) [json]: ",
            row(ChoiceSelection, &["json", "yaml", "toml"], Some("json")),
        ),
        (
            "Enter a number [1-3]: ",
            row(ChoiceSelection, &["1", "2", "3"], None),
        ),
    ]);
}

#[test]
fn paths() {
    table(&[
        (
            "Enter file in which to save the key (/home/ann/.ssh/id_rsa): ",
            row(FileSelection, &[], Some("/home/ann/.ssh/id_rsa")),
        ),
        ("Path to config: ", row(FileSelection, &[], None)),
        (
            "Output directory [build]: ",
            row(FileSelection, &[], Some("build")),
        ),
        ("Which file? ", row(FileSelection, &[], None)),
        ("文件路径：", row(FileSelection, &[], None)),
    ]);
}

#[test]
fn anything_that_looks_like_a_prompt() {
    let input = |default| row(InputRequest, &[], default);
    table(&[
        ("Name: ", input(None)),
        ("What is your name? ", input(None)),
        ("What is your name?", input(None)),
        (">>> ", input(None)),
        ("... ", input(None)),
        ("> ", input(None)),
        ("$ ", input(None)),
        ("root@host:/# ", input(None)),
        ("(gdb) quit> ", input(None)),
        ("mysql> ", input(None)),
        ("Enter your age ", input(None)),
        ("Enter your age (in years): ", input(None)),
        ("Name [bob]: ", input(Some("bob"))),
        ("Name [John Smith]: ", input(Some("John Smith"))),
        ("Country Name (2 letter code) [AU]:", input(Some("AU"))),
        ("Port (default: 8080): ", input(Some("8080"))),
        ("Port [default=8080] ", input(Some("8080"))),
        ("package name: (foo) ", input(Some("foo"))),
        ("Comment (optional): ", input(None)),
        ("Email Address []:", input(None)),
        ("Press any key to continue . . . ", input(None)),
        ("Press ENTER to continue", input(None)),
        ("--More--", input(None)),
        ("请输入姓名：", input(None)),
        (
            "\r\x1b[K\x1b[36m?\x1b[0m Project name: \x1b[2mapp\x1b[0m\r\x1b[K? Project name: ",
            input(None),
        ),
    ]);
}

#[test]
fn prompts_of_interpreters_have_no_defaults_and_no_choices() {
    let prompts = [
        "(gdb) ",
        "(lldb) ",
        "(Pdb) ",
        "(Pdb++) ",
        "(rdb:1) ",
        "(rdbg) ",
        "(byebug) ",
        "(dlv) ",
        "(Cmd) ",
        "(%i1) ",
        "irb(main):001:0> ",
        "irb(main):001> ",
        "irb(main):002* ",
        "irb(main):003\" ",
        "[1] pry(main)> ",
        "In [1]: ",
        "   ...: ",
        "sage: ",
        "MariaDB [(none)]> ",
        "MariaDB [shop]> ",
        "mysql> ",
        "    -> ",
        "postgres=# ",
        "postgres-> ",
        "shop=> ",
        "sqlite> ",
        "   ...> ",
        "127.0.0.1:6379> ",
        "127.0.0.1:6379[1]> ",
        "test> ",
        "scheme@(guile-user)> ",
        "scheme@(guile-user) [1]> ",
        "[2]> ",
        "[0x00401000]> ",
        "> ",
        ">> ",
        ">>> ",
        "... ",
        "+ ",
        "* ",
        "0] ",
        "ghci> ",
        "Prelude Data.List> ",
        "julia> ",
        "octave:1> ",
        "iex(1)> ",
        "user=> ",
        "php > ",
        "?- ",
        "ftp> ",
        "% ",
    ];
    for text in prompts {
        for seen in [READING, POLLING] {
            let plain = Some(row(InputRequest, &[], None));
            if text != "?- " || seen.reading {
                assert_eq!(seen_as(text, seen), plain, "{text:?} {seen:?}");
            }
        }
    }
    // A default remains one.
    let named = Some(row(InputRequest, &[], Some("demo")));
    assert_eq!(seen_as("Project name [demo]> ", POLLING), named);
}

#[test]
fn without_words_only_reading_is_a_prompt() {
    for text in [
        "",
        "loading",
        "Server listening on port 3000",
        "50%",
        "done.",
    ] {
        let known = row(InputRequest, &[], None);
        assert_eq!(seen_as(text, READING), Some(known));
        let polled = seen_as(text, POLLING);
        assert_eq!(polled.is_some(), text == "50%", "{text:?}");
    }
}

#[test]
fn a_finished_line_must_say_more() {
    let finished = PromptContext {
        finished: true,
        ..READING
    };
    assert!(seen_as("Enter your name:", finished).is_some());
    assert!(seen_as("What is it?", finished).is_some());
    assert!(seen_as("Continue? [y/N]", finished).is_some());
    for text in [
        "",
        "done",
        "50%",
        "cost: 5$",
        "Name [bob] is taken",
        "a => b",
    ] {
        assert_eq!(seen_as(text, finished), None, "{text:?}");
    }
    let log = PromptContext {
        reading: false,
        ..finished
    };
    assert!(seen_as("Continue? [y/N]", log).is_some());
    for text in [
        "Local:",
        "  press h + enter to show help",
        "ready?",
        "Enter your name:",
    ] {
        assert_eq!(seen_as(text, log), None, "{text:?}");
    }
}

#[test]
fn any_bytes_are_looked_at_without_harm() {
    let mut long = "[".repeat(4_096);
    long.push_str(&"(y/".repeat(1_000));
    for text in [
        long.as_str(),
        "\x1b",
        "\x1b[",
        "\x1b]0;",
        "[]",
        "()",
        "[Y/n",
        "\u{202e}?",
        "[y/n]]]",
    ] {
        let seen = PromptContext {
            before: &long,
            ..READING
        };
        assert!(detect(text, seen).is_some(), "{text:?}");
    }
}

#[test]
fn whole_screens_take_keys_without_a_word() {
    let seen = PromptContext {
        full_screen: true,
        echo: Some(false),
        lines: Some(false),
        ..POLLING
    };
    for text in ["", ":", "(END)", "INSERT"] {
        assert_eq!(
            seen_as(text, seen),
            Some(row(InputRequest, &[], None)),
            "{text:?}"
        );
    }
    let attention = "Save modified buffer? (y/n) ";
    assert_eq!(
        seen_as(attention, seen),
        Some(row(Confirmation, &["y", "n"], None))
    );
    assert_eq!(seen_as("", POLLING), None);
}
