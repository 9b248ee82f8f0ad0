//! Suggestions: known words similar to an unknown one.

/// The candidate most similar to `word`, if one is similar enough.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const MIN_SIMILARITY: f64 = 0.7;
    candidates
        .into_iter()
        .map(|candidate| (similarity(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, candidate)| candidate)
}

/// The similarity from 0 to 1. A single typing error in a short word counts little: `wbe` is `web`.
fn similarity(word: &str, candidate: &str) -> f64 {
    const ONE_TYPO: f64 = 0.9;
    const SHORT_CHARS: usize = 3;
    let score = strsim::jaro_winkler(word, candidate);
    let long = candidate.chars().count() >= SHORT_CHARS;
    if long && strsim::osa_distance(word, candidate) <= 1 {
        score.max(ONE_TYPO)
    } else {
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_strangers_are_not() {
        assert_eq!(nearest("wbe", ["db", "web"]), Some("web"));
        assert_eq!(nearest("serivce", ["service", "serve"]), Some("service"));
        assert_eq!(nearest("x", ["db", "web"]), None);
        assert_eq!(nearest("exact", ["exactly", "exact"]), Some("exact"));
    }
}
