//! The attributes of serde that decide how a type looks in JSON.

use anyhow::{Result, bail};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Token};

/// The attributes of a type, variant or field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SerdeAttributes {
    pub(super) rename: Option<String>,
    pub(super) rename_all: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) untagged: bool,
    pub(super) transparent: bool,
    pub(super) deny_unknown_fields: bool,
    /// The type that it is converted from and to.
    pub(super) into: Option<String>,
    pub(super) default: bool,
    pub(super) flatten: bool,
    /// Left out of responses at times.
    pub(super) skip_serializing_if: bool,
    /// In no JSON.
    pub(super) skip: bool,
    /// The module or function that converts a field.
    pub(super) with: Option<String>,
    pub(super) deserialize_with: Option<String>,
}

impl SerdeAttributes {
    /// Those among the attributes; one that is not known here is refused, because the document
    /// could be wrong without it.
    pub(super) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut read = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("serde")) {
            attribute.parse_nested_meta(|meta| read.take(&meta))?;
        }
        if let Some(rule) = &read.rename_all
            && !["snake_case", "lowercase"].contains(&rule.as_str())
        {
            bail!("rename_all = \"{rule}\" is not known to the generator of the document");
        }
        Ok(read)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let name = meta.path.get_ident().map(ToString::to_string);
        let text = if meta.input.peek(Token![=]) {
            Some(meta.value()?.parse::<LitStr>()?.value())
        } else {
            None
        };
        match (name.as_deref().unwrap_or_default(), text) {
            ("rename", Some(text)) => self.rename = Some(text),
            ("rename_all", Some(text)) => self.rename_all = Some(text),
            ("tag", Some(text)) => self.tag = Some(text),
            ("untagged", None) => self.untagged = true,
            ("transparent", None) => self.transparent = true,
            ("deny_unknown_fields", None) => self.deny_unknown_fields = true,
            ("into" | "try_from" | "from", Some(text)) => self.into = Some(text),
            ("default", _) => self.default = true,
            ("flatten", None) => self.flatten = true,
            ("skip_serializing_if", Some(_)) => self.skip_serializing_if = true,
            ("skip", None) => self.skip = true,
            ("with", Some(text)) => self.with = Some(text),
            ("deserialize_with", Some(text)) => self.deserialize_with = Some(text),
            // Of the options of starts: another deserializer reads them from the same object.
            ("skip_deserializing", None) | ("expecting" | "remote", Some(_)) => {}
            _ => return Err(meta.error("not known to the generator of the document")),
        }
        Ok(())
    }

    /// The name in JSON of a variant of this type.
    pub(super) fn variant_name(&self, variant: &str, own: &Self) -> String {
        match (&own.rename, self.rename_all.as_deref()) {
            (Some(name), _) => name.clone(),
            (None, Some("snake_case")) => snake_case(variant),
            (None, Some("lowercase")) => variant.to_lowercase(),
            (None, _) => variant.to_owned(),
        }
    }
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_uppercase() && index > 0 {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_that_is_not_known_is_refused() {
        let item: syn::ItemStruct = syn::parse_quote! {
            #[serde(content = "c")]
            struct Test;
        };
        let error = SerdeAttributes::read(&item.attrs).unwrap_err().to_string();
        assert!(error.contains("not known"), "{error}");
    }

    #[test]
    fn variants_are_named_as_serde_names_them() {
        let container = SerdeAttributes {
            rename_all: Some("snake_case".to_owned()),
            ..SerdeAttributes::default()
        };
        let plain = SerdeAttributes::default();
        assert_eq!(container.variant_name("QuietMs", &plain), "quiet_ms");
        assert_eq!(plain.variant_name("QuietMs", &plain), "QuietMs");
        let renamed = SerdeAttributes {
            rename: Some("at_most".to_owned()),
            ..SerdeAttributes::default()
        };
        assert_eq!(container.variant_name("TimedOut", &renamed), "at_most");
    }
}
