use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ostler_model::{Event, Owner, Principal, Timestamp};
use rustix::fs::{CWD, Mode, mknodat};
use tempfile::TempDir;

use super::*;

/// A state directory with a ledger, its heads and their key.
struct Audited {
    dir: TempDir,
}

impl Audited {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn key(&self) -> HeadKey {
        HeadKey::read_or_create(&self.path("conf/audit.key")).expect("a key")
    }

    fn open(&self) -> Ledger {
        let mut ledger = Ledger::open(&self.path("ledger")).expect("it opens");
        let heads = HeadWriter::open(&self.path("heads"), self.key()).expect("it opens");
        ledger.record_heads(heads, at(0)).expect("written");
        ledger
    }

    /// Appends entries until there are `count`; then the daemon is killed.
    fn append_until(&self, count: u64) {
        let mut ledger = self.open();
        while ledger.end() < count {
            ledger.append(&entry(ledger.end())).expect("appended");
        }
    }

    /// The same with entries of now, and an orderly exit.
    fn append_since_the_key(&self, count: u64) {
        let mut ledger = self.open();
        while ledger.end() < count {
            let mut entry = entry(ledger.end());
            entry.at = Timestamp::now();
            ledger.append(&entry).expect("appended");
        }
        drop(ledger);
        self.open();
    }

    /// The same, and an orderly exit.
    fn append_and_exit(&self, count: u64) {
        self.append_until(count);
        self.open().record_head(at(1)).expect("written");
    }

    fn audit(&self) -> AuditReport {
        let key = HeadKey::read(&self.path("conf/audit.key")).expect("readable");
        LedgerReader::open(&self.path("ledger"))
            .audit(&self.path("heads"), key.as_ref())
            .expect("readable")
    }

    /// Keeps this many lines of a file, its header included.
    fn cut(&self, name: &str, lines: usize) {
        self.edit(name, |text| text.truncate(lines));
    }

