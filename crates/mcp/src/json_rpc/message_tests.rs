use super::*;

fn error(line: &[u8]) -> Value {
    match parse_message(line) {
        ParsedLine::Malformed(malformed) => malformed.response(),
        other @ (ParsedLine::Blank
        | ParsedLine::Message(_)
        | ParsedLine::Batch(_)
        | ParsedLine::Ignored) => {
            panic!("{other:?} for {}", String::from_utf8_lossy(line))
        }
    }
}

fn answered(line: &[u8], code: i32, id: Value) {
    let response = error(line);
    let actual = (&response["error"]["code"], &response["id"]);
    let line = String::from_utf8_lossy(line);
    assert_eq!(actual, (&json!(code), &id), "{line}: {response}");
}

#[test]
fn what_is_no_json_is_a_parse_error_with_the_id_where_it_can_be_read() {
    answered(br#"{"jsonrpc":"2.0","id":7,"method":"to"#, -32700, json!(7));
    answered(
        br#"{"jsonrpc":"2.0","id":"a\"b","method":"to"#,
        -32700,
        json!("a\"b"),
    );
    answered(
        br#"{"params":{"id":1},"id" : 8 ,"method":"to"#,
        -32700,
        json!(8),
    );
    answered(br#"{"jsonrpc":"2.0","id":7"#, -32700, json!(null));
    answered(b"hello", -32700, json!(null));
    answered(
        b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"\xff\"}",
        -32700,
        json!(9),
    );
    let surrogate =
        br#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"\ud800"}}"#;
    answered(surrogate, -32700, json!(10));
    let deep = format!("{{\"id\":11,\"params\":{}", "[".repeat(100_000));
    answered(deep.as_bytes(), -32700, json!(11));
    let nested = format!(
        r#"{{"jsonrpc":"2.0","id":12,"method":"ping","params":{}{}}}"#,
        r#"{"a":"#.repeat(200),
        "1".to_owned() + &"}".repeat(200)
    );
    answered(nested.as_bytes(), -32700, json!(12));
}

#[test]
fn what_is_no_request_is_an_invalid_one() {
    answered(b"[]", -32600, json!(null));
    answered(b"5", -32600, json!(null));
    answered(b"{}", -32600, json!(null));
    answered(br#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1));
    answered(
        br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        -32600,
        json!(1),
    );
    answered(
        br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        -32600,
        json!(null),
    );
    answered(
        br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        -32600,
        json!(null),
    );
    answered(br#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, json!(1));
}

#[test]
fn malformed_params_of_every_known_method_are_invalid_params() {
    let with_params = [
        "tools/call",
        "initialize",
        "completion/complete",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
        "logging/setLevel",
    ];
    for method in with_params {
        let line = json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {"name": 5, "uri": 5, "taskId": 5}});
        answered(line.to_string().as_bytes(), -32602, json!(3));
    }
    for method in with_params
        .into_iter()
        .chain(["tools/list", "resources/list", "ping"])
    {
        let line = json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": [1]});
        answered(line.to_string().as_bytes(), -32602, json!(3));
    }
}

#[test]
fn a_key_given_twice_is_named() {
    for (line, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
            "the key 'method' is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}"#,
            "the key 'params' is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5,"name":6}}"#,
            "the key 'params.name' is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}}"#,
            "params of tools/list: _meta must be an object",
        ),
    ] {
        assert_eq!(error(line.as_bytes())["error"]["message"], expected);
    }
}

#[test]
fn what_must_not_be_answered_is_not() {
    let ignored: [&[u8]; 3] = [
        br#"{"jsonrpc":"1.0","method":"x"}"#,
        br#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        br#"{"id":{},"error":{}}"#,
    ];
    for line in ignored {
        assert!(
            matches!(parse_message(line), ParsedLine::Ignored),
            "{line:?}"
        );
    }
    assert!(matches!(parse_message(b" \r"), ParsedLine::Blank));
    let unknown = br#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#;
    assert!(matches!(parse_message(unknown), ParsedLine::Message(_)));
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    assert!(matches!(parse_message(batch), ParsedLine::Batch(members) if members.len() == 1));
}

#[test]
fn fuzz_parse() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/message");
    let seeds = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"command":["a"]}}}"#,
        r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{"a":[null,true,-1e400,"\ud800"]}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":7}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    ];
    let seeds = seeds.map(|seed| seed.as_bytes().to_vec()).to_vec();
    ostler_fuzz::fuzz(&corpus, seeds, |input| match parse_message(input) {
        ParsedLine::Blank => assert!(input.iter().all(|byte| !byte.is_ascii_graphic())),
        ParsedLine::Batch(members) => {
            assert!(!members.is_empty());
            for value in members {
                drop(parse_member(value));
            }
        }
        ParsedLine::Malformed(malformed) => {
            let response = malformed.response();
            assert!(response["error"]["code"].is_i64() && response.get("id").is_some());
        }
        ParsedLine::Message(_) | ParsedLine::Ignored => {}
    });
}
