//! Documentation comments as descriptions.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The text of the documentation, without links to items; empty where there is none. Lines of a
/// paragraph are joined.
pub(super) fn doc_text(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(doc_line);
    let mut text = String::new();
    for line in lines {
        let line = line.trim();
        if line.is_empty() {
            text.push_str("\n\n");
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push(' ');
        }
        text.push_str(line);
    }
    without_links(text.trim())
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else {
        return None;
    };
    let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = &meta.value
    else {
        return None;
    };
    meta.path.is_ident("doc").then(|| text.value())
}

/// The text with ``[`Item`](path)`` and ``[`Item`]`` as `` `Item` ``.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("[`") {
        let Some(length) = rest[start..].find("`]") else {
            break;
        };
        let end = start + length;
        plain.push_str(&rest[..start]);
        plain.push_str(&rest[start + 1..=end]);
        rest = &rest[end + 2..];
        if rest.starts_with('(')
            && let Some(close) = rest.find(')')
        {
            rest = &rest[close + 1..];
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_stay_and_links_become_names() {
        let item: syn::ItemStruct = syn::parse_quote! {
            /// One line
            /// and [`Other::name`](crate::Other::name).
            ///
            /// Also [`Third`], and `plain`.
            struct Test;
        };
        assert_eq!(
            doc_text(&item.attrs),
            "One line and `Other::name`.\n\nAlso `Third`, and `plain`."
        );
        let item: syn::ItemStruct = syn::parse_quote!(
            struct Test;
        );
        assert_eq!(doc_text(&item.attrs), "");
    }
}
