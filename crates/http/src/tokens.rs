//! Bearer tokens for TCP, stored as hashes in two small files. The second holds those whose scopes
//! name projects: earlier versions do not know them, and refuse a file in which they do not know a
//! word. They do not read the second one, and go on with the first.
//!
//! A file is written as a whole to a temporary file and renamed, under a lock, so that a running
//! daemon sees every change with its next request and never half of one. While
//! [`TokenStore::watch_changes`] runs, it sees them at once: what a token opened ends with it.

mod browser;
mod last_use;
mod scope;
mod token_file;
mod validity;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_interface::project_access::ProjectAccess;
use ostler_model::owner::Principal;
use ostler_model::{ErrorCode, Timestamp, lower_hex, visible};
use ostler_sys::file_lock::FileLock;
use ostler_sys::file_watch::FileWatch;
use ostler_sys::open_files;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};
use thiserror::Error;
use tokio::sync::watch;

use self::last_use::LastUseFile;
pub use self::scope::{ProjectName, SCOPE_FORMS, SCOPES, ScopeError, TokenScope, check_scopes};
use self::token_file::{StoredToken, TokenFile, TokenFileStamp};
pub(crate) use self::validity::{TokenEnd, TokenValidity};
use crate::random_text::random_text;

/// Random bytes of a token.
const SECRET_BYTES: usize = 32;
/// The prefix of every token, by which people and secret scanners recognise one.
pub(crate) const TOKEN_PREFIX: &str = "ostler_";
/// The longest token that is compared.
const MAX_SECRET_BYTES: usize = 512;
/// The longest name, in bytes.
const NAME_BYTES: usize = 64;
/// The longest name of a principal, in bytes.
const PRINCIPAL_BYTES: usize = 64;
/// The most tokens in one file; each request is compared with all of them.
const TOKENS: usize = 1_000;
const HASH_BYTES: usize = 32;
/// How many digits of a hash identify a token.
const KEY_CHARS: usize = 16;
/// The extension of the file of tokens that name projects.
const OF_PROJECTS_EXTENSION: &str = "projects.json";
/// The suffix of the file of last uses.
const LAST_USE_SUFFIX: &str = ".used";

/// One token, without its secret, which only its holder has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessToken {
    /// A unique name for people.
    pub name: String,
    /// The SHA-256 of its secret, in hexadecimal digits.
    sha256: String,
    /// The principal it authenticates.
    pub principal: Principal,
    /// Additional permissions.
    pub scopes: Vec<TokenScope>,
    /// When it was created.
    pub created: Timestamp,
    /// From when on it is refused; none for one that does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// What the tokens of a store say of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenMatch {
    /// It is that of this token.
    Valid(AccessToken),
    /// It is that of a token that has expired.
    Expired,
    /// It is that of no token.
    Unknown,
}

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// A unique name for people.
    pub name: String,
    /// The principal it authenticates.
    pub principal: Principal,
    /// Additional permissions.
    pub scopes: Vec<TokenScope>,
    /// From when on it is refused; none for one that does not expire.
    pub expires: Option<Timestamp>,
}

/// A token's secret, available once. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

/// The tokens of one state directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TokenStore(Arc<TokenStoreInner>);

#[derive(Debug)]
struct TokenStoreInner {
    /// The tokens that every version understands.
    plain: TokenFile,
    /// Those whose scopes name projects.
    of_projects: TokenFile,
    /// The stamps of the files that were read last; none where there was none.
    loaded: Mutex<[Option<TokenFileStamp>; 2]>,
    /// Their content.
    tokens: watch::Sender<Arc<[AccessToken]>>,
    last_use: LastUseFile,
}

