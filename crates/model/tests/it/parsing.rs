//! The small types: what is accepted, what is refused, and that formatting and parsing agree.

use std::str::FromStr;

use ostler_model::error_code::{ERROR_CODES, UnknownErrorCode};
use ostler_model::id::{IdRef, SHORT_ID_CHARS};
use ostler_model::{
    ByteString, Caller, Command, Cursor, ErrorCode, ExecutionId, IdError, Owner, Principal,
    ProjectSet, ProjectView, SCRIPT_BYTES, Scope, SessionName, Signal, Termination,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn ids_are_read_as_they_are_spelled(bytes: [u8; 16]) {
        let id = ExecutionId::from_bytes(bytes);
        prop_assert_eq!(id.to_bytes(), bytes);
        prop_assert_eq!(id.to_string().parse::<ExecutionId>(), Ok(id));
        prop_assert_eq!(id.to_string().parse::<IdRef>(), Ok(IdRef::Full(id)));
        let short = id.short();
        prop_assert_eq!(short.len(), SHORT_ID_CHARS);
        prop_assert_eq!(short.parse::<IdRef>(), Ok(IdRef::Short(id.short_bits())));
        let upper = short.to_ascii_uppercase();
        prop_assert_eq!(upper.parse::<IdRef>(), Ok(IdRef::Short(id.short_bits())));
    }

    #[test]
    fn reading_an_id_never_panics(text in ".{0,60}") {
        let read = text.parse::<IdRef>();
        prop_assert!(read.is_ok() || !text.is_ascii() || read.is_err());
    }

    #[test]
    fn text_survives_json_whatever_its_bytes(bytes: Vec<u8>) {
        let text = ByteString::from(bytes.clone());
        let json = serde_json::to_string(&text).expect("any bytes can be spelled");
        let back: ByteString = serde_json::from_str(&json).expect("and read");
        prop_assert_eq!(back.as_bytes(), &bytes[..]);
        let plain = std::str::from_utf8(&bytes).is_ok();
        prop_assert_eq!(json.starts_with('"'), plain);
        prop_assert_eq!(text.has_nul(), bytes.contains(&0));
    }

    #[test]
    fn cursors_are_read_as_they_are_spelled(offset: u64, event: u64) {
        let cursor = Cursor { offset, event };
        prop_assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor));
        prop_assert_eq!(offset.to_string().parse::<Cursor>(), Ok(Cursor { offset, event: 0 }));
    }

    #[test]
    fn reading_a_cursor_never_panics(text in ".{0,40}") {
        if let Ok(cursor) = text.parse::<Cursor>() {
            prop_assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor));
        }
    }
}

#[test]
fn look_alike_characters_name_the_same_id() {
    assert_eq!("oil00000".parse::<IdRef>(), "01100000".parse::<IdRef>());
    assert_eq!("".parse::<IdRef>(), Err(IdError::Empty));
    assert_eq!("  ".parse::<IdRef>(), Err(IdError::Empty));
    assert!(matches!(
        "uuuuuuuu".parse::<IdRef>(),
        Err(IdError::Malformed(_))
    ));
    assert!(matches!(
        "1234567".parse::<IdRef>(),
        Err(IdError::Malformed(_))
    ));
}

#[test]
fn ids_sort_by_their_time_and_tell_it() {
    let before = ostler_model::Timestamp::now();
    let (first, second) = (ExecutionId::mint(), ExecutionId::mint());
    assert!(first < second);
    let minted = first.minted_at().expect("version 7");
    assert!(minted.as_millisecond() >= before.as_millisecond());
    assert_eq!(ExecutionId::from_bytes([0; 16]).minted_at(), None);
}

