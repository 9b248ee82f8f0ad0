//! What is needed to connect.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::address::PostgresAddress;

/// The longest name of PostgreSQL, in bytes.
const NAME_BYTES: usize = 63;

/// Where the history of a ledger is.
#[derive(Debug, Clone)]
pub struct PostgresSettings {
    /// The server and the database.
    pub address: PostgresAddress,
    /// The schema of the tables; made where it is missing.
    pub schema: SchemaName,
    /// The identity of the ledger: several share the tables, each with rows of its own. The same
    /// as long as the ledger exists, and that of no other.
    pub ledger: String,
    /// The password, where the server asks for one.
    pub password: Option<Arc<dyn PasswordSource>>,
}

/// Knows a password. It is asked for each connection.
pub trait PasswordSource: fmt::Debug + Send + Sync {
    /// The password.
    ///
    /// # Errors
    /// Why there is none, without any part of it.
    fn password(&self) -> Result<Vec<u8>, String>;
}

/// The name of a schema: small letters, digits and underscores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaName(String);

impl SchemaName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SchemaName {
    /// It is no such name.
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let fits = text.len() <= NAME_BYTES
            && text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && text.bytes().all(is_part)
            && !text.starts_with("pg_")
            && text != "information_schema";
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quotes_and_are_not_the_servers_own() {
        for name in ["ostler", "_a1", "public"] {
            assert!(name.parse::<SchemaName>().is_ok(), "{name}");
        }
        for name in ["", "1a", "A", "a-b", "a\"b", "pg_x", &"a".repeat(64)] {
            assert!(name.parse::<SchemaName>().is_err(), "{name}");
        }
    }
}
