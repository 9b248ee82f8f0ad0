//! Progress of builds and fetches, as lines.

use bollard::models::{BuildInfo, CreateImageInfo, ProgressDetail};

/// Receives lines of progress.
pub type ProgressSink<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// The lines of one message of a build.
///
/// # Errors
/// With the engine's words, where the build failed.
pub(super) fn of_build(info: BuildInfo) -> Result<Vec<String>, String> {
    if let Some(error) = info.error_detail {
        return Err(error.message.unwrap_or_default());
    }
    let detail = info.progress_detail.as_ref();
    let id = info.id.as_deref();
    let status = info.status.map(|status| status_line(id, &status, detail));
    let stream = info.stream.unwrap_or_default();
    let lines = stream.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty()).map(str::to_owned);
    Ok(lines.chain(status).collect())
}

/// The line of one message of a fetch.
///
/// # Errors
/// With the engine's words, where it failed.
pub(super) fn of_pull(info: CreateImageInfo) -> Result<Option<String>, String> {
    if let Some(error) = info.error_detail {
        return Err(error.message.unwrap_or_default());
    }
    let detail = info.progress_detail.as_ref();
    let id = info.id.as_deref();
    Ok(info.status.map(|status| status_line(id, &status, detail)))
}

fn status_line(id: Option<&str>, status: &str, detail: Option<&ProgressDetail>) -> String {
    let line = match id {
        Some(id) => format!("{id}: {status}"),
        None => status.to_owned(),
    };
    match detail.and_then(|it| Some((it.current?, it.total?))) {
        Some((current, total)) if total > 0 => {
            let percent = current.clamp(0, total).saturating_mul(100) / total;
            format!("{line} {percent} %")
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_done_and_how_far() {
        let detail = ProgressDetail {
            current: Some(1),
            total: Some(3),
        };
        let info = CreateImageInfo {
            id: Some("layer".to_owned()),
            status: Some("Downloading".to_owned()),
            progress_detail: Some(detail),
            ..CreateImageInfo::default()
        };
        assert_eq!(
            of_pull(info),
            Ok(Some("layer: Downloading 33 %".to_owned()))
        );
        let info = BuildInfo {
            stream: Some("Step 1/2 : FROM a\n\n".to_owned()),
            ..BuildInfo::default()
        };
        assert_eq!(of_build(info), Ok(vec!["Step 1/2 : FROM a".to_owned()]));
    }
}
