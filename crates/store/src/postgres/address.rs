//! [`PostgresAddress`]: where a server is.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

use thiserror::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Where a server of PostgreSQL is, as `postgresql://user@host:port/database`, or as the directory
/// of its socket. It has no password, and is on this machine: there is no TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    text: String,
    config: Config,
}

/// Why a text is no such address. The text is not repeated: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddressError {
    /// It is neither.
    #[error(
        "it is neither postgresql://user@host:port/database nor the directory of a socket such as \
         /run/postgresql"
    )]
    Invalid,
    /// It holds a password.
    #[error("it holds a password, which belongs into the file that history.password_file names")]
    Password,
    /// The host is another machine.
    #[error(
        "its host is not this machine: without TLS, which is not built in, only a loopback address \
         or the directory of a socket is allowed"
    )]
    Remote,
    /// It requires TLS.
    #[error("it requires TLS, which is not built in; sockets and loopback need none")]
    Tls,
}

impl PostgresAddress {
    /// The address as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresAddress").field(&self.text).finish()
    }
}

impl FromStr for PostgresAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let is_url = text.starts_with("postgresql://") || text.starts_with("postgres://");
        let config = if is_url {
            text.parse::<Config>().map_err(|_| AddressError::Invalid)?
        } else if Path::new(text).is_absolute() && !text.contains('\0') {
            let mut config = Config::new();
            config.host_path(text);
            config
        } else {
            return Err(AddressError::Invalid);
        };
        if config.get_password().is_some() {
            return Err(AddressError::Password);
        }
        if config.get_ssl_mode() == SslMode::Require {
            return Err(AddressError::Tls);
        }
        if config.get_hosts().is_empty() {
            return Err(AddressError::Invalid);
        }
        let is_local = config.get_hosts().iter().all(is_local)
            && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
        if !is_local {
            return Err(AddressError::Remote);
        }
        Ok(Self {
            text: text.to_owned(),
            config,
        })
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let name = name.trim_start_matches('[').trim_end_matches(']');
            name == "localhost"
                || name
                    .parse::<IpAddr>()
                    .is_ok_and(|address| address.to_canonical().is_loopback())
        }
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_this_machine_are_addresses() {
        for text in [
            "postgresql://ostler@127.0.0.1:5432/history",
            "postgres://ostler@localhost/history",
            "postgresql://ostler@[::1]:5433/history",
            "postgresql://ostler@%2Frun%2Fpostgresql/history",
            "postgresql:///history?host=/run/postgresql&user=ostler",
            "/run/postgresql",
        ] {
            let address: PostgresAddress = text.parse().expect(text);
            assert_eq!(address.as_str(), text);
        }
    }

    #[test]
    fn what_is_refused_is_not_repeated() {
        for (text, expected) in [
            ("postgresql://a:hunter2@127.0.0.1/h", AddressError::Password),
            (
                "postgresql://a@127.0.0.1/h?password=hunter2",
                AddressError::Password,
            ),
            (
                "postgresql://a:hunter2@db.example/h",
                AddressError::Password,
            ),
            ("postgresql://a@db.example/h", AddressError::Remote),
            ("postgresql://a@192.0.2.1/h", AddressError::Remote),
            (
                "postgresql://a@127.0.0.1,db.example/h",
                AddressError::Remote,
            ),
            (
                "postgresql://a@127.0.0.1/h?hostaddr=192.0.2.1",
                AddressError::Remote,
            ),
            (
                "postgresql://a@127.0.0.1/h?sslmode=require",
                AddressError::Tls,
            ),
            ("postgresql:///h", AddressError::Invalid),
            (
                "host=/run/postgresql password=hunter2",
                AddressError::Invalid,
            ),
            ("run/postgresql", AddressError::Invalid),
            ("mysql://a:hunter2@127.0.0.1/h", AddressError::Invalid),
        ] {
            let error = text.parse::<PostgresAddress>().expect_err(text);
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
