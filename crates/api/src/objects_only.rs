//! Structures are read from objects only. serde's derived implementations also take an array for the
//! values of the fields in their order, which no schema of a request allows.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// A deserializer that refuses arrays for structures and for variants with fields, at every depth. The
/// same wrapper is put around each visitor, access and seed that it passes on.
#[derive(Debug)]
pub struct ObjectsOnly<T>(pub T);

macro_rules! wrap_visitor {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($name: $type,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* ObjectsOnly(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectsOnly<D> {
    type Error = D::Error;

    wrap_visitor! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_struct(name, fields, FieldsVisitor(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// The visitor of a structure, without its `visit_seq`.
struct FieldsVisitor<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for FieldsVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(ObjectsOnly(fields))
    }
}

macro_rules! pass_scalars {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectsOnly<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    pass_scalars! {
        visit_bool: bool,
        visit_i8: i8,
        visit_i16: i16,
        visit_i32: i32,
        visit_i64: i64,
        visit_i128: i128,
        visit_u8: u8,
        visit_u16: u16,
        visit_u32: u32,
        visit_u64: u64,
        visit_u128: u128,
        visit_f32: f32,
        visit_f64: f64,
        visit_char: char,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
        visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8],
        visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(ObjectsOnly(from))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(ObjectsOnly(from))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(ObjectsOnly(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(ObjectsOnly(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(ObjectsOnly(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for ObjectsOnly<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(ObjectsOnly(from))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for ObjectsOnly<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(ObjectsOnly(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for ObjectsOnly<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(ObjectsOnly(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for ObjectsOnly<A> {
    type Error = A::Error;
    type Variant = ObjectsOnly<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, variant) = self.0.variant_seed(seed)?;
        Ok((name, ObjectsOnly(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for ObjectsOnly<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(ObjectsOnly(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, ObjectsOnly(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        // As the value of the variant: deserializers of values have their own words for a wrong one.
        self.0
            .newtype_variant_seed(VariantFields { fields, visitor })
    }
}

/// Reads the fields of a variant.
struct VariantFields<V> {
    fields: &'static [&'static str],
    visitor: V,
}

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for VariantFields<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        from.deserialize_struct("", self.fields, FieldsVisitor(self.visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Point {
        x: u8,
        y: Option<u8>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Shape {
        Empty,
        Circle(Point),
        Line { from: Point, to: Point },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(Point);

    fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
        let text = value.to_string();
        let mut from_text = serde_json::Deserializer::from_str(&text);
        let parsed = T::deserialize(ObjectsOnly(&mut from_text));
        let from_value = T::deserialize(ObjectsOnly(value.clone()));
        let place = |error: serde_json::Error| {
            let text = error.to_string();
            text.split(" at line").next().unwrap_or_default().to_owned()
        };
        let (parsed, from_value) = (parsed.map_err(place), from_value.map_err(place));
        assert_eq!(parsed.as_ref().err(), from_value.as_ref().err(), "{value}");
        parsed
    }

    fn refuses<T: DeserializeOwned + fmt::Debug>(value: &Value) {
        let problem = read::<T>(value).expect_err("an array");
        assert_eq!(problem, "invalid type: sequence, expected a JSON object");
    }

    #[test]
    fn an_array_is_no_structure_wherever_it_stands() {
        refuses::<Point>(&json!([1, 2]));
        refuses::<Option<Point>>(&json!([1, 2]));
        refuses::<Vec<Point>>(&json!([{"x": 1}, [1, 2]]));
        refuses::<BTreeMap<String, Point>>(&json!({"a": [1, 2]}));
        refuses::<Wrapped>(&json!([1, 2]));
        refuses::<Box<Point>>(&json!([1, 2]));
        refuses::<Shape>(&json!({"circle": [1, 2]}));
        refuses::<Shape>(&json!({"line": [{"x": 1}, {"x": 2}]}));
        refuses::<Shape>(&json!({"line": {"from": [1, 2], "to": {"x": 2}}}));
    }

    #[test]
    fn everything_else_is_read_as_before() {
        let point = |x| Point { x, y: None };
        assert_eq!(read(&json!({"x": 1})), Ok(point(1)));
        assert_eq!(read(&json!([{"x": 1}])), Ok(vec![point(1)]));
        assert_eq!(read(&json!({"x": 1})), Ok(Wrapped(point(1))));
        assert_eq!(read(&json!("empty")), Ok(Shape::Empty));
        assert_eq!(
            read(&json!({"circle": {"x": 1}})),
            Ok(Shape::Circle(point(1)))
        );
        let line = json!({"line": {"from": {"x": 1}, "to": {"x": 2}}});
        let expected = Shape::Line {
            from: point(1),
            to: point(2),
        };
        assert_eq!(read(&line), Ok(expected));
        let tree = json!({"a": [1, "b", null, true, 1.5], "c": {"d": -1}});
        assert_eq!(read(&tree), Ok(tree.clone()));
        assert_eq!(read(&json!(["a", 1])), Ok(("a".to_owned(), 1)));
    }
}
