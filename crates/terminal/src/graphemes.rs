//! Grapheme clusters that share one cell. The emulator keeps one `char` for each cell, so clusters,
//! such as a letter with its accents or an emoji family, are kept here and represented by a
//! stand-in: a character that no program uses.

use std::collections::{HashMap, HashSet};

/// The most clusters of one width at a time. Where more are visible at once, combining marks are
/// dropped.
pub(crate) const CLUSTERS_MAX: u16 = 4096;

/// The longest cluster in bytes; further marks are dropped. The longest emoji in use, a family
/// of four with skin tones, has 41 bytes.
pub(crate) const CLUSTER_BYTES: usize = 64;

/// Stand-ins for clusters one cell wide: the end of the supplementary private use planes, which
/// are one cell wide and away from what icon fonts use.
const NARROW_FIRST: u32 = 0x10_E000;

/// Stand-ins for clusters two cells wide: unassigned code points of plane 3, which are wide in
/// the Unicode tables.
const WIDE_FIRST: u32 = 0x3_E000;

/// Zero-width joiner: the character after it goes into the same cell.
pub(crate) const JOINER: char = '\u{200d}';

/// Whether a character is a stand-in.
pub(crate) fn is_placeholder(c: char) -> bool {
    placeholder_slot(c).is_some()
}

/// The table of a stand-in, and its position in it.
fn placeholder_slot(c: char) -> Option<(bool, u16)> {
    let code = u32::from(c);
    let within = |first: u32| {
        let slot = u16::try_from(code.checked_sub(first)?).ok()?;
        (slot < CLUSTERS_MAX).then_some(slot)
    };
    match within(NARROW_FIRST) {
        Some(slot) => Some((false, slot)),
        None => within(WIDE_FIRST).map(|slot| (true, slot)),
    }
}

/// The clusters of one emulator.
#[derive(Debug, Default)]
pub(crate) struct Graphemes {
    narrow: GraphemeTable,
    wide: GraphemeTable,
}

/// Clusters of one width.
#[derive(Debug, Default)]
struct GraphemeTable {
    texts: Vec<Option<Box<str>>>,
    slots: HashMap<Box<str>, u16>,
    free: Vec<u16>,
    /// How many more clusters are refused before unused ones are searched for again.
    skips_before_reclaim: u16,
}

impl Graphemes {
    /// Appends the cluster that a character stands for, or the character itself.
    pub(crate) fn push_expanded(&self, c: char, text: &mut String) {
        match self.get(c) {
            Some(cluster) => text.push_str(cluster),
            None if is_placeholder(c) => text.push(char::REPLACEMENT_CHARACTER),
            None => text.push(c),
        }
    }

    /// The cluster that a character stands for.
    pub(crate) fn get(&self, c: char) -> Option<&str> {
        let (wide, slot) = placeholder_slot(c)?;
        let table = if wide { &self.wide } else { &self.narrow };
        table.texts.get(usize::from(slot))?.as_deref()
    }

    /// A stand-in for a cluster. `used` yields every stand-in that is still on a screen, and is
    /// called only when there is no room. `None` where there is no room even then.
    pub(crate) fn intern(
        &mut self,
        cluster: &str,
        wide: bool,
        used: impl FnOnce() -> HashSet<char>,
    ) -> Option<char> {
        let (table, first) = self.table(wide);
        if let Some(slot) = table.slots.get(cluster) {
            return placeholder(first, *slot);
        }
        if table.is_full() {
            table.reclaim(|| {
                let used = used();
                let slots = used.into_iter().filter_map(placeholder_slot);
                let same = slots.filter_map(|(w, slot)| (w == wide).then_some(slot));
                same.collect()
            });
        }
        let slot = table.insert(cluster)?;
        placeholder(first, slot)
    }

    /// Restores a stand-in and its cluster from an [`crate::emulator::EmulatorState`].
    pub(crate) fn restore(&mut self, c: char, cluster: &str) {
        let Some((wide, slot)) = placeholder_slot(c) else {
            return;
        };
        if cluster.len() <= CLUSTER_BYTES && !cluster.chars().any(char::is_control) {
            self.table(wide).0.restore(slot, cluster);
        }
    }

    fn table(&mut self, wide: bool) -> (&mut GraphemeTable, u32) {
        if wide {
            (&mut self.wide, WIDE_FIRST)
        } else {
            (&mut self.narrow, NARROW_FIRST)
        }
    }
}