/// Why tokens cannot be read or changed.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("{path} cannot be {what}: {source}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// The file's path.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file has another format.
    #[error("{path} is no list of tokens: {source}")]
    Format {
        /// The file's path.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// Another user could have written the file at this path.
    #[error("{0} can be written by others, so its tokens do not count")]
    Exposed(PathBuf),
    /// A token with this name exists.
    #[error("there is a token '{0}' already")]
    NameTaken(String),
    /// No token has this name.
    #[error("there is no token '{0}'")]
    Unknown(String),
    /// The name has characters that are not allowed, or is too long.
    #[error("'{0}' cannot name a token; allowed: 1 to {NAME_BYTES} letters, digits, '.', '_', '-'")]
    Name(String),
    /// The scopes do not go together.
    #[error(transparent)]
    Scopes(#[from] ScopeError),
    /// There are too many tokens.
    #[error("there are {TOKENS} tokens, which is the most there can be")]
    Full,
}

impl TokenError {
    /// The code of the error for clients.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Io { .. } | Self::Format { .. } => ErrorCode::Storage,
            Self::Exposed(_) => ErrorCode::Security,
            Self::NameTaken(_) | Self::Unknown(_) | Self::Name(_) | Self::Scopes(_) => {
                ErrorCode::Value
            }
            Self::Full => ErrorCode::QuotaExceeded,
        }
    }
}

impl TokenSecret {
    fn random() -> io::Result<Self> {
        let random = random_text::<SECRET_BYTES>()?;
        Ok(Self(format!("{TOKEN_PREFIX}{random}")))
    }

    /// The secret itself, to be shown to its holder only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl AccessToken {
    /// Whether it has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Identifies it, also when its name is used again. The secret cannot be found by it.
    fn key(&self) -> &str {
        self.sha256.get(..KEY_CHARS).unwrap_or(&self.sha256)
    }

    /// What it permits in projects.
    pub(crate) fn project_access(&self) -> ProjectAccess {
        scope::project_access(&self.scopes)
    }

    fn matches(&self, hash: &[u8; HASH_BYTES]) -> Choice {
        self.sha256.as_bytes().ct_eq(lower_hex(hash).as_bytes())
    }
}

