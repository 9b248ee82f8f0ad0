//! Suggestions for an unknown word: the known one that was probably meant.

/// The fewest characters of a word that is completed.
const COMPLETED_CHARS: usize = 3;

/// The candidate most similar to `word`, if fewer than half of its characters differ, or else the
/// shortest one that begins with `word`; of equal ones, the first.
///
/// What differs is counted in insertions, deletions, substitutions and exchanges of neighbours
/// (Damerau-Levenshtein), relative to the longer of both.
pub fn nearest<T: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = T>) -> Option<T> {
    const HALF: f64 = 0.5;
    let is_completed = word.chars().count() >= COMPLETED_CHARS;
    let mut best: Option<(f64, T)> = None;
    for candidate in candidates {
        let text = candidate.as_ref();
        let similarity = strsim::normalized_damerau_levenshtein(word, text);
        let qualifies = similarity > HALF || (is_completed && text.starts_with(word));
        if qualifies && best.as_ref().is_none_or(|(most, _)| similarity > *most) {
            best = Some((similarity, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_another_word_finds_none() {
        assert_eq!(nearest("wbe", ["db", "web"]), Some("web"));
        assert_eq!(nearest("serivce", ["service", "serve"]), Some("service"));
        assert_eq!(nearest("x", ["db", "web"]), None);
        assert_eq!(nearest("hyper", ["super", "enter"]), Some("super"));
        assert_eq!(nearest("", ["", "a"]), Some(""));
        assert_eq!(nearest("a", Vec::<String>::new()), None);
    }

    #[test]
    fn the_most_similar_wins_and_then_the_first() {
        assert_eq!(nearest("exact", ["exactly", "exact"]), Some("exact"));
        assert_eq!(nearest("f21", ["f2", "f1", "f12"]), Some("f2"));
        assert_eq!(nearest("f21", ["f1", "f2", "f12"]), Some("f1"));
    }

    #[test]
    fn half_of_the_characters_is_too_much() {
        assert_eq!(nearest("ab", ["ax"]), None);
        assert_eq!(nearest("abc", ["abx"]), Some("abx"));
    }

    #[test]
    fn a_beginning_is_completed() {
        let names = ["log.format", "log.level", "port"];
        assert_eq!(nearest("log", names), Some("log.level"));
        assert_eq!(nearest("log.f", names), Some("log.format"));
        assert_eq!(nearest("lo", names), None);
    }
}
