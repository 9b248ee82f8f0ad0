//! Suggestions for an unknown word: the known one that was probably meant.

/// The fewest characters of a word that is completed.
const COMPLETED_CHARS: usize = 3;
/// The most bytes of a word that has suggestions: those of a file name. The comparison takes the
/// product of both lengths.
const WORD_BYTES: usize = 255;

/// The candidate most similar to `word`, if fewer than half of its characters differ, or else the
/// shortest one that begins with `word`; of equal ones, the first.
///
/// What differs is counted in insertions, deletions, substitutions and exchanges of neighbours
/// (Damerau-Levenshtein), relative to the longer of both. A word of more than 255 bytes has none.
pub fn nearest<T: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = T>) -> Option<T> {
    if word.len() > WORD_BYTES {
        return None;
    }
    let mut best: Option<(f64, T)> = None;
    for candidate in candidates {
        let Some(similarity) = similarity(word, candidate.as_ref()) else {
            continue;
        };
        if best.as_ref().is_none_or(|(most, _)| similarity > *most) {
            best = Some((similarity, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// How similar a candidate is, from 0 to 1; none where it is not suggested.
fn similarity(word: &str, candidate: &str) -> Option<f64> {
    const HALF: f64 = 0.5;
    let (word_chars, chars) = (word.chars().count(), candidate.chars().count());
    let completes = word_chars >= COMPLETED_CHARS && candidate.starts_with(word);
    // At least the difference of the lengths is inserted.
    let may_be_similar = word_chars.abs_diff(chars) * 2 <= word_chars.max(chars);
    if !(may_be_similar || completes) {
        return None;
    }
    let similarity = strsim::normalized_damerau_levenshtein(word, candidate);
    (similarity > HALF || completes).then_some(similarity)
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
    fn a_long_word_has_no_suggestion() {
        let longest = "x".repeat(WORD_BYTES);
        assert_eq!(nearest(&longest, [longest.clone()]), Some(longest.clone()));
        let longer = format!("{longest}x");
        assert_eq!(nearest(&longer, [longest, longer.clone()]), None);
    }

    #[test]
    fn a_candidate_of_another_length_is_not_compared() {
        assert_eq!(similarity("abcdefgh", "abc"), None);
        assert_eq!(similarity("abc", "abcdefgh"), Some(0.375));
    }

    #[test]
    fn a_beginning_is_completed() {
        let names = ["log.format", "log.level", "port"];
        assert_eq!(nearest("log", names), Some("log.level"));
        assert_eq!(nearest("log.f", names), Some("log.format"));
        assert_eq!(nearest("lo", names), None);
    }
}
