use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"a":[1,"é"]}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn resume(initialize: Option<&str>, torn: bool) -> Resume {
    let initialize = initialize.map(|text| RawValue::from_string(text.to_owned()).unwrap());
    Resume { initialize, torn }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.build().unwrap().block_on(future)
}

/// What is read when the client's bytes arrive `piece` by `piece`, and what was noted.
fn read(client: &str, resume: Option<&Resume>, piece: usize) -> (String, Vec<Note>) {
    let (sender, mut receiver) = mpsc::channel(16);
    let text = block_on(async {
        let (mut far, near) = tokio::io::duplex(piece);
        let mut input = ClientInput::new(near, resume, sender);
        let mut text = String::new();
        let write = async {
            far.write_all(client.as_bytes()).await.unwrap();
            drop(far);
        };
        let (_, read) = tokio::join!(write, input.read_to_string(&mut text));
        read.unwrap();
        text
    });
    let notes = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
    (text, notes)
}

fn noted(notes: &[Note]) -> Vec<&str> {
    let request = |note: &'_ Note| match note {
        Note::Initialize(raw) => raw.get().trim().to_owned(),
        Note::Torn(_) | Note::Bye(_) => panic!("not asked for"),
    };
    let told: Vec<String> = notes.iter().map(request).collect();
    told.iter()
        .map(|text| if text == INITIALIZE { INITIALIZE } else { "?" })
        .collect()
}

#[test]
fn a_handshake_is_noted_however_it_is_cut() {
    let client = format!("{INITIALIZE}\n{CALL}\n");
    for piece in 1..client.len() {
        let (text, notes) = read(&client, None, piece);
        assert_eq!(text, client);
        assert_eq!(noted(&notes), [INITIALIZE], "{piece}");
    }
}

#[test]
fn a_client_without_handshake_passes() {
    let client = format!("{CALL}\n").repeat(20);
    let (text, notes) = read(&client, None, 7);
    assert_eq!(text, client);
    assert!(notes.is_empty());
}

#[test]
fn a_resumed_conversation_begins_with_the_old_handshake() {
    let resume = resume(Some(INITIALIZE), false);
    let client = format!("{CALL}\n{CALL}\n");
    let initialized = std::str::from_utf8(INITIALIZED).unwrap();
    for piece in [1, 5, 1000] {
        let (text, notes) = read(&client, Some(&resume), piece);
        assert_eq!(text, format!("{INITIALIZE}\n{initialized}\n{client}"));
        assert!(notes.is_empty());
    }
}

#[test]
fn the_rest_of_a_line_is_dropped_and_whole_lines_are_kept() {
    let resume = resume(None, false);
    for cut in 1..CALL.len() {
        let client = format!("{}\n{INITIALIZE}\n{CALL}\n", &CALL[cut..]);
        let (text, notes) = read(&client, Some(&resume), 9);
        assert_eq!(text, format!("{INITIALIZE}\n{CALL}\n"), "{cut}");
        assert_eq!(noted(&notes), [INITIALIZE]);
    }
    let (text, _) = read(&format!("\n{CALL}\n"), Some(&resume), 9);
    assert_eq!(text, format!("{CALL}\n"));
    let batch = format!("[{CALL}]\n");
    assert_eq!(read(&batch, Some(&resume), 9).0, batch);
    assert_eq!(read("", Some(&resume), 9).0, "");
}

/// What the client gets when `pieces` are written.
fn written(pieces: &[&str], resume: Option<&Resume>, room: usize) -> (String, Vec<bool>) {
    let (sender, mut receiver) = mpsc::channel(1000);
    let text = block_on(async {
        let (mut far, near) = tokio::io::duplex(room);
        let mut output = ClientOutput::new(near, resume, sender);
        let write = async {
            for piece in pieces {
                output.write_all(piece.as_bytes()).await.unwrap();
            }
            drop(output);
        };
        let mut text = String::new();
        let (_, read) = tokio::join!(write, far.read_to_string(&mut text));
        read.unwrap();
        text
    });
    let torn = |note| match note {
        Note::Torn(torn) => torn,
        Note::Initialize(_) | Note::Bye(_) => panic!("not asked for"),
    };
    let notes = std::iter::from_fn(|| receiver.try_recv().ok()).map(torn);
    (text, notes.collect())
}

#[test]
fn whole_lines_are_written_without_a_note() {
    assert_eq!(
        written(&["one\n", "two\n"], None, 100),
        ("one\ntwo\n".into(), vec![])
    );
}

#[test]
fn a_half_written_line_is_noted_until_it_ends() {
    let (text, notes) = written(&["0123456789\n"], None, 4);
    assert_eq!(text, "0123456789\n");
    assert_eq!(notes, [true, false]);
}

#[test]
fn the_answer_to_the_old_handshake_is_swallowed() {
    let old = resume(Some(INITIALIZE), false);
    assert_eq!(written(&["{\"id\":0}", "\nx\n"], Some(&old), 100).0, "x\n");
    let torn = resume(Some(INITIALIZE), true);
    assert_eq!(written(&["{}\n", "x\n"], Some(&torn), 100).0, "\nx\n");
}
