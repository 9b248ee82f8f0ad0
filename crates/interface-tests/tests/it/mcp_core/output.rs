//! Output: in order, in parts, in pages, within the budget.

use super::*;

#[tokio::test]
async fn no_line_is_lost_or_doubled_between_two_answers() {
    const LINES: u32 = 4_000;
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = format!(
        "i=0; while [ $i -lt {LINES} ]; do echo $i; [ $((i % 200)) = 0 ] && printf half && \
         read -r line; i=$((i+1)); done"
    );
    let more = json!({"input": "open", "wait_ms": 50});
    let mut result = exec(&mut client, &script, more).await;
    let id = id(&result);
    let mut seen = Vec::new();
    while fields(&result)["status"] == "running" {
        take(&mut seen, &result);
        // It may just have ended.
        control(&mut client, "write", json!({"ids": [id], "text": ""})).await;
        let more = json!({"ids": [id], "cursor": cursor(&result), "wait_ms": 20});
        result = process(&mut client, "wait", more).await;
        let next = cursor(&result);
        // Output between them is read in a second response, as any other.
        take(&mut seen, &result);
        let more = json!({"ids": [id], "cursor": next});
        result = process(&mut client, "output", more).await;
    }
    take(&mut seen, &result);
    let expected: Vec<u32> = (0..LINES).collect();
    assert_eq!(seen, expected);
}

/// The numbers of finished lines.
fn take(seen: &mut Vec<u32>, result: &Value) {
    assert!(fields(result).get("stdout_omitted").is_none(), "{result}");
    for line in output(result) {
        seen.extend(line.trim_start_matches("half").parse::<u32>());
    }
}

#[tokio::test]
async fn output_is_read_in_parts() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "seq 1 50; printf '\\033[31mred\\033[0m\\n'; echo err >&2";
    let id = id(&exec(&mut client, script, json!({})).await);
    let mut read = async |more: Value| {
        let result = process(&mut client, "output", with(json!({"ids": [id]}), more)).await;
        assert_eq!(result["isError"], false, "{result}");
        let text = text(&result);
        text.split_once('\n')
            .map_or_else(String::new, |(_, rest)| rest.to_owned())
    };
    assert_eq!(read(json!({"tail": 2})).await, "red\n[stderr]\nerr");
    assert_eq!(
        read(json!({"tail": 2, "stream": "stdout"})).await,
        "50\nred"
    );
    assert_eq!(read(json!({"stream": "stderr"})).await, "[stderr]\nerr");
    assert_eq!(read(json!({"grep": "^4[89]$"})).await, "48\n49");
    assert_eq!(
        read(json!({"since": "10m", "tail": 1})).await,
        "[stderr]\nerr"
    );
    assert_eq!(read(json!({"since": "2099-01-01T00:00:00Z"})).await, "");
    let raw = read(json!({"raw": true, "stream": "stdout", "cursor": "141"})).await;
    assert_eq!(raw, "\u{1b}[31mred\u{1b}[0m\n");
}

#[tokio::test]
async fn raw_output_is_read_on_without_splitting_a_character() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "i=0; while [ $i -lt 700 ]; do printf '你好é'; i=$((i+1)); done";
    let id = id(&exec(&mut client, script, json!({})).await);
    let mut all = String::new();
    let mut at = "0".to_owned();
    loop {
        let more = json!({"ids": [id], "raw": true, "cursor": at, "max_chars": 2000});
        let result = process(&mut client, "output", more).await;
        let text = text(&result);
        assert!(text.chars().count() <= 2000, "{}", text.chars().count());
        let body = text.lines().find(|line| !line.starts_with('['));
        all.push_str(body.unwrap());
        at = cursor(&result);
        if fields(&result)["more"] == false {
            break;
        }
    }
    assert_eq!(all, "你好é".repeat(700));
}

