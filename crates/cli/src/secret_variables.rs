//! Passes secrets to a daemon that is started on demand: in a memory file (memfd_create(2)) as its
//! standard input, and not in its environment, where every process of this user could read them as
//! long as it lives.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::Stdio;

use rustix::fs::MemfdFlags;

/// The most bytes that are passed: more than an environment can hold.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Environment variables that hold secrets.
#[derive(Clone, Default)]
pub(crate) struct SecretVariables(Vec<(OsString, OsString)>);

impl fmt::Debug for SecretVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

impl SecretVariables {
    pub(crate) const fn new(variables: Vec<(OsString, OsString)>) -> Self {
        Self(variables)
    }

    pub(crate) fn into_inner(self) -> Vec<(OsString, OsString)> {
        self.0
    }

    /// The standard input for a daemon that receives them.
    ///
    /// # Errors
    /// When the memory file cannot be created.
    pub(crate) fn to_stdin(&self) -> io::Result<Stdio> {
        if self.0.is_empty() {
            return Ok(Stdio::null());
        }
        let file = rustix::fs::memfd_create("ostler-secrets", MemfdFlags::CLOEXEC)?;
        let mut file = File::from(file);
        for (name, value) in &self.0 {
            file.write_all(&[name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat())?;
        }
        file.rewind()?;
        Ok(Stdio::from(file))
    }

    /// Reads the secrets that were passed to this process; its standard input is empty afterwards.
    pub(crate) fn from_stdin() -> Self {
        read_stdin().unwrap_or_else(|error| {
            tracing::warn!(%error, "no secrets are taken over");
            Self::default()
        })
    }
}

fn read_stdin() -> io::Result<SecretVariables> {
    let stdin = File::from(rustix::io::dup(rustix::stdio::stdin())?);
    if !stdin.metadata()?.is_file() {
        return Ok(SecretVariables::default());
    }
    let mut bytes = Vec::new();
    stdin.take(BYTES_MAX).read_to_end(&mut bytes)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(SecretVariables(parse_variables(&bytes)))
}

fn parse_variables(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    let to_os_string = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let variables = bytes.split(|&byte| byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|&byte| byte == b'=')?;
        Some((
            to_os_string(&variable[..at]),
            to_os_string(&variable[at + 1..]),
        ))
    });
    variables.collect()
}

/// Whether a variable holds a secret, by the prefix of its name.
pub(crate) fn is_secret(name: &OsStr, prefixes: &[String]) -> bool {
    let mut prefixes = prefixes.iter().filter(|prefix| !prefix.is_empty());
    prefixes.any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_they_were_written() {
        let read = parse_variables(b"A=one=1\nmore\0B=\0\xff=\xfe\0");
        let pair = |name: &[u8], value: &[u8]| {
            (
                OsString::from_vec(name.to_vec()),
                OsString::from_vec(value.to_vec()),
            )
        };
        assert_eq!(
            read,
            [
                pair(b"A", b"one=1\nmore"),
                pair(b"B", b""),
                pair(b"\xff", b"\xfe")
            ]
        );
    }

    #[test]
    fn what_is_printed_of_secrets_is_their_names() {
        let variables = SecretVariables::new(vec![("NAME".into(), "hunter2".into())]);
        let text = format!("{variables:?}");
        assert!(text.contains("NAME") && !text.contains("hunter2"), "{text}");
        assert!(is_secret(
            OsStr::new("OSTLER_SECRET_X"),
            &["OSTLER_SECRET_".to_owned()]
        ));
        assert!(!is_secret(OsStr::new("HOME"), &[String::new()]));
    }
}
