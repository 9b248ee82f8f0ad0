//! The environment of this process, read once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ostler_model::ByteString;

use crate::secret_variables::{SecretVariables, is_secret};

/// Environment variables by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessEnv(BTreeMap<OsString, OsString>);

impl ProcessEnv {
    /// The environment of this process.
    pub(crate) fn from_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The same with further variables.
    pub(crate) fn with(mut self, variables: SecretVariables) -> Self {
        self.0.extend(variables.into_inner());
        self
    }

    /// The variables whose names begin with one of these prefixes.
    pub(crate) fn secrets(&self, prefixes: &[String]) -> SecretVariables {
        let secret = self.0.iter().filter(|(name, _)| is_secret(name, prefixes));
        SecretVariables::new(
            secret
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// The value of `name`; an empty one counts as none.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.exact(name).filter(|value| !value.is_empty())
    }

    /// The value of `name`, empty or not.
    pub(crate) fn exact(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The value of `name` if it is an absolute path; the XDG specification ignores others.
    pub(crate) fn absolute(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(self.get(name)?);
        path.is_absolute().then(|| path.to_owned())
    }

    /// All variables, for a hello message or a request.
    pub(crate) fn to_texts(&self) -> Vec<(ByteString, ByteString)> {
        let pair = |(name, value): (&OsString, &OsString)| {
            (
                ByteString::from(name.clone()),
                ByteString::from(value.clone()),
            )
        };
        self.0.iter().map(pair).collect()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for ProcessEnv {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        let owned = |(name, value): (&str, &str)| (name.into(), value.into());
        Self(pairs.into_iter().map(owned).collect())
    }
}