impl TokenStore {
    /// The store in this file and the one of tokens that name projects beside it; neither needs to
    /// exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self(Arc::new(TokenStoreInner {
            last_use: LastUseFile::new(with_suffix(&path, LAST_USE_SUFFIX)),
            of_projects: TokenFile {
                path: path.with_extension(OF_PROJECTS_EXTENSION),
            },
            plain: TokenFile { path },
            loaded: Mutex::default(),
            tokens: watch::Sender::default(),
        }))
    }

    /// The token with this secret, whose use is recorded. It is compared with every token in
    /// constant time, so the time taken reveals nothing.
    ///
    /// # Errors
    /// When the file cannot be read; then no token is accepted.
    pub fn find(&self, secret: &str) -> Result<TokenMatch, TokenError> {
        let tokens = self.tokens()?;
        if secret.len() > MAX_SECRET_BYTES {
            return Ok(TokenMatch::Unknown);
        }
        let hash = sha256(secret);
        let mut matched = None;
        for token in tokens.iter() {
            if bool::from(token.matches(&hash)) {
                matched = Some(token.clone());
            }
        }
        let now = Timestamp::now();
        Ok(match matched {
            Some(token) if token.is_expired(now) => TokenMatch::Expired,
            Some(token) => {
                self.0.last_use.record(&token, &tokens, now);
                TokenMatch::Valid(token)
            }
            None => TokenMatch::Unknown,
        })
    }

    /// When this token was last used, to a minute; none for one that was not.
    #[must_use]
    pub fn last_use(&self, token: &AccessToken) -> Option<Timestamp> {
        self.0.last_use.read().get(token.key()).copied()
    }

    /// Every token, oldest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self) -> Result<Vec<AccessToken>, TokenError> {
        Ok(self.tokens()?.to_vec())
    }

    /// The names of tokens that this version does not understand; nobody gets in with them.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn list_unknown(&self) -> Result<Vec<String>, TokenError> {
        let mut names = Vec::new();
        for file in self.files() {
            let tokens = file.read()?.into_iter();
            let unknown = tokens.filter(|token| matches!(token, StoredToken::Unknown(_)));
            names.extend(unknown.map(|token| visible(token.name()).into_owned()));
        }
        Ok(names)
    }

    /// Creates a token. Its secret is not stored.
    ///
    /// # Errors
    /// When the name is taken or invalid, or a file cannot be written.
    pub fn create(&self, new: NewToken) -> Result<TokenSecret, TokenError> {
        let NewToken {
            name,
            principal,
            scopes,
            expires,
        } = new;
        if !is_name(&name) {
            return Err(TokenError::Name(clip_name(&name)));
        }
        let scopes = scope::with_linked_directories(scopes);
        check_scopes(&scopes)?;
        let _lock = self.lock()?;
        let (plain, of_projects) = (self.0.plain.read()?, self.0.of_projects.read()?);
        if plain.iter().chain(&of_projects).any(|it| it.name() == name) {
            return Err(TokenError::NameTaken(name));
        }
        if plain.len() + of_projects.len() >= TOKENS {
            return Err(TokenError::Full);
        }
        let secret = TokenSecret::random().map_err(|error| self.0.plain.io("made", error))?;
        let names_project = scopes.iter().any(|scope| scope.project().is_some());
        let (file, mut tokens) = if names_project {
            (&self.0.of_projects, of_projects)
        } else {
            (&self.0.plain, plain)
        };
        tokens.push(StoredToken::Known(AccessToken {
            name,
            sha256: lower_hex(&sha256(secret.reveal())),
            principal,
            scopes,
            created: Timestamp::now(),
            expires,
        }));
        file.write(&tokens)?;
        Ok(secret)
    }

    /// Revokes a token: its holder is rejected from the next request on, and what it opened ends
    /// where [`Self::watch_changes`] runs.
    ///
    /// # Errors
    /// When no token has this name, or a file cannot be written.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let _lock = self.lock()?;
        let mut is_known = false;
        for file in self.files() {
            let mut tokens = file.read()?;
            let before = tokens.len();
            tokens.retain(|token| token.name() != name);
            if tokens.len() < before {
                is_known = true;
                file.write(&tokens)?;
            }
        }
        if is_known {
            return Ok(());
        }
        Err(TokenError::Unknown(clip_name(name)))
    }

    /// Follows the files until their directory is gone, so that what a token opened ends once it is
    /// revoked. Without it, that is noticed with the next request of anybody.
    pub async fn watch_changes(&self) {
        let watch = |file: &TokenFile| FileWatch::new(&file.path).map(Box::new);
        let watches = watch(&self.0.plain).and_then(|it| Ok((it, watch(&self.0.of_projects)?)));
        let (mut plain, mut of_projects) = match watches {
            Ok(watches) => watches,
            Err(error) => {
                return tracing::warn!(%error, "what a revoked token opened ends late");
            }
        };
        loop {
            // A file that cannot be read says nothing of tokens; no request is let in meanwhile.
            if let Err(error) = open_files::wait_for(|| self.read_unless_exhausted()).await {
                tracing::error!(%error, "changes of tokens are not seen");
            }
            let changed = tokio::select! {
                changed = plain.changed() => changed,
                changed = of_projects.changed() => changed,
            };
            if let Err(error) = changed {
                return tracing::warn!(%error, "tokens are not watched any more");
            }
        }
    }

    /// Reads the file; none while there are no free descriptors.
    fn read_unless_exhausted(&self) -> Option<Result<(), TokenError>> {
        match self.tokens() {
            Err(TokenError::Io { source, .. }) if open_files::is_exhausted_io(&source) => None,
            read => Some(read.map(drop)),
        }
    }

    /// How long this token, one of the store's, is valid.
    pub(crate) fn validity(&self, token: AccessToken) -> TokenValidity {
        TokenValidity::new(token, self.0.tokens.subscribe())
    }

    fn files(&self) -> [&TokenFile; 2] {
        [&self.0.plain, &self.0.of_projects]
    }

    /// The content of the files; read again only when one has changed.
    fn tokens(&self) -> Result<Arc<[AccessToken]>, TokenError> {
        let mut loaded = self.0.loaded.lock();
        let stamps = [self.0.plain.stamp()?, self.0.of_projects.stamp()?];
        if *loaded != stamps {
            let mut tokens = Vec::new();
            for file in self.files() {
                tokens.extend(known_tokens(file)?);
            }
            tokens.sort_by_key(|token| token.created);
            *loaded = stamps;
            self.0.tokens.send_replace(tokens.into());
        }
        Ok(Arc::clone(&self.0.tokens.borrow()))
    }

    /// Takes the lock of writers.
    fn lock(&self) -> Result<FileLock, TokenError> {
        let lock = FileLock::acquire(&with_suffix(&self.0.plain.path, ".lock"));
        lock.map_err(|error| self.0.plain.io("locked", error))
    }
}

