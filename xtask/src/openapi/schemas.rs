//! Rust types as JSON schemas, as serde writes and reads them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use syn::{Attribute, Fields, GenericArgument, ItemEnum, ItemStruct, PathArguments, Type, Variant};

use super::doc_text::doc_text;
use super::parameters::texts;
use super::rust_items::{RustItems, RustType};
use super::schema_forms::{
    INTEGER_MAX, described, network_words, or_null, primitive, special_form, unsigned,
    without_null, words_schema,
};
use super::serde_attributes::SerdeAttributes;

/// Bodies that take the options of starts but some: `(body, its file, the constant with the names
/// of those)`.
const WITHOUT_OPTIONS: &[(&str, &str, &str)] = &[
    (
        "ShellStartBody",
        "crates/api/src/shell.rs",
        "NOT_FOR_SHELLS",
    ),
    (
        "ContextRequestBody",
        "crates/api/src/context.rs",
        "NOT_FOR_CONTEXTS",
    ),
];

/// Fields of events and their names in an entry of the audit log (`api::audit::entry_event`).
const ENTRY_EVENT_FIELDS: [(&str, &str); 2] = [("by", "event_by"), ("detail", "event_detail")];

/// What a schema is for. In requests, a field of type `Option` may be absent or null; a response
/// has it unless serde skips it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

/// The schemas of named types so far. Those of requests are to be added first: a type of both
/// directions has the schema of requests, which is the wider one.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    items: &'a RustItems,
    components: BTreeMap<String, Value>,
}

/// The fields of an object.
#[derive(Debug, Default)]
struct ObjectFields {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Schemas that the object must match, too: those of flattened enumerations.
    choices: Vec<Value>,
    /// Whether other fields are refused.
    closed: bool,
}

impl ObjectFields {
    /// Renames fields of flattened enumerations.
    fn rename(&mut self, names: &[(&str, &str)]) {
        let variants = self.choices.iter_mut();
        let variants = variants.filter_map(|it| it.get_mut("oneOf")?.as_array_mut());
        for variant in variants.flatten() {
            for (from, to) in names {
                rename_property(variant, from, to);
            }
        }
    }
}

/// Renames a property of the schema of an object, where it has it.
fn rename_property(schema: &mut Value, from: &str, to: &str) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(properties) = properties
        && let Some(property) = properties.remove(from)
    {
        properties.insert(to.to_owned(), property);
    }
    let required = schema.get_mut("required").and_then(Value::as_array_mut);
    for name in required.into_iter().flatten() {
        if name.as_str() == Some(from) {
            *name = to.into();
        }
    }
}

impl<'a> Schemas<'a> {
    pub(super) const fn new(items: &'a RustItems) -> Self {
        Self {
            items,
            components: BTreeMap::new(),
        }
    }

    /// The schemas, by the names of their types.
    pub(super) fn into_components(self) -> BTreeMap<String, Value> {
        self.components
    }

    /// The schema of a type; named types are references to components.
    pub(super) fn of(&mut self, found: &Type, direction: Direction) -> Result<Value> {
        match found {
            Type::Reference(it) => self.of(&it.elem, direction),
            Type::Tuple(it) => {
                let items = it.elems.iter().map(|item| self.of(item, direction));
                let items = items.collect::<Result<Vec<_>>>()?;
                let count = items.len();
                Ok(json!({
                    "type": "array", "prefixItems": items, "minItems": count, "maxItems": count
                }))
            }
            Type::Path(it) => {
                let segment = it.path.segments.last().context("a type without a name")?;
                let arguments = type_arguments(&segment.arguments);
                self.of_path(&segment.ident.to_string(), &arguments, direction)
            }
            Type::Verbatim(_) | _ => bail!("a type of this form has no schema"),
        }
    }