    fn edit(&self, name: &str, change: impl FnOnce(&mut Vec<String>)) {
        let path = self.path(name);
        let text = fs::read_to_string(&path).expect("readable");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        lines.push(String::new());
        fs::write(&path, lines.join("\n")).expect("written");
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn entry(number: u64) -> LedgerEntry {
    LedgerEntry {
        at: at(i64::try_from(number).expect("small")),
        execution: None,
        by: Owner {
            principal: Principal::unix(0),
            project: None,
            session: None,
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        event: Event::Started { attempt: 1, pid: 7 },
        detail: BTreeMap::from([("number".to_owned(), number.into())]),
    }
}

#[test]
fn heads_are_written_at_the_start_every_hundred_entries_and_at_the_end() {
    let audited = Audited::new();
    let covered = |report: AuditReport| {
        assert_eq!(report.findings, []);
        (report.count, report.heads, report.covered)
    };
    audited.append_until(0);
    assert_eq!(covered(audited.audit()), (0, 1, 0));
    audited.append_until(99);
    assert_eq!(covered(audited.audit()), (99, 1, 0));
    audited.append_until(250);
    // At the second start, then with the 100th and the 200th entry.
    assert_eq!(covered(audited.audit()), (250, 4, 200));
    audited.append_and_exit(250);
    assert_eq!(covered(audited.audit()), (250, 5, 250));
}

#[test]
fn entries_that_are_cut_off_are_missed_also_after_the_next_start() {
    let audited = Audited::new();
    audited.append_and_exit(150);
    audited.cut("ledger/0.seg", 1 + 120);
    let cut = |count| vec![AuditFinding::Cut { head: 150, count }];
    assert_eq!(audited.audit().findings, cut(120));
    let mut ledger = audited.open();
    for number in 1_000..1_010 {
        ledger.append(&entry(number)).expect("appended");
    }
    drop(ledger);
    assert_eq!(audited.audit().findings, cut(130));
    audited.append_until(160);
    let replaced = vec![AuditFinding::Replaced { head: 150 }];
    assert_eq!(audited.audit().findings, replaced);
}

#[test]
fn what_no_head_covers_yet_is_counted() {
    let audited = Audited::new();
    audited.append_until(150);
    audited.cut("ledger/0.seg", 1 + 100);
    let report = audited.audit();
    assert_eq!((report.findings, report.covered), (vec![], 100));
    audited.cut("ledger/0.seg", 1 + 99);
    let cut = AuditFinding::Cut {
        head: 100,
        count: 99,
    };
    assert_eq!(audited.audit().findings, [cut]);
}

#[test]
fn a_chain_written_anew_is_found() {
    let audited = Audited::new();
    audited.append_and_exit(120);
    fs::remove_dir_all(audited.path("ledger")).expect("removed");
    let mut forged = Ledger::open(&audited.path("ledger")).expect("it opens");
    for number in 1..=120 {
        forged.append(&entry(number)).expect("appended");
    }
    drop(forged);
    let replaced = [100, 120].map(|head| AuditFinding::Replaced { head });
    assert_eq!(audited.audit().findings, replaced);
    fs::remove_dir_all(audited.path("ledger")).expect("removed");
    let cut = [100, 120].map(|head| AuditFinding::Cut { head, count: 0 });
    assert_eq!(audited.audit().findings, cut);
}

#[test]
fn every_change_of_the_heads_is_found() {
    let audited = Audited::new();
    audited.append_and_exit(3);
    audited.append_and_exit(5);
    let text = fs::read(audited.path("heads")).expect("readable");
    for offset in 0..text.len() - 1 {
        let mut changed = text.clone();
        changed[offset] ^= 1;
        fs::write(audited.path("heads"), changed).expect("written");
        assert_ne!(audited.audit().findings, [], "a bit of byte {offset}");
    }
    fs::write(audited.path("heads"), &text).expect("written");
    assert_eq!(audited.audit().findings, []);
    audited.edit("heads", |lines| lines.swap(2, 3));
    assert_ne!(audited.audit().findings, []);
    fs::write(audited.path("heads"), &text).expect("written");
    audited.edit("heads", |lines| drop(lines.remove(2)));
    assert_eq!(audited.audit().findings, [AuditFinding::Head { line: 3 }]);
    fs::remove_file(audited.path("heads")).expect("removed");
    assert_eq!(audited.audit().findings, [AuditFinding::NoHeads]);
}

#[test]
fn an_edit_and_the_heads_behind_it_are_one_finding() {
    let audited = Audited::new();
    audited.append_and_exit(250);
    audited.edit("ledger/0.seg", |lines| {
        lines[50] = lines[50].replace("\"number\":49", "\"number\":7");
    });
    let report = audited.audit();
    assert_eq!(report.count, 49);
    let file = "0.seg".to_owned();
    assert_eq!(report.findings, [AuditFinding::Broken { seq: 49, file }]);
}

#[test]
fn expired_entries_are_no_finding() {
    const DAY_S: i64 = 24 * 60 * 60;
    let audited = Audited::new();
    let mut ledger = audited.open();
    for number in 0..300_u32 {
        let mut entry = entry(u64::from(number));
        entry.at = at(i64::from(number) * DAY_S / 10);
        ledger.append(&entry).expect("appended");
    }
    let keep = std::time::Duration::from_secs(60 * 60);
    assert!(ledger.expire(at(100 * DAY_S), keep).expect("removed") > 20);
    let report = audited.audit();
    assert_eq!((report.findings, report.covered), (vec![], 300));
    assert!(report.first > 200, "{}", report.first);
    assert!(report.oldest.is_some_and(|oldest| oldest > at(20 * DAY_S)));
}

#[test]
fn a_torn_head_is_cut_at_every_byte() {
    let audited = Audited::new();
    audited.append_and_exit(3);
    audited.append_and_exit(5);
    let text = fs::read(audited.path("heads")).expect("readable");
    for cut in 0..text.len() {
        fs::write(audited.path("heads"), &text[..cut]).expect("written");
        audited.append_and_exit(5);
        assert_eq!(audited.audit().findings, [], "cut at {cut}");
        assert_eq!(audited.audit().covered, 5);
    }
}

#[test]
fn heads_that_are_damaged_or_emptied_are_not_replaced_without_a_word() {
    type Damage = fn(&[u8]) -> Vec<u8>;
    let damaged: [Damage; 5] = [
        |text| vec![0; text.len()],
        |text| text[1..].to_vec(),
        |text| text[text.len() - 20..].to_vec(),
        |_| Vec::new(),
        |text| {
            text.split_inclusive(|byte| *byte == b'\n')
                .next()
                .unwrap_or_default()
                .to_vec()
        },
    ];
    for (number, damage) in damaged.into_iter().enumerate() {
        let audited = Audited::new();
        audited.append_since_the_key(286);
        let heads = damage(&fs::read(audited.path("heads")).expect("readable"));
        fs::write(audited.path("heads"), &heads).expect("written");
        audited.cut("ledger/0.seg", 1 + 100);
        let mut ledger = Ledger::open(&audited.path("ledger")).expect("it opens");
        let writer = HeadWriter::open(&audited.path("heads"), audited.key()).expect("it opens");
        let noted = ledger.record_heads(writer, at(0));
        drop(ledger);
        let late = AuditFinding::LateHeads { head: 100 };
        assert_eq!(audited.audit().findings, [late], "{number}");
        // What is no file of heads is kept, and the daemon warns of it.
        let kept = fs::read(audited.path("heads.damaged-0"));
        if number < 3 {
            assert_eq!(kept.expect("kept"), heads);
            let message = noted.expect_err("a warning").to_string();
            assert!(message.contains("heads.damaged-0"), "{message}");
        } else {
            assert!(kept.is_err() && noted.is_ok(), "{number}");
        }
    }
}

#[test]
fn each_damaged_file_is_kept() {
    let audited = Audited::new();
    for number in 0..3_u32 {
        fs::write(audited.path("heads"), [b'#'; 10]).expect("written");
        let heads = HeadWriter::open(&audited.path("heads"), audited.key()).expect("it opens");
        assert!(heads.damage().is_some());
        let kept = audited.path(&format!("heads.damaged-{number}"));
        assert_eq!(fs::read(kept).expect("kept"), [b'#'; 10]);
    }
}

#[test]
fn entries_from_before_there_was_a_key_need_no_heads() {
    let audited = Audited::new();
    let mut ledger = Ledger::open(&audited.path("ledger")).expect("it opens");
    let before = Timestamp::now() - std::time::Duration::from_secs(60);
    for number in 0..150 {
        let mut entry = entry(number);
        entry.at = before;
        ledger.append(&entry).expect("appended");
    }
    drop(ledger);
    audited.append_since_the_key(180);
    let report = audited.audit();
    assert_eq!((report.findings, report.covered), (vec![], 180));
}

#[test]
fn a_key_is_made_once_and_is_private() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("new/audit.key");
    assert!(HeadKey::read(&path).expect("readable").is_none());
    let make = || HeadKey::read_or_create(&path).map(drop);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| make().expect("made"));
        }
    });
    let bytes = fs::read(&path).expect("readable");
    make().expect("read");
    assert_eq!(fs::read(&path).expect("readable"), bytes);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((bytes.len(), mode(&path)), (64, 0o600));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
    let message = make().expect_err("not private").to_string();
    assert!(message.contains("0600"), "{message}");
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "short").expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
    let message = make().expect_err("no key").to_string();
    assert!(message.contains("64 bytes"), "{message}");
    fs::remove_file(&path).expect("removed");
    let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600));
    mknodat(CWD, &path, kind, mode, 0).expect("made");
    let message = make().expect_err("a pipe").to_string();
    assert!(message.contains("64 bytes"), "{message}");
}

#[test]
fn heads_of_another_key_are_found() {
    let audited = Audited::new();
    audited.append_until(120);
    fs::remove_file(audited.path("conf/audit.key")).expect("removed");
    assert_eq!(audited.audit().findings, [AuditFinding::NoKey]);
    audited.append_until(130);
    let findings = audited.audit().findings;
    assert_eq!(
        findings[..2],
        [2, 3].map(|line| AuditFinding::Head { line })
    );
}
