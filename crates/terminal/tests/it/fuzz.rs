//! For any output of a program, the screen depends neither on how its bytes are split nor on a
//! checkpoint in between.

use std::path::Path;

use ostler_fuzz::fuzz;
use ostler_model::TermSize;
use ostler_terminal::Screen;

const SEEDS: [&[u8]; 9] = [
    b"plain text\r\nand \x1b[1;31mred\x1b[0m\x1b[2J\x1b[H",
    b"\x1b[?1049h\x1b[3;5r\x1b[10;10Hvim\x1bM\x1bD\x1b[?1049l",
    b"\x1b]0;title\x07\x1b]133;A\x1b\\$ \x1b]133;C\x07out\x1b]133;D;0\x07",
    b"\x1b[4h\x1b[12@\x1b[3P\x1b[2L\x1b[M\x1b[1K\x1b[J\x1b#8\x1b7\x1b8",
    "wide 漢字 and \u{301}combining \u{1f468}\u{200d}\u{1f469}".as_bytes(),
    b"\x1bP$q\"p\x1b\\\x1b_apc\x1b\\\x1b^pm\x1b\\\x18\x1a\xff\xfe\xc3",
    b"\x1b[38;2;1;2;3;48;5;7m\x1b[>4;2m\x1b[?2004h\x1b[?1000;1006h\x1b[6n",
    b"\x1b[99999999999999999999;1H\x1b[;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;m",
    b"\t\x1bH\t\x08\x0b\x0c\x0e\x0f\x1bc\x1b(0lqk\x1b(B",
];

#[test]
fn fuzz_screen() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/screen");
    let seeds = SEEDS.map(|seed| [&[20, 5, 7], seed].concat()).to_vec();
    fuzz(&corpus, seeds, |input| {
        let Some((&[cols, rows, cut], bytes)) = input.split_first_chunk::<3>() else {
            return;
        };
        let size = TermSize {
            cols: u16::from(cols),
            rows: u16::from(rows),
        };
        if !size.is_valid() {
            return;
        }
        let mut whole = Screen::new(size, Some("nonce"));
        whole.feed(bytes);
        let mut cut_up = Screen::new(size, Some("nonce"));
        for piece in bytes.chunks(usize::from(cut).max(1)) {
            cut_up.feed(piece);
        }
        assert_eq!(whole.snapshot(), cut_up.snapshot(), "cut into pieces");
        let (before, after) = bytes.split_at(bytes.len() / 2);
        let mut first = Screen::new(size, Some("nonce"));
        first.feed(before);
        let mut second = Screen::restore(&first.checkpoint(), Some("nonce")).expect("a checkpoint");
        second.feed(after);
        assert_eq!(
            whole.snapshot(),
            second.snapshot(),
            "with a checkpoint in between"
        );
    });
}
