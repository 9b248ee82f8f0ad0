use ostler_journal::Pattern;
use ostler_journal::query::Chunk;
use ostler_model::{StreamName, Timestamp};
use proptest::prelude::*;

use super::{EchoFilter, OVERLAP_BYTES, SearchStart, Searcher, SentInput, WINDOW_BYTES};

/// The output after an input: the content of its line, the typed text, and the output itself.
struct Case<'a> {
    standing: &'a str,
    typed: &'a str,
    output: &'a [&'a str],
}

fn searcher(pattern: &str, standing: &str, typed: &str) -> Searcher {
    let lines = SentInput::lines_of(typed.as_bytes());
    let start = SearchStart {
        echo: EchoFilter::new(standing.as_bytes().to_vec(), &lines),
        ..SearchStart::default()
    };
    Searcher::new(Pattern::new(pattern).expect("a pattern"), start)
}

fn chunk(offset: u64, bytes: &[u8]) -> Chunk {
    Chunk {
        at: Timestamp::UNIX_EPOCH,
        stream: StreamName::Pty,
        offset,
        bytes: bytes.to_vec(),
    }
}

/// The index of the piece of output that completes the match, and the matching text.
fn found(searcher: &mut Searcher, output: &[&[u8]]) -> Option<(usize, String)> {
    let mut offset = 0;
    for (place, piece) in output.iter().enumerate() {
        let hit = searcher.feed(&chunk(offset, piece)).expect("in budget");
        offset += piece.len() as u64;
        let hit = match hit {
            Some(hit) => Some(hit),
            None => searcher.search_open_lines().expect("in budget"),
        };
        if let Some(hit) = hit {
            return Some((place, String::from_utf8_lossy(&hit.text).into_owned()));
        }
    }
    None
}

fn case(pattern: &str, case: &Case<'_>) -> Option<(usize, String)> {
    let output: Vec<&[u8]> = case.output.iter().map(|it| it.as_bytes()).collect();
    found(&mut searcher(pattern, case.standing, case.typed), &output)
}

#[test]
fn a_prompt_is_that_of_the_reply() {
    let python = Case {
        standing: ">>> ",
        typed: "time.sleep(2)\r",
        output: &["time.sleep(2)\r\n", ">>> "],
    };
    assert_eq!(case(">>> ", &python), Some((1, ">>> ".into())));
    assert_eq!(case("^>>> $", &python), Some((1, ">>> ".into())));
    // A line editor that redraws its prompt for every key.
    let irb = Case {
        standing: "irb(main):001:0> ",
        typed: "sleep 2\r",
        output: &[
            "\x1b[1Girb(main):001:0> s",
            "\x1b[1Girb(main):001:0> sleep",
            " 2\x1b[1Girb(main):001:0> sleep 2\r\n",
            "=> 2\r\n",
            "irb(main):002:0> ",
        ],
    };
    assert_eq!(
        case(r"irb.*> ", &irb),
        Some((4, "irb(main):002:0> ".into()))
    );
    assert_eq!(case("sleep", &irb), None);
}

#[test]
fn an_echo_is_no_reply() {
    let shell = Case {
        standing: "$ ",
        typed: "sleep 1; echo fin\r",
        output: &["sleep 1; ec", "ho fin\r\n", "\x1b[?2004l\r", "fin\r\n$ "],
    };
    for pattern in ["fin", "^fin", "fin$", "^fin$"] {
        assert_eq!(case(pattern, &shell), Some((3, "fin".into())), "{pattern}");
    }
    let lines = Case {
        standing: ">>> ",
        typed: "one\rtwo\r",
        output: &["one\r\ntwo\r\n", ">>> two\r\n", "two\r\n"],
    };
    assert_eq!(case("two", &lines), Some((1, ">>> two".into())));
    let cat = Case {
        standing: "",
        typed: "hello\r",
        output: &["hello\r\n", "hello\r\n"],
    };
    assert_eq!(case("hello", &cat), Some((1, "hello".into())));
}

#[test]
fn without_an_echo_the_reply_is_all_there_is() {
    let silent = Case {
        standing: "Password: ",
        typed: "secret\r",
        output: &["\r\nsecret\r\n"],
    };
    assert_eq!(case("secret", &silent), Some((0, "secret".into())));
    let keys = Case {
        standing: "? ",
        typed: "y",
        output: &["yes"],
    };
    assert_eq!(case("yes", &keys), Some((0, "yes".into())));
    let mut raw = searcher("token", "", "token\r");
    assert_eq!(found(&mut raw, &[b"token\r\n"]), None);
    assert_eq!(
        raw.echo_hit().map(|it| it.text.as_slice()),
        Some(&b"token"[..])
    );
}

