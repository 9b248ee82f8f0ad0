//! The news of one session: a bounded queue, and who has been told what. Pure.

use std::collections::VecDeque;

use ostler_model::ExecutionId;

use super::item::{Item, Standing, What};

/// Pieces of news kept of one session; what falls out untold is counted.
pub(super) const KEPT: usize = 32;
/// Ends that an answer told before they were news, remembered at most.
pub(super) const TOLD: usize = 256;
/// The most characters of the line on a tool answer.
pub(super) const LINE_CHARS: usize = 800;

/// What one session has and has not been told.
#[derive(Debug, Default)]
pub(super) struct Ears {
    /// Oldest first.
    queue: VecDeque<Heard>,
    /// Untold ones that fell out.
    lost: u64,
    /// Ends that were told before they came here.
    told: VecDeque<ExecutionId>,
    /// How living services stood when that was told, or queued, last.
    services: VecDeque<(ExecutionId, Standing)>,
    /// Executions that calls under way are about, by short bits, once per call.
    attended: Vec<u64>,
    /// Numbers given to what is pushed.
    pushed: u64,
}

#[derive(Debug)]
struct Heard {
    item: Item,
    told: bool,
    /// Its number among what is pushed; none while a call under way will tell it.
    push: Option<u64>,
}

impl Ears {
    /// Takes one piece in; true when it is to be pushed now. An end is news once, and not
    /// when it was told already.
    pub(super) fn add(&mut self, item: Item) -> bool {
        match item.what {
            What::Ended if !self.is_unheard(item.id) => return false,
            What::Service(standing) if !self.knew(item.id, standing) => return false,
            What::Ended | What::Crashed | What::Watched | What::Service(_) => {}
        }
        if self.queue.len() == KEPT
            && let Some(old) = self.queue.pop_front()
            && !old.told
        {
            self.lost += 1;
        }
        let answered = matches!(item.what, What::Ended | What::Service(_));
        let held = answered && self.attended.contains(&item.id.short_bits());
        let push = (!held).then(|| self.number());
        self.queue.push_back(Heard {
            item,
            told: false,
            push,
        });
        push.is_some()
    }

    /// Whether the end of this execution is neither told nor queued.
    pub(super) fn is_unheard(&self, id: ExecutionId) -> bool {
        let queued = |heard: &Heard| heard.item.id == id && heard.item.what == What::Ended;
        !self.told.contains(&id) && !self.queue.iter().any(queued)
    }

    /// Notes how a service stands; true when that is news.
    fn knew(&mut self, id: ExecutionId, standing: Standing) -> bool {
        let place = self.services.iter().position(|(known, _)| *known == id);
        let known = place.and_then(|place| self.services.remove(place));
        if self.services.len() == TOLD {
            self.services.pop_front();
        }
        self.services.push_back((id, standing));
        standing.is_news_after(known.map(|(_, known)| known))
    }

    /// An answer showed how this service stands.
    pub(super) fn told_standing(&mut self, id: ExecutionId, standing: Standing) {
        self.knew(id, standing);
        let theirs = self.queue.iter_mut().filter(|it| it.item.id == id);
        for heard in theirs.filter(|it| matches!(it.item.what, What::Service(_))) {
            heard.told = true;
        }
    }

    const fn number(&mut self) -> u64 {
        self.pushed += 1;
        self.pushed
    }

    /// An answer showed the end of this execution.
    pub(super) fn told_end(&mut self, id: ExecutionId) {
        let theirs = self.queue.iter_mut().filter(|it| it.item.id == id);
        let mut known = false;
        for heard in theirs.filter(|it| it.item.what != What::Watched) {
            heard.told = true;
            known |= heard.item.what == What::Ended;
        }
        if !known && !self.told.contains(&id) {
            if self.told.len() == TOLD {
                self.told.pop_front();
            }
            self.told.push_back(id);
        }
    }

    /// A call about these executions began.
    pub(super) fn attend(&mut self, bits: &[u64]) {
        self.attended.extend_from_slice(bits);
    }

    /// Such a call was answered; true when something it did not tell is to be pushed now.
    pub(super) fn release(&mut self, bits: &[u64]) -> bool {
        for bits in bits {
            if let Some(place) = self.attended.iter().position(|it| it == bits) {
                self.attended.swap_remove(place);
            }
        }
        let mut any = false;
        for place in 0..self.queue.len() {
            let heard = &self.queue[place];
            let waits = heard.push.is_none() && !heard.told;
            if waits && !self.attended.contains(&heard.item.id.short_bits()) {
                let number = self.number();
                self.queue[place].push = Some(number);
                any = true;
            }
        }
        any
    }

    /// What was not told yet, as one line, the oldest first; it counts as told now. What a
    /// call under way will tell stays.
    pub(super) fn line(&mut self) -> Option<String> {
        if self.queue.is_empty() && self.lost == 0 {
            return None;
        }
        let mut line = String::new();
        let mut more = std::mem::take(&mut self.lost);
        let (mut room, mut full) = (LINE_CHARS, false);
        for heard in &mut self.queue {
            if heard.told || heard.push.is_none() {
                continue;
            }
            heard.told = true;
            let chars = heard.item.text.chars().count() + SEPARATOR.len();
            full |= chars > room;
            if full {
                more += 1;
                continue;
            }
            room -= chars;
            if !line.is_empty() {
                line.push_str(SEPARATOR);
            }
            line.push_str(&heard.item.text);
        }
        match (line.is_empty(), more) {
            (true, 0) => None,
            (true, more) => Some(format!("[news: {more} more, see proc://news]")),
            (false, 0) => Some(format!("[news: {line}]")),
            (false, more) => Some(format!("[news: {line}; and {more} more]")),
        }
    }

    /// What was pushed after number `after`, not told since, with its number; oldest first.
    pub(super) fn pushed(&self, after: u64) -> Vec<(u64, Item)> {
        let news = self.queue.iter().filter(|heard| !heard.told);
        let news = news.filter_map(|heard| Some((heard.push?, heard.item.clone())));
        let mut news: Vec<_> = news.filter(|(number, _)| *number > after).collect();
        news.sort_unstable_by_key(|(number, _)| *number);
        news
    }

    /// Everything kept, newest first; it counts as told now.
    pub(super) fn read(&mut self) -> Vec<Item> {
        for heard in &mut self.queue {
            heard.told = true;
        }
        self.lost = 0;
        let items = self.queue.iter().rev();
        items.map(|heard| heard.item.clone()).collect()
    }
}

const SEPARATOR: &str = "; ";

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