#[tokio::test]
async fn responses_stay_within_the_requested_size() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "seq 1 100000; seq 1 100000 >&2; echo over; exec sleep 300";
    for max_chars in [2_000, 5_000, 20_000] {
        let more = json!({"max_chars": max_chars, "pattern": "^over$"});
        let result = exec(&mut client, script, more).await;
        let chars = text(&result).chars().count();
        assert!(
            chars <= max_chars && chars > max_chars / 3,
            "{chars} of {max_chars}"
        );
        assert_eq!(links(&result), [format!("proc://{}/log", id(&result))]);
        assert!(fields(&result)["stdout_omitted"]["lines"].as_u64().unwrap() > 90_000);
    }
    let ids: Vec<Value> =
        process(&mut client, "list", json!({})).await["structuredContent"]["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].clone())
            .collect();
    for max_chars in [20_000, 4_000, 2_000] {
        let more = json!({"ids": ids, "max_chars": max_chars});
        let result = process(&mut client, "output", more).await;
        let chars = text(&result).chars().count();
        assert!(chars <= max_chars && chars > max_chars / 3, "{chars}");
    }
    end(&bench).await;
}

/// Lines of output in the order of their arrival, with both streams marked.
#[tokio::test]
async fn both_streams_stand_in_the_order_of_their_arrival() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "echo 1out; sleep 0.1; echo 2err >&2; sleep 0.1; echo 3out; sleep 0.1; \
                  for n in 4 5 6; do echo ${n}err >&2; done; sleep 0.1; echo 7out";
    let wanted = "1out\n[stderr] 2err\n3out\n[stderr]\n4err\n5err\n6err\n[stdout]\n7out";
    let started = exec(&mut client, script, json!({})).await;
    assert!(text(&started).contains(wanted), "{started}");
    let more = json!({"ids": [id(&started)]});
    for more in [more.clone(), with(more, json!({"cursor": "0"}))] {
        let result = process(&mut client, "output", more).await;
        assert!(text(&result).contains(wanted), "{result}");
    }
    for (tool, arguments) in [
        (
            "command_execute",
            json!({"command": "sh", "args": ["-c", script], "directory": "/"}),
        ),
        ("execute_shell", json!({"command": script})),
    ] {
        let mut other = bench.client_with(tool, ToolSet::from_groups(&GROUPS)).await;
        let result = other.call(tool, arguments).await;
        assert!(text(&result).contains(wanted), "{result}");
        other.close().await;
    }
}

/// The lines of one page, without their marks.
fn page(result: &Value) -> Vec<String> {
    let text = text(result);
    let lines = text.lines().skip(1);
    let lines = lines.map(|line| line.trim_start_matches("[stderr] "));
    let is_output = |line: &&str| !line.starts_with('[') && !line.is_empty();
    lines.filter(is_output).map(str::to_owned).collect()
}

#[tokio::test]
async fn pages_from_a_cursor_hold_each_of_twenty_thousand_lines_once() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "for i in $(seq 10000); do echo out $i; echo err $i >&2; done";
    let started = exec(&mut client, script, json!({})).await;
    let (mut at, mut seen, mut chars) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let more = json!({"ids": [id(&started)], "cursor": at});
        let result = process(&mut client, "output", more).await;
        let length = text(&result).chars().count();
        assert!(length <= 12_000, "{length}");
        chars += length;
        seen.extend(page(&result));
        at = cursor(&result);
        if fields(&result)["lines_left"].is_null() {
            break;
        }
    }
    for stream in ["out", "err"] {
        let of = seen.iter().filter(|line| line.starts_with(stream));
        let wanted = (1..=10_000).map(|n| format!("{stream} {n}"));
        assert!(of.eq(wanted.collect::<Vec<_>>().iter()), "{stream}");
    }
    assert_eq!(seen.len(), 20_000);
    let printed: usize = seen.iter().map(|line| line.len() + 1).sum();
    assert!(chars < 2 * printed, "{chars} characters for {printed}");
    // A wait shows the end of the output, and the failure lines.
    let more = json!({"ids": [id(&started)], "cursor": "0"});
    let result = process(&mut client, "wait", more).await;
    assert!(text(&result).contains("out 10000"), "{result}");
}

