//! Where the page comes from when the program is built: a decision of facts, for the build script.

use std::time::SystemTime;

/// What is known before the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageFacts {
    /// Whether the program is optimized: `release` or `dist`.
    pub(crate) is_release: bool,
    /// Whether `OSTLER_SKIP_WEB=1` is set.
    pub(crate) is_skipped: bool,
    /// Whether the page's source is there.
    pub(crate) has_source: bool,
    /// When the page was built; none where it is not.
    pub(crate) built: Option<SystemTime>,
    /// When the newest file that it is made of was changed.
    pub(crate) changed: Option<SystemTime>,
}

/// What the build script does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageSource {
    /// Embed what is built.
    Built,
    /// Build it, then embed it.
    Build,
    /// Embed nothing, for this reason.
    Absent(&'static str),
}

/// Where the page comes from. Development builds have none: what they embed would change while
/// tests run, and make cargo build again what they run.
pub(crate) fn page_source(facts: &PageFacts) -> PageSource {
    let PageFacts {
        is_release,
        is_skipped,
        has_source,
        built,
        changed,
    } = *facts;
    if is_skipped {
        return PageSource::Absent("OSTLER_SKIP_WEB=1 was set when it was built");
    }
    if !is_release {
        return PageSource::Absent(
            "it is a development build, which has none; the setting http.web_directory names a \
             directory with a built one",
        );
    }
    let is_old = built.is_some_and(|built| changed.is_some_and(|changed| changed > built));
    match (built, has_source) {
        (Some(_), true) if is_old => PageSource::Build,
        (Some(_), _) => PageSource::Built,
        (None, true) => PageSource::Build,
        (None, false) => PageSource::Absent("its source, web/, was not there"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn facts() -> PageFacts {
        PageFacts {
            is_release: true,
            is_skipped: false,
            has_source: true,
            built: None,
            changed: Some(at(1)),
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn is_absent_for(facts: &PageFacts, word: &str) -> bool {
        matches!(page_source(facts), PageSource::Absent(reason) if reason.contains(word))
    }

    #[test]
    fn a_release_builds_what_is_missing_or_old() {
        let built = |seconds| PageFacts {
            built: Some(at(seconds)),
            ..facts()
        };
        assert_eq!(page_source(&facts()), PageSource::Build);
        assert_eq!(page_source(&built(0)), PageSource::Build);
        assert_eq!(page_source(&built(1)), PageSource::Built);
        assert_eq!(page_source(&built(2)), PageSource::Built);
    }

    #[test]
    fn a_development_build_neither_builds_nor_embeds_it() {
        for built in [None, Some(at(0)), Some(at(2))] {
            let development = PageFacts {
                is_release: false,
                built,
                ..facts()
            };
            assert!(is_absent_for(&development, "http.web_directory"));
        }
    }

    #[test]
    fn what_is_skipped_or_not_there_is_absent() {
        let skipped = PageFacts {
            is_skipped: true,
            built: Some(at(2)),
            ..facts()
        };
        assert!(is_absent_for(&skipped, "OSTLER_SKIP_WEB"));
        let without_source = PageFacts {
            has_source: false,
            ..facts()
        };
        assert!(is_absent_for(&without_source, "web/"));
        let built_elsewhere = PageFacts {
            built: Some(at(0)),
            ..without_source
        };
        assert_eq!(page_source(&built_elsewhere), PageSource::Built);
    }
}
