use super::*;
use crate::readiness::input::ListeningSocket;
use crate::readiness::printed_address::{extract_addresses, parse};

fn sockets(list: &[&str]) -> Vec<ListeningSocket> {
    let made = list
        .iter()
        .enumerate()
        .map(|(at, address)| ListeningSocket {
            address: address.parse().expect("an address"),
            inode: 100 + at as u64,
            pid: 42,
            process: "node".into(),
            stopped: false,
            waiting: 0,
        });
    made.collect()
}

fn listeners(sockets: &[ListeningSocket]) -> Vec<ConfirmedListener<'_>> {
    let since = ms(1_000);
    sockets
        .iter()
        .map(|socket| ConfirmedListener { socket, since })
        .collect()
}

fn main(list: &[&str], hints: PortHints<'_>) -> Option<(u16, MainPortReason, u64)> {
    let sockets = sockets(list);
    let main = hints.choose_main_port(&listeners(&sockets), None)?;
    let settled = u64::try_from(main.settled.as_millis()).expect("small");
    Some((main.listener.socket.address.port(), main.reason, settled))
}

#[test]
fn the_one_people_mean() {
    let none = PortHints::default();
    let by_argument = PortHints {
        requested: Some(3000),
        ..none
    };
    let default = PortHints {
        default: Some(8787),
        ..none
    };
    let moved = PortHints {
        in_use: true,
        ..by_argument
    };
    let wrangler = [
        "127.0.0.1:40001",
        "127.0.0.1:9229",
        "127.0.0.1:8787",
        "127.0.0.1:40002",
    ];
    let last = |port| Some((port, MainPortReason::Newest, 1_000));
    let debug = Some((9229, MainPortReason::Debug, 6_000));
    let elsewhere = Some((3001, MainPortReason::NewestElsewhere, 1_000));
    for (list, hints, expected) in [
        (&[][..], none, None),
        (&["127.0.0.1:3000"], none, last(3000)),
        (&["0.0.0.0:9095", "0.0.0.0:3000"], none, last(3000)),
        (&["0.0.0.0:3000", "10.0.0.5:3001"], none, last(3000)),
        (&["10.0.0.5:3001"], none, elsewhere),
        (&["127.0.0.1:9229"], none, debug),
        (&["127.0.0.1:9229", "[::]:3000"], none, last(3000)),
        (&["[::]:3000", "127.0.0.1:9229"], none, last(3000)),
        (&["0.0.0.0:3001"], moved, last(3001)),
    ] {
        assert_eq!(main(list, hints), expected, "{list:?} {hints:?}");
    }
    let debugger = PortHints {
        requested: Some(9229),
        ..none
    };
    for (list, hints, reason, port, settled) in [
        (
            &["0.0.0.0:3000", "0.0.0.0:3001"][..],
            by_argument,
            MainPortReason::Requested,
            3000,
            1_000,
        ),
        (
            &["0.0.0.0:3001"],
            by_argument,
            MainPortReason::Newest,
            3001,
            2_500,
        ),
        (&wrangler, default, MainPortReason::Default, 8787, 1_000),
        (
            &wrangler[..2],
            default,
            MainPortReason::Newest,
            40001,
            1_500,
        ),
        (
            &["127.0.0.1:9229"],
            debugger,
            MainPortReason::Requested,
            9229,
            1_000,
        ),
    ] {
        let expected = Some((port, reason, settled));
        assert_eq!(main(list, hints), expected, "{list:?} {hints:?}");
    }
}

#[test]
fn the_one_that_was_printed() {
    let printed = extract_addresses("Local: http://localhost:4000/");
    let hints = PortHints {
        addresses: &printed,
        default: Some(4001),
        first_address_at: ms(500),
        ..PortHints::default()
    };
    assert_eq!(
        main(&["0.0.0.0:4000", "0.0.0.0:4001"], hints),
        Some((4000, MainPortReason::PrintedUrl, 1_000))
    );
    // Printed, but not open yet: it may still open.
    let alone = PortHints {
        default: None,
        ..hints
    };
    assert_eq!(
        main(&["0.0.0.0:9095"], alone),
        Some((9095, MainPortReason::Newest, 3_500))
    );
    let words = extract_addresses("listening on port 4000");
    let printed = PortHints {
        addresses: &words,
        ..PortHints::default()
    };
    assert_eq!(
        main(&["0.0.0.0:4000", "0.0.0.0:4001"], printed),
        Some((4000, MainPortReason::PrintedPort, 1_000))
    );
    let debugger = extract_addresses("Debugger listening on http://127.0.0.1:9229/");
    let hints = PortHints {
        addresses: &debugger,
        ..PortHints::default()
    };
    assert_eq!(
        main(&["127.0.0.1:9229", "0.0.0.0:3000"], hints),
        Some((3000, MainPortReason::Newest, 1_000))
    );
}