#[test]
fn base64_is_refused_when_it_is_none() {
    for json in [
        r#"{"base64":"***"}"#,
        r#"{"base32":"aa"}"#,
        "{}",
        r#"{"base64":"aa==","more":1}"#,
        "7",
    ] {
        assert!(serde_json::from_str::<ByteString>(json).is_err(), "{json}");
    }
    let text: ByteString = serde_json::from_str(r#"{"base64":"/w=="}"#).expect("valid");
    assert_eq!(text.as_bytes(), [255]);
}

#[test]
fn cursors_are_refused_when_they_are_none() {
    for text in [
        "",
        ".",
        "1.",
        ".1",
        "-1",
        "1.2.3",
        "x",
        "18446744073709551616",
    ] {
        assert!(text.parse::<Cursor>().is_err(), "{text:?}");
    }
    assert_eq!("0".parse(), Ok(Cursor::START));
}

#[test]
fn every_signal_has_a_name_that_is_read_back() {
    for number in 1..=64 {
        let signal = Signal::try_from(number).expect("a signal");
        assert_eq!(signal.name().parse(), Ok(signal));
        assert_eq!(number.to_string().parse(), Ok(signal));
        let bare = signal.name()[3..].to_ascii_lowercase();
        assert_eq!(bare.parse(), Ok(signal));
    }
    for wrong in ["0", "65", "-1", "SIG", "", "TERMINATE", "SIGSIGTERM"] {
        assert!(Signal::from_str(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(Signal::TERM.name(), "SIGTERM");
}

#[test]
fn the_code_table_is_whole() {
    for (place, row) in ERROR_CODES.iter().enumerate() {
        assert_eq!(row.code as usize, place, "{} is out of its place", row.name);
        assert_eq!(row.code.name(), row.name);
        assert_eq!(ErrorCode::try_from(row.name.to_owned()), Ok(row.code));
        assert!([-32602, -32603].contains(&row.rpc), "{}", row.name);
        assert!((400..600).contains(&row.http), "{}", row.name);
        assert!(row.exit > 0, "{}", row.name);
    }
    let mut names: Vec<&str> = ERROR_CODES.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ERROR_CODES.len(), "names are distinct");
    let unknown: Result<ErrorCode, UnknownErrorCode> = "nonsense".to_owned().try_into();
    assert!(unknown.is_err());
    assert_eq!(ErrorCode::ProcessNotFound.name(), "process_not_found");
    assert_eq!(
        ErrorCode::SessionNotFound.info().class,
        "SessionNotFoundError"
    );
}

#[test]
fn a_command_line_for_people_is_quoted() {
    let command = Command::Argv {
        program: "echo".into(),
        args: vec!["a b".into(), "it's".into(), "".into(), "x=1".into()],
    };
    assert_eq!(command.display(), r"echo 'a b' 'it'\''s' '' x=1");
}

#[test]
fn endings_are_what_a_shell_would_show() {
    use ostler_model::termination::WaitStatus;
    use ostler_model::{LostReason, TerminationCause};
    let shell = |ending: Termination| ending.shell_status();
    assert_eq!(
        shell(Termination::new(
            TerminationCause::Exited,
            WaitStatus::Code(3)
        )),
        3
    );
    let killed = Termination::new(TerminationCause::Signaled, WaitStatus::Signal(Signal::KILL));
    assert_eq!(shell(killed), 137);
    let not_born = |errno| TerminationCause::SpawnFailed {
        step: "exec".to_owned(),
        errno,
        message: String::new(),
    };
    assert_eq!(shell(Termination::without_status(not_born(Some(2)))), 127);
    assert_eq!(shell(Termination::without_status(not_born(Some(13)))), 126);
    let reason = LostReason::Reboot;
    assert_eq!(
        shell(Termination::without_status(TerminationCause::Lost {
            reason
        })),
        125
    );
}

#[test]
fn callers_see_their_own() {
    let owner = |principal: u32, session: Option<&str>, project: Option<&str>| Owner {
        principal: Principal::unix(principal),
        project: project.map(str::to_owned),
        session: session.map(|it| SessionName(it.to_owned())),
        task: None,
        channel: ostler_model::RequestChannel::Local,
    };
    let agent = Caller {
        owner: owner(1, Some("a"), Some("p")),
        scope: Scope::Session,
        projects: ostler_model::ProjectView::default(),
    };
    let person = Caller {
        scope: Scope::Principal,
        ..agent.clone()
    };
    let rows = [
        (owner(1, Some("a"), None), true, true),
        (owner(1, Some("b"), Some("p")), false, true),
        (owner(1, None, Some("p")), true, true),
        (owner(1, None, Some("q")), false, true),
        (owner(1, None, None), false, true),
        (owner(2, Some("a"), Some("p")), false, false),
    ];
    for (whose, by_agent, by_person) in rows {
        assert_eq!(agent.can_access(&whose), by_agent, "{whose:?}");
        assert_eq!(person.can_access(&whose), by_person, "{whose:?}");
    }
}

#[test]
fn a_caller_of_projects_sees_these_and_nothing_without_one() {
    let owner = |session: Option<&str>, project: Option<&str>| Owner {
        principal: Principal::unix(1),
        project: project.map(str::to_owned),
        session: session.map(|it| SessionName(it.to_owned())),
        task: None,
        channel: ostler_model::RequestChannel::Network,
    };
    let agent = Caller {
        owner: owner(Some("a"), None),
        scope: Scope::Session,
        projects: ProjectView {
            visible: ProjectSet::named(["p", "q"]),
            reachable: ProjectSet::named(["q"]),
        },
    };
    let person = Caller {
        scope: Scope::Principal,
        ..agent.clone()
    };
    assert!(!person.sees_all());
    // What each reaches, and what each only sees.
    let rows = [
        (owner(Some("a"), Some("q")), (true, false), (true, false)),
        (owner(Some("b"), Some("q")), (false, false), (true, false)),
        (owner(None, Some("q")), (true, false), (true, false)),
        (owner(Some("a"), Some("p")), (false, true), (false, true)),
        (owner(None, Some("p")), (false, true), (false, true)),
        (owner(Some("a"), Some("x")), (false, false), (false, false)),
        (owner(Some("a"), None), (false, false), (false, false)),
    ];
    for (whose, by_agent, by_person) in rows {
        let by = |caller: &Caller| (caller.can_access(&whose), caller.sees_only(&whose));
        assert_eq!(by(&agent), by_agent, "{whose:?}");
        assert_eq!(by(&person), by_person, "{whose:?}");
    }
}

#[test]
fn a_script_reaches_its_shell_whole() {
    let argv = |bytes: usize| {
        let script = "x".repeat(bytes);
        let shell = Command::Shell {
            shell: ByteString::from("/bin/sh"),
            script: ByteString::from(script.as_str()),
        };
        assert_eq!(shell.display(), script);
        shell.argv()
    };
    assert_eq!(argv(3), ["/bin/sh", "-c", "xxx"].map(ByteString::from));
    assert_eq!(argv(SCRIPT_BYTES - 1)[2].len(), SCRIPT_BYTES - 1);
    assert_eq!(argv(SCRIPT_BYTES + 1)[2].len(), SCRIPT_BYTES + 1);

    let longest = argv(SCRIPT_BYTES);
    let [shell, option, command, name, one, two] = longest.as_slice() else {
        panic!("{} arguments", longest.len());
    };
    assert_eq!([shell, name], [&ByteString::from("/bin/sh"); 2]);
    assert_eq!(
        [option, command],
        [
            &ByteString::from("-c"),
            &ByteString::from("eval \"shift 2;$1$2\"")
        ]
    );
    assert_eq!(one.len() + two.len(), SCRIPT_BYTES);
    assert!(one.len() < SCRIPT_BYTES, "what one argument can carry");
}
