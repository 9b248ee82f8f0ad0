//! Numbered menus before a prompt, and choices within one.

use std::sync::LazyLock;

use regex::Regex;

use super::question_kind::OPTIONS;

/// The number of lines before a prompt that are searched for a menu.
const MENU_LINES: usize = 200;
/// The longest item of a menu, in bytes.
const ITEM_BYTES: usize = 256;
/// The most lines between a menu and its prompt.
const LINES_BETWEEN: usize = 2;

/// Matches `1) red`, `[2] green`, `> 3. blue`: the marker and the text up to the next marker. A
/// menu in columns has several items in a line.
static ITEM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|\s{2,}|\t)\s*(?:[>*❯]\s*)?[\[(]?(\d{1,3})[\])\.:]\s+(\S(?:[^\t]*?\S)?)(?:\s{2,}|\t|$)")
        .expect("a constant")
});

/// Matches `(a/b/c)`, `[y,n,q,?]` with at least three choices; two are a confirmation or no choice.
static INLINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[\[(<]\s*([\w?!+-]{1,20}(?:\s*[/|,]\s*[\w?!+-]{1,20}){2,})\s*[\])>]")
        .expect("a constant")
});

static RANGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\[(]\s*(\d{1,3})\s*-\s*(\d{1,3})\s*[\])]").expect("a constant"));

/// Matches the row above a menu that is moved in with the arrow keys: `? Select a framework:`.
static KEY_MENU_QUESTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*[?◆]\s+(\S.*?)\s*$").expect("a constant"));

/// Matches its chosen row, `❯ Vue` or `│  ● Vue`.
static KEY_MENU_CHOSEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\s│|]*[❯●]\s+\S").expect("a constant"));

/// Matches its other rows.
static KEY_MENU_OTHER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:[\s│|]*[○◯]|[│|]?\s{2,})\s*[^\s└]").expect("a constant"));

/// The question of a menu that is moved in with the arrow keys, which ends these rows of a screen.
pub(crate) fn key_menu_question<'a>(rows: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let rows: Vec<&str> = rows.collect();
    let question = |row: &&'a str| {
        KEY_MENU_QUESTION
            .captures(row)?
            .get(1)
            .map(|it| it.as_str())
    };
    let at = rows.iter().rposition(|row| question(row).is_some())?;
    let below = &rows[at + 1..];
    let (chosen, others): (Vec<&str>, Vec<&str>) =
        below.iter().partition(|row| KEY_MENU_CHOSEN.is_match(row));
    let is_menu = chosen.len() == 1 && others.iter().any(|row| KEY_MENU_OTHER.is_match(row));
    question(&rows[at]).filter(|_| is_menu)
}

/// The items of the menu directly above a prompt, whose numbers are consecutive from 0 or 1.
pub(super) fn menu_above(before: &[String]) -> Option<Vec<String>> {
    let (mut found, mut between) = (Vec::new(), 0);
    for line in before.iter().rev().take(MENU_LINES) {
        let items = items(line);
        if items.is_empty() {
            let blank = line.trim().is_empty();
            between += usize::from(!blank);
            if (!found.is_empty() && !blank) || between > LINES_BETWEEN {
                break;
            }
        }
        found.splice(0..0, items);
    }
    found.sort_by_key(|(number, _)| *number);
    let first = found.first()?.0;
    let is_consecutive = found.iter().zip(first..).all(|(it, number)| it.0 == number);
    let fits = (2..=OPTIONS).contains(&found.len())
        && found.iter().all(|(_, text)| text.len() <= ITEM_BYTES);
    (first <= 1 && is_consecutive && fits).then(|| {
        let format_item = |(number, text): (u32, String)| format!("{number}) {text}");
        found.into_iter().map(format_item).collect()
    })
}

fn items(line: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(item) = ITEM.captures_at(line, from) {
        let (number, text) = (&item[1], &item[2]);
        from = item.get(2).map_or(line.len(), |text| text.end());
        if let Ok(number) = number.parse() {
            found.push((number, text.to_owned()));
        }
    }
    found
}

/// The choices in the prompt itself.
pub(super) fn inline_choices(text: &str) -> Option<Vec<String>> {
    if let Some(found) = INLINE.captures_iter(text).last() {
        let words = found[1]
            .split(['/', '|', ','])
            .map(|it| it.trim().to_owned());
        return Some(words.collect());
    }
    let range = RANGE.captures_iter(text).last()?;
    let (low, high) = (range[1].parse::<usize>().ok()?, range[2].parse().ok()?);
    let fits = low < high && high - low < OPTIONS;
    fits.then(|| (low..=high).map(|it| it.to_string()).collect())
}