    fn of_path(&mut self, name: &str, of: &[&Type], direction: Direction) -> Result<Value> {
        if let Some(schema) = primitive(name) {
            return Ok(schema);
        }
        match (name, of) {
            ("Box" | "Arc", [inner]) => self.of(inner, direction),
            ("Option", [inner]) => Ok(or_null(self.of(inner, direction)?)),
            ("Vec" | "BTreeSet", [item]) => {
                Ok(json!({"type": "array", "items": self.of(item, direction)?}))
            }
            ("BTreeMap" | "Map", [_, value]) => {
                Ok(json!({"type": "object", "additionalProperties": self.of(value, direction)?}))
            }
            (name, []) => self.reference(name, direction),
            _ => bail!("the generic type {name} has no schema"),
        }
    }

    /// A reference to the component of this name, which is made if there is none.
    pub(super) fn reference(&mut self, name: &str, direction: Direction) -> Result<Value> {
        if !self.components.contains_key(name) {
            // Holds the place: a type may contain itself.
            self.components.insert(name.to_owned(), Value::Null);
            let schema = match special_form(name) {
                Some(schema) => schema,
                None => self.named(name, direction, false)?,
            };
            self.components.insert(name.to_owned(), schema);
        }
        Ok(json!({"$ref": format!("#/components/schemas/{name}")}))
    }

    /// Replaces a schema by one that says more.
    pub(super) fn restrict(&mut self, name: &str, mut schema: Value) {
        if let Some(known) = self.components.get_mut(name) {
            if let Some(text) = known.get("description") {
                schema["description"] = text.clone();
            }
            *known = schema;
        }
    }