#[tokio::test]
async fn output_that_says_nothing_costs_little() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let mut answer = async |script: &str, more: Value| -> (String, String) {
        let result = exec(&mut client, script, more).await;
        (text(&result), id(&result))
    };
    let (equal, _) = answer("yes same | head -3000; echo end", json!({})).await;
    assert!(equal.contains("\nsame [× 3,000]\nend"), "{equal}");

    let script = r"echo before; printf '\177ELF\2\1\0\0\0\0\n\0\0\1\2\n'; echo after";
    let (binary, _) = answer(script, json!({})).await;
    assert!(
        binary.contains("\nbefore\n[binary, 16 bytes]\nafter\n"),
        "{binary}"
    );
    assert!(binary.contains("ostler logs --raw"), "{binary}");

    // Success needs few words, a failure as many as there are.
    let (quiet, _) = answer("seq 100000", json!({})).await;
    assert!(quiet.chars().count() <= 3_200, "{}", quiet.chars().count());
    assert!(
        quiet.contains("\n1\n2\n") && quiet.contains("\n100000"),
        "{quiet}"
    );
    assert!(quiet.contains("omitted; cursor "), "{quiet}");
    let (failed, _) = answer("seq 100000; exit 3", json!({})).await;
    assert!((9_000..=12_000).contains(&failed.chars().count()));
    let (response, _) = answer("seq 50000; echo error: it broke; seq 50000", json!({})).await;
    assert!(response.contains("\nerror: it broke\n"), "{response}");
    assert!((4_000..=5_200).contains(&response.chars().count()));
    let (requested, _) = answer("seq 100000", json!({"max_chars": 20_000})).await;
    assert!((15_000..=20_000).contains(&requested.chars().count()));
    let (file, _) = answer("seq 2000", json!({})).await;
    assert!(
        file.contains("\n1000\n"),
        "what fits is shown whole: {file}"
    );
}

#[tokio::test]
async fn a_match_in_a_long_line_is_shown_with_what_stands_around_it() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "head -c 2500000 /dev/zero | tr '\\0' x; printf left-NEEDLE-right; \
                  head -c 2500000 /dev/zero | tr '\\0' y; echo; echo NEEDLE too";
    let started = exec(&mut client, script, json!({})).await;
    let id = id(&started);
    for more in [json!({}), json!({"cursor": "0"})] {
        let more = with(json!({"ids": [id], "grep": "NEEDLE"}), more);
        let result = process(&mut client, "output", more).await;
        let text = text(&result);
        assert!(text.contains("xleft-NEEDLE-righty"), "{text}");
        assert!(text.contains("\nNEEDLE too"), "{text}");
        assert!(text.chars().count() < 2_000, "{}", text.chars().count());
        // The cursor before the part leads to it.
        let at = text.split("cursor ").nth(1).unwrap();
        let at = at.split(' ').next().unwrap();
        let more = json!({"ids": [id], "raw": true, "cursor": at, "max_chars": 2000});
        let raw = process(&mut client, "output", more).await;
        assert!(
            crate::common::text(&raw).contains("left-NEEDLE-right"),
            "{raw}"
        );
    }
}

#[tokio::test]
async fn a_success_with_an_error_line_has_a_short_excerpt_and_a_failure_a_long_one() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "seq 1 60000; echo 'ERROR: block 7 differs'; seq 1 60000; exit";
    let mut lengths = Vec::new();
    for (code, more) in [
        (0, json!({})),
        (0, json!({"max_chars": 12_000})),
        (3, json!({})),
    ] {
        let result = exec(&mut client, &format!("{script} {code}"), more).await;
        let response = text(&result);
        assert!(response.contains("ERROR: block 7 differs"), "{response}");
        lengths.push(response.chars().count());
    }
    assert!(lengths[0] <= 5_200, "{lengths:?}");
    assert!(lengths[1] > 9_000 && lengths[2] > 9_000, "{lengths:?}");
}