#[test]
fn the_one_so_far_is_kept_unless_another_is_named() {
    let all = sockets(&["0.0.0.0:3000", "0.0.0.0:40123"]);
    let chosen = |hints: PortHints<'_>, before| {
        hints
            .choose_main_port(&listeners(&all), before)
            .map(|it| it.listener.socket.address.port())
    };
    assert_eq!(chosen(PortHints::default(), None), Some(40123));
    assert_eq!(chosen(PortHints::default(), Some(3000)), Some(3000));
    assert_eq!(chosen(PortHints::default(), Some(1)), Some(40123));
    let printed = extract_addresses("http://localhost:40123");
    let named = PortHints {
        addresses: &printed,
        ..PortHints::default()
    };
    assert_eq!(chosen(named, Some(3000)), Some(40123));
    assert_eq!(
        chosen(
            PortHints {
                requested: Some(3000),
                ..named
            },
            Some(3000)
        ),
        Some(3000)
    );
}

/// An address, whether it speaks TLS, the printed line, and the expected URL.
type Reached = (&'static str, Option<bool>, &'static str, &'static str);

#[rustfmt::skip]
const REACHED: [Reached; 14] = [
    ("127.0.0.1:3000", None, "", "http://localhost:3000/"),
    ("0.0.0.0:3000", Some(false), "", "http://localhost:3000/"),
    ("[::]:3000", Some(true), "", "https://localhost:3000/"),
    ("[::1]:3000", None, "", "http://[::1]:3000/"),
    ("[::1]:3000", None, "http://localhost:3000/app", "http://[::1]:3000/app"),
    ("10.0.0.5:80", None, "", "http://10.0.0.5/"),
    ("[fd00::5]:81", None, "", "http://[fd00::5]:81/"),
    ("127.0.0.1:8888", Some(false), "http://127.0.0.1:8888/a?token=5f", "http://127.0.0.1:8888/a?token=5f"),
    ("0.0.0.0:8000", None, "http://0.0.0.0:8000/", "http://localhost:8000/"),
    ("0.0.0.0:8000", None, "http://localhost:9000/x", "http://localhost:8000/"),
    ("0.0.0.0:443", None, "https://app.test:443/x", "https://app.test/x"),
    ("127.0.0.1:3000", Some(true), "http://localhost:3000", "https://localhost:3000/"),
    ("0.0.0.0:5173", None, "http://192.168.1.5:5173/ http://localhost:5173/", "http://localhost:5173/"),
    ("0.0.0.0:5173", None, "http://localhost:5173/#/a", "http://localhost:5173/#/a"),
];

#[test]
fn where_it_is_reached() {
    for (address, tls, line, url) in REACHED {
        let printed = extract_addresses(line);
        let hints = PortHints {
            addresses: &printed,
            ..PortHints::default()
        };
        let address = address.parse().expect("an address");
        assert_eq!(hints.url(address, tls), url, "{address} {line}");
    }
}

#[test]
fn which_of_several_urls() {
    let several = |line: &str| {
        let printed = extract_addresses(line);
        let hints = PortHints {
            addresses: &printed,
            ..PortHints::default()
        };
        hints.url(([127, 0, 0, 1], 1).into(), None)
    };
    let home = several("http://localhost:1/posts http://localhost:1");
    assert_eq!(home, "http://localhost:1/");
    let token = several("http://localhost:1/ http://localhost:1/lab?token=5f");
    assert_eq!(token, "http://localhost:1/lab?token=5f");
    let by_rule = [
        extract_addresses("http://localhost:1/first"),
        parse("http://localhost:1/rule").into_iter().collect(),
    ]
    .concat();
    let hints = PortHints {
        addresses: &by_rule,
        ..PortHints::default()
    };
    assert_eq!(
        hints.url(([0, 0, 0, 0], 1).into(), None),
        "http://localhost:1/rule"
    );
}

#[test]
fn the_main_one_first_and_debuggers_last() {
    let all = sockets(&[
        "127.0.0.1:9229",
        "0.0.0.0:3001",
        "[::]:3000",
        "0.0.0.0:3000",
        "0.0.0.0:3000",
    ]);
    let actual = sorted_ports(listeners(&all).into_iter(), Some(all[3].address), true);
    let actual: Vec<(String, bool, bool)> = actual
        .iter()
        .map(|it| (it.address.to_string(), it.main, it.tls))
        .collect();
    let expected = [
        ("0.0.0.0:3000", true, true),
        ("[::]:3000", false, false),
        ("0.0.0.0:3001", false, false),
        ("127.0.0.1:9229", false, false),
    ];
    assert_eq!(
        actual,
        expected.map(|(address, main, tls)| (address.to_owned(), main, tls))
    );
    let many: Vec<String> = (1..=PORTS_MAX + 1)
        .map(|port| format!("0.0.0.0:{port}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for count in [PORTS_MAX - 1, PORTS_MAX, PORTS_MAX + 1] {
        let all = sockets(&many[..count]);
        assert_eq!(
            sorted_ports(listeners(&all).into_iter(), None, false).len(),
            count.min(PORTS_MAX)
        );
    }
}