    /// Whether an object with no fields does not match a schema.
    pub(super) fn has_required_fields(&self, schema: &Value) -> bool {
        let name = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next());
        let known = name.and_then(|name| self.components.get(name));
        known.unwrap_or(schema).get("required").is_some()
    }

    /// The schema of a type of the workspace; `closed` refuses unknown fields in any case.
    fn named(&mut self, name: &str, direction: Direction, closed: bool) -> Result<Value> {
        let found = self.items.type_named(name)?;
        let attributes = match found {
            RustType::Struct(it) => &it.attrs,
            RustType::Enum(it) => &it.attrs,
        };
        if !is_serialized(attributes) {
            bail!("{name} derives neither direction of serde: say in special_form how it looks");
        }
        let schema = match found {
            RustType::Struct(it) => self.of_struct(it, direction, closed),
            RustType::Enum(it) => self.of_enum(it, direction, closed),
        };
        let schema = schema.with_context(|| format!("in {name}"))?;
        Ok(described(schema, &doc_text(attributes)))
    }

    fn of_struct(&mut self, it: &ItemStruct, direction: Direction, closed: bool) -> Result<Value> {
        let serde = SerdeAttributes::read(&it.attrs)?;
        if let Some(into) = &serde.into {
            return self.of(&syn::parse_str(into)?, direction);
        }
        if let Fields::Unnamed(fields) = &it.fields {
            let [field] = fields.unnamed.iter().collect::<Vec<_>>()[..] else {
                bail!("a structure of several unnamed fields");
            };
            return self.of_field(field, direction);
        }
        let mut object = self.fields(&it.fields, direction)?;
        object.closed |= serde.deny_unknown_fields || closed;
        let name = it.ident.to_string();
        for (_, place, list) in WITHOUT_OPTIONS.iter().filter(|(body, ..)| *body == name) {
            let (place, names) = self.items.constant(place, list)?;
            for option in texts(self.items, place, names)? {
                object.properties.remove(&option);
            }
        }
        Ok(object.into_schema())
    }

    fn fields(&mut self, fields: &Fields, direction: Direction) -> Result<ObjectFields> {
        let mut object = ObjectFields::default();
        let mut flattened = Vec::new();
        for field in fields {
            let serde = SerdeAttributes::read(&field.attrs)?;
            let ident = field.ident.as_ref().context("a field without a name")?;
            if serde.skip {
                continue;
            }
            if serde.flatten {
                let mut other = self.flattened(&field.ty, direction)?;
                match serde.with.as_deref() {
                    None => {}
                    Some("entry_event") => other.rename(&ENTRY_EVENT_FIELDS),
                    Some(with) => bail!("how '{with}' flattens the field is not known"),
                }
                flattened.push(other);
                continue;
            }
            let name = serde.rename.clone().unwrap_or_else(|| ident.to_string());
            let name = name.trim_start_matches("r#").to_owned();
            let schema = self.of_field(field, direction);
            let mut schema = schema.with_context(|| format!("in field {name}"))?;
            let option = option_of(&field.ty);
            if option.is_some() && direction == Direction::Response && serde.skip_serializing_if {
                schema = without_null(schema);
            }
            let optional = serde.default
                || serde.skip_serializing_if
                || (option.is_some() && direction == Direction::Request);
            if !optional {
                object.required.push(name.clone());
            }
            let schema = described(schema, &doc_text(&field.attrs));
            object.properties.insert(name, schema);
        }
        object.closed = !flattened.is_empty() && flattened.iter().all(|it| it.closed);
        for other in flattened {
            object.merge(other);
        }
        Ok(object)
    }

    /// The fields of a type whose fields stand in another's object.
    fn flattened(&mut self, found: &Type, direction: Direction) -> Result<ObjectFields> {
        let Type::Path(path) = found else {
            bail!("a flattened field must have a named type");
        };
        let segment = path.path.segments.last().context("a type without a name")?;
        let name = segment.ident.to_string();
        if ["Map", "BTreeMap"].contains(&name.as_str()) {
            return Ok(ObjectFields::default());
        }
        if let ("Box", [inner]) = (name.as_str(), &type_arguments(&segment.arguments)[..]) {
            return self.flattened(inner, direction);
        }
        if let Some(inner) = option_of(found) {
            let mut object = self.flattened(inner, direction)?;
            object.required.clear();
            return Ok(object);
        }
        match self.items.type_named(&name)? {
            RustType::Struct(it) => {
                let mut object = self.fields(&it.fields, direction)?;
                object.closed |= SerdeAttributes::read(&it.attrs)?.deny_unknown_fields;
                Ok(object)
            }
            RustType::Enum(it) => self.flattened_enum(it, direction),
        }
    }

    /// The variants of an enumeration as choices of an object.
    fn flattened_enum(&mut self, it: &ItemEnum, direction: Direction) -> Result<ObjectFields> {
        let schema = self.of_enum(it, direction, false)?;
        Ok(ObjectFields {
            choices: vec![schema],
            ..ObjectFields::default()
        })
    }

    fn of_field(&mut self, field: &syn::Field, direction: Direction) -> Result<Value> {
        let serde = SerdeAttributes::read(&field.attrs)?;
        let conversion = serde.with.as_ref().or(serde.deserialize_with.as_ref());
        let Some(conversion) = conversion else {
            return self.of(&field.ty, direction);
        };
        match conversion.as_str() {
            "optional_millis" => Ok(or_null(unsigned(INTEGER_MAX))),
            "whole_millis" => Ok(unsigned(INTEGER_MAX)),
            "network_words" => Ok(network_words()),
            "optional_network" => Ok(or_null(network_words())),
            "port_words" => Ok(json!({"type": "array", "items": {"type": "string"}})),
            "signal" => Ok(json!({"anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 64}, {"type": "string"}
            ]})),
            "capabilities" => self.of(&field.ty, direction),
            strict if strict.starts_with("strict::") => self.closed(&field.ty, direction),
            other => bail!("how '{other}' converts the field is not known to the generator"),
        }
    }

    /// The schema of a named type, in place, which refuses unknown fields.
    fn closed(&mut self, found: &Type, direction: Direction) -> Result<Value> {
        if let Some(inner) = option_of(found) {
            return Ok(or_null(self.closed(inner, direction)?));
        }
        let Type::Path(path) = found else {
            bail!("only a named type can refuse unknown fields");
        };
        let segment = path.path.segments.last().context("a type without a name")?;
        self.named(&segment.ident.to_string(), direction, true)
    }

    fn of_enum(&mut self, it: &ItemEnum, direction: Direction, closed: bool) -> Result<Value> {
        let serde = SerdeAttributes::read(&it.attrs)?;
        if let Some(into) = &serde.into {
            return self.of(&syn::parse_str(into)?, direction);
        }
        let closed = closed || serde.deny_unknown_fields;
        let mut words = Vec::new();
        let mut choices = Vec::new();
        for variant in &it.variants {
            let own = SerdeAttributes::read(&variant.attrs)?;
            if own.skip {
                continue;
            }
            let name = serde.variant_name(&variant.ident.to_string(), &own);
            let doc = doc_text(&variant.attrs);
            if serde.tag.is_none() && !serde.untagged && matches!(variant.fields, Fields::Unit) {
                words.push((name, doc));
                continue;
            }
            let choice = self.variant(&serde, variant, &name, direction, closed);
            let choice = choice.with_context(|| format!("in variant {name}"))?;
            choices.push(described(choice, &doc));
        }
        if !words.is_empty() {
            choices.insert(0, words_schema(&words));
        }
        Ok(match (choices.len(), serde.untagged) {
            (1, _) => choices.remove(0),
            (_, true) => json!({"anyOf": choices}),
            (_, false) => json!({"oneOf": choices}),
        })
    }

    fn variant(
        &mut self,
        serde: &SerdeAttributes,
        variant: &Variant,
        name: &str,
        direction: Direction,
        closed: bool,
    ) -> Result<Value> {
        if let Some(tag) = &serde.tag {
            let mut object = self.variant_fields(variant, direction)?;
            object.closed |= closed;
            object
                .properties
                .insert(tag.clone(), json!({"const": name}));
            object.required.insert(0, tag.clone());
            return Ok(object.into_schema());
        }
        let content = match &variant.fields {
            Fields::Unit => json!({"type": "null"}),
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                let field = fields.unnamed.first().context("a field")?;
                self.of_field(field, direction)?
            }
            Fields::Unnamed(_) => bail!("a variant of several unnamed fields"),
            Fields::Named(_) => {
                let mut object = self.fields(&variant.fields, direction)?;
                object.closed |= closed;
                object.into_schema()
            }
        };
        if serde.untagged {
            return Ok(content);
        }
        Ok(json!({
            "type": "object", "properties": {name: content}, "required": [name],
            "additionalProperties": false,
        }))
    }

    /// The fields beside the tag of a variant.
    fn variant_fields(&mut self, variant: &Variant, direction: Direction) -> Result<ObjectFields> {
        match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                let field = fields.unnamed.first().context("a field")?;
                self.flattened(&field.ty, direction)
            }
            Fields::Unnamed(_) => bail!("a variant of several unnamed fields"),
            fields @ (Fields::Named(_) | Fields::Unit) => self.fields(fields, direction),
        }
    }
}