fn known_tokens(file: &TokenFile) -> Result<Vec<AccessToken>, TokenError> {
    let stored = file.read()?;
    let count = stored.len();
    let known: Vec<_> = stored
        .into_iter()
        .filter_map(StoredToken::into_known)
        .collect();
    if known.len() < count {
        let (unknown, path) = (count - known.len(), file.path.display());
        tracing::warn!(unknown, %path, "tokens that a newer version made let nobody in");
    }
    Ok(known)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The principal of this name, apart from users of the machine.
///
/// # Errors
/// Which names are allowed.
pub fn token_principal(name: &str) -> Result<Principal, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@-".contains(&byte);
    if (1..=PRINCIPAL_BYTES).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(Principal(format!("token:{name}")));
    }
    Err(format!(
        "allowed: 1 to {PRINCIPAL_BYTES} letters, digits, '.', '_', '@', '-'"
    ))
}

/// A name in a message, or the beginning of one that is too long.
fn clip_name(name: &str) -> String {
    match name.char_indices().nth(NAME_BYTES) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(plain)
}

fn sha256(text: &str) -> [u8; HASH_BYTES] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn new(name: &str) -> NewToken {
        NewToken {
            name: name.to_owned(),
            principal: Principal::unix(7),
            scopes: vec![TokenScope::SessionsAll],
            expires: None,
        }
    }

    fn name_of(found: TokenMatch) -> Option<String> {
        match found {
            TokenMatch::Valid(token) => Some(token.name),
            TokenMatch::Expired | TokenMatch::Unknown => None,
        }
    }

    fn store() -> (tempfile::TempDir, TokenStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::new(dir.path().join("tokens.json"));
        (dir, store)
    }

    #[test]
    fn a_token_is_known_by_its_secret_and_kept_as_a_hash() {
        let (dir, store) = store();
        let secret = store.create(new("one")).unwrap();
        let other = store.create(new("two")).unwrap();
        assert_ne!(secret, other);
        let name = |secret: &str| name_of(store.find(secret).unwrap());
        assert_eq!(name(secret.reveal()).as_deref(), Some("one"));
        assert_eq!(name(other.reveal()).as_deref(), Some("two"));
        assert_eq!(store.find("ostler_").unwrap(), TokenMatch::Unknown);
        let long = "x".repeat(MAX_SECRET_BYTES + 1);
        assert_eq!(store.find(&long).unwrap(), TokenMatch::Unknown);
        let path = dir.path().join("tokens.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains(secret.reveal()) && text.contains("sessions:all"),
            "{text}"
        );
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }

    #[test]
    fn what_another_process_changes_counts_at_once() {
        let (dir, daemon) = store();
        let person = TokenStore::new(dir.path().join("tokens.json"));
        let secret = person.create(new("one")).unwrap();
        assert!(name_of(daemon.find(secret.reveal()).unwrap()).is_some());
        person.revoke("one").unwrap();
        let unknown = TokenMatch::Unknown;
        assert_eq!(daemon.find(secret.reveal()).unwrap(), unknown);
        assert!(matches!(person.revoke("one"), Err(TokenError::Unknown(_))));
    }

    #[test]
    fn an_expired_token_is_refused_and_said_to_be_expired() {
        let (_dir, store) = store();
        let create = |name: &str, seconds: i64| {
            let expires = Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
            let expires = Some(expires);
            store
                .create(NewToken {
                    expires,
                    ..new(name)
                })
                .unwrap()
        };
        let (valid, expired) = (create("valid", 3_600), create("expired", -1));
        assert!(name_of(store.find(valid.reveal()).unwrap()).is_some());
        assert_eq!(store.find(expired.reveal()).unwrap(), TokenMatch::Expired);
    }

    #[test]
    fn the_last_use_is_recorded_to_a_minute_and_forgotten_with_the_token() {
        let (dir, store) = store();
        let secret = store.create(new("one")).unwrap();
        let token = store.list().unwrap().remove(0);
        assert_eq!(store.last_use(&token), None);
        let before = Timestamp::now();
        store.find(secret.reveal()).unwrap();
        let used = store.last_use(&token).unwrap();
        assert!(used >= before);
        store.find(secret.reveal()).unwrap();
        assert_eq!(store.last_use(&token), Some(used));
        store.revoke("one").unwrap();
        let again = store.create(new("one")).unwrap();
        let token = store.list().unwrap().remove(0);
        assert_eq!(store.last_use(&token), None);
        store.find(again.reveal()).unwrap();
        let text = fs::read_to_string(dir.path().join("tokens.json.used")).unwrap();
        let recorded: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(recorded.as_object().unwrap().len(), 1, "{text}");
    }

    fn of_project(name: &str) -> NewToken {
        NewToken {
            scopes: vec!["project:read=/a".parse().unwrap()],
            ..new(name)
        }
    }

    #[test]
    fn a_token_that_names_projects_is_in_a_file_that_earlier_versions_do_not_read() {
        let (dir, store) = store();
        let plain = store.create(new("plain")).unwrap();
        let limited = store.create(of_project("limited")).unwrap();
        let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(!text("tokens.json").contains("limited"));
        assert!(text("tokens.projects.json").contains("project:read=/a"));
        for (name, secret) in [("plain", &plain), ("limited", &limited)] {
            let found = store.find(secret.reveal()).unwrap();
            assert_eq!(name_of(found).as_deref(), Some(name));
            let again = store.create(of_project(name));
            assert!(matches!(again, Err(TokenError::NameTaken(_))), "{name}");
        }
        let names = store.list().unwrap().into_iter().map(|token| token.name);
        assert_eq!(names.collect::<Vec<_>>(), ["plain", "limited"]);
        store.revoke("limited").unwrap();
        let unknown = TokenMatch::Unknown;
        assert_eq!(store.find(limited.reveal()).unwrap(), unknown);
        assert!(name_of(store.find(plain.reveal()).unwrap()).is_some());
    }

    #[test]
    fn a_token_of_a_newer_version_lets_nobody_in_and_is_kept() {
        let (dir, store) = store();
        let (known, newer) = (
            store.create(new("known")).unwrap(),
            store.create(new("newer")).unwrap(),
        );
        let path = dir.path().join("tokens.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut tokens: serde_json::Value = serde_json::from_str(&text).unwrap();
        tokens[1]["scopes"] = serde_json::json!(["moon:walk"]);
        fs::write(&path, tokens.to_string()).unwrap();
        let unknown = TokenMatch::Unknown;
        assert_eq!(store.find(newer.reveal()).unwrap(), unknown);
        assert!(name_of(store.find(known.reveal()).unwrap()).is_some());
        assert_eq!(store.list_unknown().unwrap(), ["newer"]);
        assert!(matches!(
            store.create(new("newer")),
            Err(TokenError::NameTaken(_))
        ));
        store.create(new("third")).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("moon:walk"));
        store.revoke("newer").unwrap();
        assert!(store.list_unknown().unwrap().is_empty());
        assert_eq!(store.list().unwrap().len(), 2);
    }

    #[test]
    fn names_are_plain_and_unique() {
        let (_dir, store) = store();
        store.create(new("a.b_c-1")).unwrap();
        assert!(matches!(
            store.create(new("a.b_c-1")),
            Err(TokenError::NameTaken(_))
        ));
        let long = "x".repeat(NAME_BYTES + 1);
        for name in ["", "a b", "ä", long.as_str()] {
            assert!(
                matches!(store.create(new(name)), Err(TokenError::Name(_))),
                "{name}"
            );
        }
    }

    #[test]
    fn a_file_others_can_write_grants_no_access() {
        let (dir, store) = store();
        let secret = store.create(new("one")).unwrap();
        let path = dir.path().join("tokens.json");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(matches!(
            store.find(secret.reveal()),
            Err(TokenError::Exposed(_))
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "{}").unwrap();
        assert!(matches!(
            store.find(secret.reveal()),
            Err(TokenError::Format { .. })
        ));
    }
}
