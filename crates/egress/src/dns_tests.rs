use proptest::prelude::*;

use super::*;

/// A query as C libraries write it.
fn query(labels: &[&[u8]], kind: u16, edns: bool) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, u8::from(edns)];
    for label in labels {
        bytes.push(u8::try_from(label.len()).expect("a label is short"));
        bytes.extend_from_slice(label);
    }
    bytes.push(0);
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&CLASS_IN.to_be_bytes());
    if edns {
        bytes.extend_from_slice(&[0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    }
    bytes
}

#[test]
fn a_question_is_read_in_lower_case_and_comes_back_as_it_was() {
    let bytes = query(&[b"ExAmPlE", b"oRg"], TYPE_A, false);
    let question = DnsQuery::parse(&bytes).expect("a question");
    assert_eq!(question.name, "example.org");
    assert_eq!(question.record_kind(), RecordKind::Address);
    let answer = question.response(DnsReply::Address(Ipv4Addr::new(198, 18, 1, 7)));
    assert_eq!(answer[..2], [0x12, 0x34]);
    assert_eq!(
        answer[2..4],
        [0x85, 0x80],
        "answer, authoritative, recursion, no error"
    );
    assert_eq!(answer[4..12], [0, 1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(answer[12..bytes.len()], bytes[12..]);
    let expected = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 198, 18, 1, 7];
    assert_eq!(answer[bytes.len()..], expected);
}

#[test]
fn a_forbidden_name_is_not_there_and_edns_says_why() {
    let bytes = query(&[b"evil", b"test"], TYPE_A, true);
    let question = DnsQuery::parse(&bytes).expect("a question");
    let answer = question.response(DnsReply::Prohibited);
    assert_eq!(answer[3] & 0x0f, 3, "NXDOMAIN");
    assert_eq!(answer[10..12], [0, 1], "one additional record");
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("not in the allow list"), "{text}");
    let plain = query(&[b"evil", b"test"], TYPE_A, false);
    let answer = DnsQuery::parse(&plain)
        .expect("a question")
        .response(DnsReply::Prohibited);
    assert_eq!(answer.len(), plain.len());
}

#[test]
fn other_kinds_are_distinguished() {
    let of = |kind| DnsQuery::parse(&query(&[b"a"], kind, false)).expect("a question");
    assert_eq!(of(28).record_kind(), RecordKind::Other);
    assert_eq!(of(TYPE_ANY).record_kind(), RecordKind::Address);
    assert_eq!(of(65).response(DnsReply::Empty)[6..8], [0, 0]);
}

#[test]
fn a_dot_within_a_label_matches_no_name() {
    let question = DnsQuery::parse(&query(&[b"a.example", b"org"], TYPE_A, false));
    let name = question.expect("a question").name;
    assert_ne!(name, "a.example.org");
    assert!(ostler_model::host_pattern::canonical_name(&name).is_err());
}

#[test]
fn what_is_no_question_is_refused_by_its_kind() {
    let good = query(&[b"a", b"test"], TYPE_A, false);
    assert_eq!(DnsQuery::parse(&good[..11]), Err(DnsParseError::Noise));
    let mut answer = good.clone();
    answer[2] |= 0x80;
    assert_eq!(DnsQuery::parse(&answer), Err(DnsParseError::Noise));
    assert_eq!(error_response(DnsParseError::Noise), None);
    let mut update = good.clone();
    update[2] = 0x28;
    let not_a_query = DnsParseError::NotAQuery { id: 0x1234 };
    assert_eq!(DnsQuery::parse(&update), Err(not_a_query));
    assert_eq!(error_response(not_a_query).map(|it| it[3] & 15), Some(4));
    let malformed = Err(DnsParseError::Malformed { id: 0x1234 });
    let mut pointer = good.clone();
    pointer[12] = 0xc0;
    assert_eq!(DnsQuery::parse(&pointer), malformed);
    let mut two = good.clone();
    two[5] = 2;
    assert_eq!(DnsQuery::parse(&two), malformed);
    assert_eq!(DnsQuery::parse(&good[..good.len() - 1]), malformed);
}

#[test]
fn a_name_may_be_as_long_as_it_may_and_no_longer() {
    let label = [b'a'; 63];
    let fits = query(&[&label, &label, &label, &[b'a'; 61]], TYPE_A, false);
    let question = DnsQuery::parse(&fits).expect("255 bytes");
    assert_eq!(question.name.len(), 253);
    assert!(question.response(DnsReply::Prohibited).len() <= 512);
    let longer = query(&[&label, &label, &label, &[b'a'; 62]], TYPE_A, false);
    assert!(DnsQuery::parse(&longer).is_err());
}

proptest! {
    #[test]
    fn no_bytes_panic_and_every_answer_fits(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let answer = match DnsQuery::parse(&bytes) {
            Ok(question) => question.response(DnsReply::Address(Ipv4Addr::LOCALHOST)),
            Err(unreadable) => error_response(unreadable).unwrap_or_default(),
        };
        prop_assert!(answer.len() <= 512);
    }

    #[test]
    fn garbled_questions_never_panic(
        at in 0_usize..64,
        byte in any::<u8>(),
        cut in 0_usize..64,
        edns in any::<bool>(),
    ) {
        let mut bytes = query(&[b"www", b"example", b"org"], TYPE_A, edns);
        let length = bytes.len();
        bytes[at % length] = byte;
        bytes.truncate(length - cut % length);
        if let Ok(question) = DnsQuery::parse(&bytes) {
            let again = DnsQuery::parse(&bytes);
            prop_assert_eq!(again.as_ref(), Ok(&question));
            prop_assert!(question.response(DnsReply::Failed).len() <= 512);
        }
    }

    #[test]
    fn every_name_is_read_back(labels in prop::collection::vec("[a-zA-Z0-9_-]{1,20}", 1..8)) {
        let raw: Vec<&[u8]> = labels.iter().map(|label| label.as_bytes()).collect();
        let question = DnsQuery::parse(&query(&raw, TYPE_A, false));
        prop_assert_eq!(question.expect("a question").name, labels.join(".").to_lowercase());
    }
}

#[test]
fn fuzz_question() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/dns");
    let seeds = vec![
        query(&[b"example", b"org"], TYPE_A, false),
        query(&[b"a"], TYPE_A, true),
        query(&[], 0xffff, false),
    ];
    ostler_fuzz::fuzz(&corpus, seeds, |input| {
        if let Ok(question) = DnsQuery::parse(input) {
            let answer = question.response(DnsReply::Address(Ipv4Addr::new(198, 18, 1, 7)));
            assert_eq!(answer[..2], input[..2], "the id of its question");
        }
    });
}