impl ObjectFields {
    fn merge(&mut self, other: Self) {
        self.properties.extend(other.properties);
        self.required.extend(other.required);
        self.choices.extend(other.choices);
    }

    fn into_schema(self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        if !self.choices.is_empty() {
            schema["allOf"] = self.choices.into();
        } else if self.closed {
            schema["additionalProperties"] = false.into();
        }
        schema
    }
}

/// The type in an `Option`.
fn option_of(found: &Type) -> Option<&Type> {
    let Type::Path(path) = found else {
        return None;
    };
    let segment = path.path.segments.last()?;
    if segment.ident != "Option" {
        return None;
    }
    type_arguments(&segment.arguments).first().copied()
}

pub(super) fn type_arguments(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return Vec::new();
    };
    let types = arguments.args.iter().filter_map(|argument| {
        if let GenericArgument::Type(found) = argument {
            Some(found)
        } else {
            None
        }
    });
    types.collect()
}

/// Whether serde is derived in one of the directions.
fn is_serialized(attributes: &[Attribute]) -> bool {
    let mut is_derived = false;
    for attribute in attributes.iter().filter(|it| it.path().is_ident("derive")) {
        // What stands in the list is read as far as it is understood.
        let _rest = attribute.parse_nested_meta(|meta| {
            is_derived |= meta.path.is_ident("Serialize") || meta.path.is_ident("Deserialize");
            Ok(())
        });
    }
    is_derived
}
