//! Request bodies whose fields are those of two structures: the body's own, and the
//! [`StartOptions`] that all starts share. Unknown fields are refused, and errors name their place,
//! as in a structure with all these fields.
//!
//! `#[serde(flatten)]` can do neither: it takes unknown fields for the other part's, and reads
//! values into a buffer, where their path is lost.

use std::fmt;

use ostler_model::StartOptions;
use serde::de::value::{Error as NoError, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

/// How the options stand in a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OptionsPlace {
    /// The field after which messages list them.
    pub(crate) after: &'static str,
    /// Options that this body does not take.
    pub(crate) without: &'static [&'static str],
}

impl OptionsPlace {
    fn options(self) -> impl Iterator<Item = &'static str> {
        let names = field_names::<StartOptions>().iter().copied();
        names.filter(move |name| !self.without.contains(name))
    }

    /// The error for a field that is neither of the body's own nor an option.
    fn unknown_field<E: Error>(self, field: &str, own: &'static [&'static str]) -> E {
        let mut names = Vec::new();
        for name in own {
            names.push(format!("`{name}`"));
            if *name == self.after {
                names.extend(self.options().map(|it| format!("`{it}`")));
            }
        }
        let names = names.join(", ");
        E::custom(format_args!(
            "unknown field `{field}`, expected one of {names}"
        ))
    }
}

/// The names of a structure's fields in JSON.
pub(crate) fn field_names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Fails as soon as it has told them.
    let _failed = T::deserialize(FieldNames(&mut names));
    names
}

/// A deserializer without a value, which keeps the names of the fields it is asked for.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = NoError;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, NoError> {
        Err(NoError::custom("there is no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoError> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A deserializer that shows a body its own fields, and puts the options among them aside.
pub(crate) struct OwnFields<'a, D> {
    from: D,
    place: OptionsPlace,
    options: &'a mut StartOptions,
}

impl<'a, D> OwnFields<'a, D> {
    pub(crate) const fn new(from: D, place: OptionsPlace, options: &'a mut StartOptions) -> Self {
        Self {
            from,
            place,
            options,
        }
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for OwnFields<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.from.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        own: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = BodyVisitor {
            visitor,
            own,
            place: self.place,
            options: self.options,
        };
        self.from.deserialize_struct(name, own, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct BodyVisitor<'a, V> {
    visitor: V,
    own: &'static [&'static str],
    place: OptionsPlace,
    options: &'a mut StartOptions,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for BodyVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(BodyFields {
            fields,
            own: self.own,
            place: self.place,
            options: self.options,
            given: Vec::new(),
        })
    }
}

/// The fields of a body without the options, which are read on the way.
struct BodyFields<'a, A> {
    fields: A,
    own: &'static [&'static str],
    place: OptionsPlace,
    options: &'a mut StartOptions,
    /// The options that were read.
    given: Vec<&'static str>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for BodyFields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let key = FieldSeed {
            own: self.own,
            place: self.place,
        };
        while let Some(field) = self.fields.next_key_seed(key)? {
            match field {
                BodyField::Own(name) => {
                    let name: StrDeserializer<'_, A::Error> = name.into_deserializer();
                    return seed.deserialize(name).map(Some);
                }
                BodyField::Option(name) => self.read_option(name)?,
            }
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.fields.next_value_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>> BodyFields<'_, A> {
    fn read_option(&mut self, name: &'static str) -> Result<(), A::Error> {
        if self.given.contains(&name) {
            return Err(A::Error::duplicate_field(name));
        }
        self.given.push(name);
        let option = StartOptions::deserialize(OneField {
            name,
            fields: &mut self.fields,
        })?;
        *self.options = option.over(std::mem::take(self.options));
        Ok(())
    }
}

/// A field of a body.
enum BodyField {
    Own(&'static str),
    Option(&'static str),
}

/// Reads the name of a field; an unknown one is an error at its place.
#[derive(Clone, Copy)]
struct FieldSeed {
    own: &'static [&'static str],
    place: OptionsPlace,
}

impl<'de> DeserializeSeed<'de> for FieldSeed {
    type Value = BodyField;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<BodyField, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldSeed {
    type Value = BodyField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("field identifier")
    }

    fn visit_str<E: Error>(self, field: &str) -> Result<BodyField, E> {
        let named = |name: &&'static str| *name == field;
        if let Some(name) = self.own.iter().copied().find(named) {
            return Ok(BodyField::Own(name));
        }
        let option = self.place.options().find(named);
        let option = option.map(BodyField::Option);
        option.ok_or_else(|| self.place.unknown_field(field, self.own))
    }
}

/// A structure with one field, whose value comes next.
struct OneField<'a, A> {
    name: &'static str,
    fields: &'a mut A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for OneField<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(OneEntry {
            name: Some(self.name),
            fields: self.fields,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

struct OneEntry<'a, A> {
    name: Option<&'static str>,
    fields: &'a mut A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for OneEntry<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(name) = self.name.take() else {
            return Ok(None);
        };
        let name: StrDeserializer<'_, A::Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.fields.next_value_seed(seed)
    }
}
