//! Examinations for the daemon, by its configuration.

use ostler_http::rest::{HostExamination, HostExaminer};

use super::examine::examine;
use crate::config::Config;
use crate::context::CliContext;
use crate::process_env::ProcessEnv;

/// Examines as `ostler doctor` does.
#[derive(Debug)]
pub(crate) struct DoctorExaminer(CliContext);

impl DoctorExaminer {
    pub(crate) fn new(config: &Config, env: &ProcessEnv) -> Self {
        Self(CliContext::of_daemon(config.clone(), env.clone()))
    }
}

impl HostExaminer for DoctorExaminer {
    fn examine(&self) -> HostExamination<'_> {
        Box::pin(async {
            let report = examine(&self.0).await;
            report
                .map(|report| report.body())
                .map_err(|error| error.to_string())
        })
    }
}