#[test]
fn each_part_of_a_line_is_searched_as_it_reads() {
    for (pattern, output, text) in [
        ("^fin", "\x1b[?2004l\rfin\r\n", Some("fin")),
        ("10%", "10%\r20%\r30%\r\n", Some("10%")),
        ("^20%$", "10%\r20%\r30%\r\n", Some("20%")),
        ("^ready$", "\x1b[32mready\x1b[0m\r\n", Some("ready")),
        ("ready", "re\x1b[1mady", Some("ready")),
        ("title", "\x1b]0;title\x07x\r\n", None),
        ("31m", "\x1b[31mred\r\n", None),
        ("^$", "a\r\n\r\n", Some("")),
    ] {
        let mut searcher = Searcher::new(Pattern::new(pattern).unwrap(), SearchStart::default());
        let found = found(&mut searcher, &[output.as_bytes()]).map(|(_, text)| text);
        assert_eq!(found.as_deref(), text, "{pattern} {output:?}");
    }
}

#[test]
fn lines_that_ended_before_are_not_searched_and_the_open_one_is() {
    let start = || SearchStart {
        after: 6,
        ..SearchStart::default()
    };
    let mut old = Searcher::new(Pattern::new("tick").unwrap(), start());
    assert_eq!(found(&mut old, &[b"tick1\ntock"]), None);
    let mut open = Searcher::new(Pattern::new("tick").unwrap(), start());
    let hit = found(&mut open, &[b"tock1\ntick"]);
    assert_eq!(hit, Some((0, "tick".to_owned())));
}

#[test]
fn the_end_of_an_endless_line_is_found() {
    let mut searcher = Searcher::new(Pattern::new("end$").unwrap(), SearchStart::default());
    let piece = vec![b'x'; 64 * 1024];
    let mut output = vec![piece.as_slice(); 64];
    output.push(b"the end");
    let (place, text) = found(&mut searcher, &output).expect("a match");
    assert_eq!(place, 64);
    assert!(text.len() <= WINDOW_BYTES + OVERLAP_BYTES && text.ends_with("xthe end"));
    // Text after a cut is not at the beginning of the line.
    let mut anchored = Searcher::new(Pattern::new("^x").unwrap(), SearchStart::default());
    assert!(anchored.feed(&chunk(0, b"a")).unwrap().is_none());
    for place in 0..8 {
        let piece = chunk(1 + place * piece.len() as u64, &piece);
        assert_eq!(anchored.feed(&piece), Ok(None));
        assert_eq!(anchored.search_open_lines(), Ok(None));
    }
}

proptest! {
    /// A line that ends is found whichever pieces the output arrives in.
    #[test]
    fn pieces_change_nothing(
        lines in prop::collection::vec("[a-c\x1b\\[\\]m;1\r\u{8}]{0,12}", 1..8),
        cuts in prop::collection::vec(1usize..9, 1..20),
    ) {
        let output = lines.join("\n") + "\n";
        let whole = {
            let mut searcher = Searcher::new(Pattern::new("^ab?c").unwrap(), SearchStart::default());
            searcher.feed(&chunk(0, output.as_bytes())).unwrap()
        };
        let mut searcher = Searcher::new(Pattern::new("^ab?c").unwrap(), SearchStart::default());
        let (mut rest, mut offset, mut hit) = (output.as_bytes(), 0, None);
        for cut in cuts.iter().cycle() {
            let (piece, behind) = rest.split_at((*cut).min(rest.len()));
            hit = hit.or(searcher.feed(&chunk(offset, piece)).unwrap());
            offset += piece.len() as u64;
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(hit.map(|it| (it.offset, it.text)), whole.map(|it| (it.offset, it.text)));
    }
}

#[test]
fn a_pattern_that_takes_too_long_is_told_with_its_whole_budget() {
    let pattern = r"^(a|a)*(?=b)\1$";
    let budget = Pattern::new(pattern).expect("a pattern").budget();
    let mut searcher = searcher(pattern, "", "");
    // The first line uses up some of it.
    let lines = [14, 64].map(|length| format!("{}\n", "a".repeat(length)));
    let [first, second] = lines.map(|line| searcher.feed(&chunk(0, line.as_bytes())));
    assert!(first.expect("in budget").is_none());
    assert_eq!(second.expect_err("it takes too long").budget, budget);
}
