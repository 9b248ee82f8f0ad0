use ostler_model::ExecutionId;
use proptest::prelude::*;

use super::*;

fn request(method: &str, uri: &str) -> Vec<u8> {
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"uri":"{uri}"}}}}"#);
    [line.as_bytes(), b"\n"].concat()
}

fn answer(line: u64, standing: bool) -> LogRecord<'static> {
    let output = OutputKind::Answer { line, standing };
    LogRecord::Output { output, text: b"" }
}

fn texts(backlog: &ConnectionState) -> Vec<String> {
    let texts = backlog.standing().iter();
    texts
        .map(|it| String::from_utf8_lossy(&it.text).into_owned())
        .collect()
}

#[test]
fn an_answered_line_is_gone_and_one_that_holds_is_kept() {
    let mut backlog = ConnectionState::default();
    let methods = [
        "initialize",
        "resources/subscribe",
        "tools/list",
        "resources/unsubscribe",
    ];
    for method in methods {
        backlog.apply(&LogRecord::Input(&request(method, "a")));
    }
    assert_eq!(backlog.unanswered().len(), 4);
    for (line, standing) in [(0, true), (1, true), (2, false)] {
        backlog.apply(&answer(line, standing));
    }
    assert_eq!(backlog.subscriptions().collect::<Vec<_>>(), ["a"]);
    assert!(texts(&backlog)[0].contains("initialize"));
    backlog.apply(&answer(3, true));
    assert_eq!(
        (backlog.subscriptions().count(), backlog.unanswered().len()),
        (0, 0)
    );
    assert_eq!(texts(&backlog).len(), 1);
}

#[derive(Debug, Clone)]
enum Step {
    Input(Vec<u8>),
    Bound(u64),
    Dispatched(u64),
    Answer(u64, bool),
    Acknowledge(u64),
    Attached,
}

fn step() -> impl Strategy<Value = Step> {
    let line = 0_u64..12;
    prop_oneof![
        prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..20).prop_map(Step::Input),
        Just(Step::Input(request("resources/subscribe", "u"))),
        line.clone().prop_map(Step::Bound),
        line.clone().prop_map(Step::Dispatched),
        (line.clone(), any::<bool>()).prop_map(|(line, standing)| Step::Answer(line, standing)),
        line.prop_map(Step::Acknowledge),
        Just(Step::Attached),
    ]
}

fn take(backlog: &mut ConnectionState, step: &Step) {
    let text = b"";
    let record = match step {
        Step::Input(bytes) => LogRecord::Input(bytes),
        Step::Bound(line) => LogRecord::Bound {
            line: *line,
            binding: StartBinding {
                member: 0,
                start: 0,
                id: ExecutionId::mint(),
            },
        },
        Step::Dispatched(line) => LogRecord::Dispatched {
            line: *line,
            member: 1,
        },
        Step::Answer(line, standing) => answer(*line, *standing),
        Step::Acknowledge(line) => LogRecord::Output {
            output: OutputKind::Acknowledgement { line: *line },
            text,
        },
        Step::Attached => LogRecord::Attached,
    };
    backlog.apply(&record);
}

fn replayed(mut bytes: &[u8]) -> ConnectionState {
    let mut backlog = ConnectionState::default();
    while let Some((record, length)) = LogRecord::decode(bytes) {
        backlog.apply(&record);
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty());
    backlog
}

proptest! {
    #[test]
    fn a_snapshot_says_the_same_as_everything_before_it(steps in prop::collection::vec(step(), 0..40)) {
        let mut backlog = ConnectionState::default();
        for step in &steps {
            take(&mut backlog, step);
            prop_assert_eq!(&replayed(&backlog.snapshot()), &backlog);
        }
    }
}