fn placeholder(first: u32, slot: u16) -> Option<char> {
    char::from_u32(first + u32::from(slot))
}

impl GraphemeTable {
    fn is_full(&self) -> bool {
        self.free.is_empty() && self.texts.len() >= usize::from(CLUSTERS_MAX)
    }

    /// Frees stand-ins that are no longer on a screen. Where few could be freed, the next attempt
    /// is delayed: it costs a walk over every cell.
    fn reclaim(&mut self, used: impl FnOnce() -> HashSet<u16>) {
        if self.skips_before_reclaim > 0 {
            self.skips_before_reclaim -= 1;
            return;
        }
        let used = used();
        for (slot, slot_text) in (0..).zip(self.texts.iter_mut()) {
            if used.contains(&slot) {
                continue;
            }
            if let Some(cluster) = slot_text.take() {
                self.slots.remove(&cluster);
                self.free.push(slot);
            }
        }
        if self.free.len() < usize::from(CLUSTERS_MAX / 8) {
            self.skips_before_reclaim = CLUSTERS_MAX;
        }
    }

    fn insert(&mut self, cluster: &str) -> Option<u16> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.is_full() => return None,
            None => {
                self.texts.push(None);
                u16::try_from(self.texts.len() - 1).ok()?
            }
        };
        self.texts[usize::from(slot)] = Some(cluster.into());
        self.slots.insert(cluster.into(), slot);
        Some(slot)
    }

    fn restore(&mut self, slot: u16, cluster: &str) {
        while self.texts.len() <= usize::from(slot) {
            let next = u16::try_from(self.texts.len()).unwrap_or(u16::MAX);
            self.texts.push(None);
            self.free.push(next);
        }
        if self.texts[usize::from(slot)].is_none() && !self.slots.contains_key(cluster) {
            self.free.retain(|free| *free != slot);
            self.texts[usize::from(slot)] = Some(cluster.into());
            self.slots.insert(cluster.into(), slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthChar;

    #[test]
    fn stand_ins_have_the_width_of_what_they_stand_for() {
        for slot in 0..CLUSTERS_MAX {
            assert_eq!(placeholder(NARROW_FIRST, slot).unwrap().width(), Some(1));
            assert_eq!(placeholder(WIDE_FIRST, slot).unwrap().width(), Some(2));
        }
    }

    #[test]
    fn the_same_cluster_has_the_same_stand_in() {
        let mut clusters = Graphemes::default();
        let one = clusters.intern("e\u{301}", false, HashSet::new).unwrap();
        let same = clusters.intern("e\u{301}", false, HashSet::new).unwrap();
        let wide = clusters.intern("e\u{301}", true, HashSet::new).unwrap();
        assert_eq!(one, same);
        assert_ne!(one, wide);
        assert_eq!(clusters.get(one), Some("e\u{301}"));
        assert_eq!(clusters.get('e'), None);
    }

    #[test]
    fn a_full_table_lets_go_of_what_is_not_shown() {
        let mut clusters = Graphemes::default();
        let cluster = |n: u32| format!("{}\u{301}", char::from_u32(0x4E00 + n).unwrap());
        let first = clusters.intern(&cluster(0), true, HashSet::new).unwrap();
        for n in 1..u32::from(CLUSTERS_MAX) {
            clusters.intern(&cluster(n), true, HashSet::new).unwrap();
        }
        let next = clusters.intern(&cluster(9999), true, || HashSet::from([first]));
        assert!(next.is_some_and(|next| next != first));
        assert_eq!(clusters.get(first), Some(cluster(0).as_str()));
        assert_eq!(clusters.wide.slots.len(), 2);
    }

    #[test]
    fn a_table_full_of_what_is_shown_refuses() {
        let mut clusters = Graphemes::default();
        let mut used = HashSet::new();
        let mut calls = 0;
        for n in 0..3 * u32::from(CLUSTERS_MAX) {
            let cluster = format!("{}\u{301}", char::from_u32(0x4E00 + n).unwrap());
            let all = used.clone();
            let got = clusters.intern(&cluster, false, || {
                calls += 1;
                all
            });
            assert_eq!(got.is_some(), n < u32::from(CLUSTERS_MAX));
            used.extend(got);
        }
        assert!(calls <= 2, "{calls}");
    }
}
