//! Pages of lists: no response grows with the list. A page holds as many entries as fit, the number
//! of entries after it, and the cursor of the next page.

use std::cmp::Reverse;

use ostler_engine::{ExecutionInfo, Interaction, InteractionId, ServiceInfo};
use ostler_model::ExecutionId;
use ostler_render::truncated;
use serde_json::Value;

use crate::error::ApiError;

/// The most characters of an invalid cursor in an error.
const CURSOR_CHARS: usize = 60;

/// The key that orders entries and identifies them in a cursor.
pub trait CursorKey: Ord + Sized {
    /// The key as text in a cursor.
    fn encode(&self) -> String;
    /// Parses the text of a key; none for anything else.
    fn decode(text: &str) -> Option<Self>;
}

/// The position of an entry: open ones (running, waiting) before finished ones, then by key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition<K> {
    /// Whether the entry is finished.
    pub finished: bool,
    /// Its key among the other open or finished entries.
    pub key: K,
}

/// The limits of one page.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    /// The most entries.
    pub entries: usize,
    /// The most characters of all entries; a longer first entry is alone on its page.
    pub chars: usize,
}

/// The entries of one page.
#[derive(Debug)]
pub struct ListPage<E> {
    /// The entries, in order.
    pub entries: Vec<E>,
    /// The number of entries after them.
    pub remaining: usize,
    /// The cursor of the next page; none at the end of the list.
    pub next: Option<String>,
}

impl<K: CursorKey> ListPosition<K> {
    /// For a list that does not separate open and finished entries.
    pub fn by(key: K) -> Self {
        Self {
            finished: false,
            key,
        }
    }

    /// `e-KEY` after a finished entry, `r-KEY` after an open one.
    fn encode(&self) -> String {
        format!(
            "{}-{}",
            if self.finished { 'e' } else { 'r' },
            self.key.encode()
        )
    }

    fn decode(cursor: &str) -> Option<Self> {
        let (part, key) = cursor.split_once('-')?;
        let finished = match part {
            "e" => true,
            "r" => false,
            _ => return None,
        };
        let key = K::decode(key)?;
        Some(Self { finished, key })
    }
}

/// The entries after a cursor, in order; all of them without one.
///
/// # Errors
/// When the cursor is invalid.
pub fn after_cursor<T, K: CursorKey>(
    entries: impl IntoIterator<Item = T>,
    position: impl Fn(&T) -> ListPosition<K>,
    cursor: Option<&str>,
) -> Result<Vec<(ListPosition<K>, T)>, ApiError> {
    let after = cursor.map(|cursor| ListPosition::decode(cursor).ok_or_else(|| bad_cursor(cursor)));
    let after = after.transpose()?;
    let positioned = entries.into_iter().map(|entry| (position(&entry), entry));
    let is_after = |at: &ListPosition<K>| after.as_ref().is_none_or(|after| at > after);
    let mut remaining: Vec<_> = positioned.filter(|(at, _)| is_after(at)).collect();
    remaining.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(remaining)
}

/// The error for a cursor of no earlier list.
pub fn bad_cursor(cursor: &str) -> ApiError {
    ApiError::value(format!(
        "parameter 'cursor' is '{}'; allowed: the 'next' of an earlier list",
        truncated(cursor, CURSOR_CHARS)
    ))
}

impl PageLimits {
    /// A page of at most `entries` entries of any length.
    pub const fn of(entries: usize) -> Self {
        Self {
            entries,
            chars: usize::MAX,
        }
    }

    /// As many as fit of the `all` entries from here on; `chars` gives the length of one.
    pub fn fill<K: CursorKey, E>(
        self,
        entries: impl IntoIterator<Item = (ListPosition<K>, E)>,
        all: usize,
        chars: impl Fn(&E) -> usize,
    ) -> ListPage<E> {
        let mut room = self.chars;
        let mut selected = Vec::new();
        let mut last = None;
        for (at, entry) in entries.into_iter().take(self.entries) {
            match room.checked_sub(chars(&entry)) {
                Some(left) => room = left,
                // Otherwise a long entry would hide everything after it.
                None if selected.is_empty() => room = 0,
                None => break,
            }
            last = Some(at);
            selected.push(entry);
        }
        let remaining = all.saturating_sub(selected.len());
        ListPage {
            next: last.filter(|_| remaining > 0).map(|at| at.encode()),
            entries: selected,
            remaining,
        }
    }

    /// A page limited by the number of entries only.
    pub fn fill_by_count<K: CursorKey, E>(self, rest: Vec<(ListPosition<K>, E)>) -> ListPage<E> {
        let all = rest.len();
        self.fill(rest, all, |_| 0)
    }
}

/// The newest execution first.
pub type NewestFirst = Reverse<ExecutionId>;

/// The position of an execution: the newest first.
pub fn newest_first(info: &&ExecutionInfo) -> ListPosition<NewestFirst> {
    ListPosition::by(Reverse(info.id))
}

/// The position of an execution: running ones first, then ended ones, each newest first.
pub fn running_first(info: &&ExecutionInfo) -> ListPosition<NewestFirst> {
    ListPosition {
        finished: info.state.is_finished(),
        key: Reverse(info.id),
    }
}

/// The position of a service: running and pending ones first, then by name.
pub fn service_position(service: &&ServiceInfo) -> ListPosition<(String, String)> {
    let id = service.execution.as_ref().map(|info| info.id.short());
    ListPosition {
        finished: !service.is_living() && service.pending.is_none(),
        key: (service.name.clone(), id.unwrap_or_default()),
    }
}

