//! Texts with the values of secrets in them: what is published or stored of one contains neither a
//! value nor a part of one, and what is stored can be used again.
//!
//! A stored text has `[secret NAME]` in place of a value, `[secret NAME FORM]` in place of another
//! form of it, and `[secret ]` in place of a literal `[secret `.

use std::collections::HashMap;

use ostler_backend::redact::SecretFinder;
use ostler_backend::secret_form::{SecretForm, secret_forms};
use ostler_model::{ByteString, Spec};

use crate::readiness::ProbeRequest;

/// The beginning of every placeholder.
const BEGIN: &[u8] = b"[secret ";
/// The end of every placeholder.
const END: u8 = b']';
/// What a literal [`BEGIN`] is stored as: no secret has an empty name.
const LITERAL: &[u8] = b"[secret ]";

/// One secret with its value. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolvedSecret {
    /// Its name, which is also its variable's.
    pub name: String,
    /// The value, never published.
    pub value: ByteString,
}

impl std::fmt::Debug for ResolvedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secret").field(&self.name).finish()
    }
}

/// Replaces the values of secrets in texts, and puts them back.
#[derive(Debug, Default)]
pub struct SecretTexts {
    finder: Option<SecretFinder>,
    forms: Vec<PlacedForm>,
}

/// One form of a secret's value, with what takes its place.
struct PlacedForm {
    bytes: Vec<u8>,
    shown: Vec<u8>,
    stored: Vec<u8>,
}

impl std::fmt::Debug for PlacedForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.stored))
    }
}

impl SecretTexts {
    /// Those of these secrets.
    #[must_use]
    pub fn new(secrets: &[ResolvedSecret]) -> Self {
        let forms: Vec<PlacedForm> = secrets.iter().flat_map(placed_forms).collect();
        Self {
            finder: SecretFinder::from_needles(forms.iter().map(|form| form.bytes.clone())),
            forms,
        }
    }

    /// The text as it is shown: every value is `[secret NAME]`.
    #[must_use]
    pub fn redact(&self, text: &ByteString) -> ByteString {
        self.replace(text, |form| &form.shown, <[u8]>::to_vec)
    }

    /// The text as it is stored, for [`reveal`](Self::reveal).
    #[must_use]
    pub fn conceal(&self, text: &ByteString) -> ByteString {
        self.replace(text, |form| &form.stored, escape_literals)
    }

    /// The text before [`conceal`](Self::conceal).
    #[must_use]
    pub fn reveal(&self, text: &ByteString, escaping: LiteralEscaping) -> ByteString {
        if self.forms.is_empty() {
            return text.clone();
        }
        let placeholders = self.forms.iter().rev();
        let values: HashMap<&[u8], &[u8]> = placeholders
            .map(|form| (form.stored.as_slice(), form.bytes.as_slice()))
            .chain((escaping == LiteralEscaping::Escaped).then_some((LITERAL, BEGIN)))
            .collect();
        let longest = values.keys().map(|it| it.len()).max().unwrap_or_default();
        let mut revealed = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            if rest.starts_with(BEGIN)
                && let Some(end) = rest.iter().take(longest).position(|byte| *byte == END)
                && let Some(value) = values.get(&rest[..=end])
            {
                revealed.extend_from_slice(value);
                rest = &rest[end + 1..];
            } else {
                revealed.push(*first);
                rest = behind;
            }
        }
        ByteString::from(revealed)
    }

    fn replace(
        &self,
        text: &ByteString,
        placeholder: impl Fn(&PlacedForm) -> &Vec<u8>,
        literal: impl Fn(&[u8]) -> Vec<u8>,
    ) -> ByteString {
        let Some(finder) = &self.finder else {
            return text.clone();
        };
        let bytes = text.as_bytes();
        let mut replaced = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for (start, end, place) in finder.matches(bytes) {
            replaced.extend(literal(&bytes[at..start]));
            replaced.extend_from_slice(placeholder(&self.forms[place]));
            at = end;
        }
        replaced.extend(literal(&bytes[at..]));
        ByteString::from(replaced)
    }
}

/// What redacts and reveals the texts of a service's probes.
#[derive(Debug, Default)]
pub(crate) struct ProbeSecrets {
    texts: SecretTexts,
    escaping: LiteralEscaping,
    output: Option<SecretFinder>,
}

impl ProbeSecrets {
    /// Those of an execution: the values are in the order of the names in its specification.
    pub(crate) fn new(spec: &Spec, values: &[ByteString]) -> Self {
        let names = spec.env.secrets.iter().cloned();
        let secrets: Vec<ResolvedSecret> = names
            .zip(values.iter().cloned())
            .map(|(name, value)| ResolvedSecret { name, value })
            .collect();
        Self {
            texts: SecretTexts::new(&secrets),
            escaping: LiteralEscaping::of(spec),
            output: SecretFinder::new(values.iter().map(ByteString::as_bytes)),
        }
    }

    /// The probe with the values in their places.
    pub(crate) fn reveal(&self, request: ProbeRequest) -> ProbeRequest {
        let reveal = |text: &ByteString| self.texts.reveal(text, self.escaping);
        match request {
            ProbeRequest::Exec { argv } => ProbeRequest::Exec {
                argv: argv.iter().map(reveal).collect(),
            },
            ProbeRequest::Http {
                address,
                host,
                path,
                tls,
                unsure,
            } => ProbeRequest::Http {
                address,
                host: reveal(&ByteString::from(host)).to_string(),
                path: reveal(&ByteString::from(path)).to_string(),
                tls,
                unsure,
            },
            ProbeRequest::Tcp { .. } => request,
        }
    }

    /// A text of the service or of a probe, as it is shown.
    pub(crate) fn redact(&self, text: &str) -> String {
        match &self.output {
            Some(finder) => String::from_utf8_lossy(&finder.masked(text.as_bytes())).into_owned(),
            None => text.to_owned(),
        }
    }

    /// What is redacted in output.
    pub(crate) const fn finder(&self) -> Option<&SecretFinder> {
        self.output.as_ref()
    }
}

/// Whether literals in a stored text are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LiteralEscaping {
    /// They are.
    Escaped,
    /// They are not: an earlier version stored it.
    #[default]
    None,
}

impl LiteralEscaping {
    /// That of the texts of a specification and its request.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        match &spec.request {
            Some(request) if request.literals_escaped => Self::Escaped,
            Some(_) | None => Self::None,
        }
    }
}

fn placed_forms(secret: &ResolvedSecret) -> impl Iterator<Item = PlacedForm> + '_ {
    let name = &secret.name;
    let forms = secret_forms(secret.value.as_bytes()).into_iter();
    forms.map(move |(form, bytes)| {
        let shown = format!("[secret {name}]").into_bytes();
        let stored = if form == SecretForm::Value {
            shown.clone()
        } else {
            format!("[secret {name} {form}]").into_bytes()
        };
        PlacedForm {
            bytes,
            shown,
            stored,
        }
    })
}

fn escape_literals(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(BEGIN) {
            escaped.extend_from_slice(LITERAL);
            rest = behind;
        } else {
            escaped.push(*first);
            rest = behind;
        }
    }
    escaped
}