/// The position of an open question: the newest first.
pub fn question_position(question: &&Interaction) -> ListPosition<Reverse<InteractionId>> {
    ListPosition::by(Reverse(question.id))
}

/// The length of an entry in a response, with its separator.
pub fn json_chars(entry: &Value) -> usize {
    entry.to_string().chars().count() + 1
}

/// The index in an order made elsewhere.
impl CursorKey for usize {
    fn encode(&self) -> String {
        self.to_string()
    }

    fn decode(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl CursorKey for NewestFirst {
    fn encode(&self) -> String {
        self.0.to_string()
    }

    fn decode(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl CursorKey for Reverse<InteractionId> {
    fn encode(&self) -> String {
        self.0.to_string()
    }

    fn decode(text: &str) -> Option<Self> {
        InteractionId::parse(text).map(Self)
    }
}

/// A name, and the short id of its holder: names may repeat across projects.
impl CursorKey for (String, String) {
    fn encode(&self) -> String {
        format!("{}-{}", self.1, self.0)
    }

    fn decode(text: &str) -> Option<Self> {
        let (id, name) = text.split_once('-')?;
        Some((name.to_owned(), id.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every page of a list, by the cursors of the responses.
    fn pages(list: &[(bool, String)], window: PageLimits) -> Vec<ListPage<(bool, String)>> {
        let mut pages: Vec<ListPage<(bool, String)>> = Vec::new();
        loop {
            let cursor = pages.last().and_then(|page| page.next.clone());
            let position = |(over, name): &(bool, String)| ListPosition {
                finished: *over,
                key: (name.clone(), "1".to_owned()),
            };
            let rest =
                after_cursor(list.to_vec(), position, cursor.as_deref()).expect("our cursor");
            let all = rest.len();
            pages.push(window.fill(rest, all, |(_, name)| name.chars().count()));
            if pages.last().is_none_or(|page| page.next.is_none()) {
                return pages;
            }
        }
    }

    fn five_hundred() -> Vec<(bool, String)> {
        (0..500_u32)
            .map(|n| (n % 3 > 0, format!("entry-{}", n * 7919 % 500)))
            .collect()
    }

    #[test]
    fn five_hundred_entries_come_once_each_what_is_open_first() {
        let list = five_hundred();
        let windows = [(20, usize::MAX), (usize::MAX, 200), (7, 30), (1, 1)];
        for (entries, chars) in windows {
            let pages = pages(&list, PageLimits { entries, chars });
            let mut left = list.len();
            for page in &pages {
                left -= page.entries.len();
                assert_eq!(page.remaining, left);
                assert!(page.entries.len() <= entries);
            }
            let actual: Vec<_> = pages.into_iter().flat_map(|page| page.entries).collect();
            let mut sorted = list.clone();
            sorted.sort();
            assert_eq!(actual, sorted, "{entries} entries of {chars} characters");
        }
    }

    #[test]
    fn an_entry_longer_than_the_window_hides_nothing() {
        let long = "x".repeat(1_000);
        let list: Vec<_> = ["a", &long, "z"]
            .map(|name| (false, name.to_owned()))
            .into();
        let window = PageLimits {
            entries: 10,
            chars: 5,
        };
        let sizes: Vec<_> = pages(&list, window)
            .iter()
            .map(|page| page.entries.len())
            .collect();
        assert_eq!(sizes, [1, 1, 1]);
    }

    #[test]
    fn what_ends_between_two_windows_moves_and_is_not_lost() {
        let mut list = five_hundred();
        let window = PageLimits::of(100);
        let position = |(over, name): &(bool, String)| ListPosition {
            finished: *over,
            key: (name.clone(), String::new()),
        };
        let mut actual = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let rest = after_cursor(list.clone(), position, cursor.as_deref()).expect("our cursor");
            let page = window.fill_by_count(rest);
            actual.extend(page.entries.into_iter().map(|(_, name)| name));
            let Some(next) = page.next else {
                break;
            };
            cursor = Some(next);
            // The next running entry ends meanwhile.
            let running = list.iter_mut().filter(|(over, _)| !over);
            if let Some((over, _)) = running.max_by(|one, other| one.1.cmp(&other.1)) {
                *over = true;
            }
        }
        actual.sort();
        actual.dedup();
        assert_eq!(actual.len(), list.len());
    }

    #[test]
    fn a_cursor_reads_back_as_it_was_written() {
        fn same<K: CursorKey + std::fmt::Debug + Clone>(key: &K) {
            for over in [false, true] {
                let key = key.clone();
                let position = ListPosition {
                    finished: over,
                    key,
                };
                assert_eq!(ListPosition::decode(&position.encode()), Some(position));
            }
        }
        same(&Reverse(ExecutionId::mint()));
        same(&InteractionId::parse("i12").map(Reverse).expect("an id"));
        same(&("with-dashes".to_owned(), String::new()));
        same(&("wéb".to_owned(), "12345678".to_owned()));
    }

    #[test]
    fn other_text_is_refused() {
        let ids: Vec<Reverse<ExecutionId>> = vec![Reverse(ExecutionId::mint())];
        for cursor in ["", "r-", "x-1", "812.4", "r-zzzz", "e"] {
            let rest = after_cursor(ids.clone(), |id| ListPosition::by(*id), Some(cursor));
            assert!(rest.is_err(), "{cursor}");
        }
    }
}
