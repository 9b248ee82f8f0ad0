//! JSON as a template, which many values have in common, and the strings and numbers left out of it.
//!
//! Both ways are text: through `serde_json::Value` they took four times as long.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

use super::values::{Scalar, ScalarList};

/// Stands in a template for the next value: in JSON it is always escaped.
const PLACE: char = '\0';

/// The JSON of an object, and the strings and numbers of some of its fields, which it leaves out. Zeros
/// stay: mostly they are of fields that few objects have.
pub(super) fn split(
    object: &impl Serialize,
    is_left_out: fn(&str) -> bool,
    values: &mut ScalarList,
) -> Option<String> {
    let mut template = Vec::new();
    let formatter = TemplateFormatter {
        values,
        is_left_out,
        depth: 0,
        is_key: false,
        field: Vec::new(),
        leaves_out: false,
        text: None,
    };
    let mut serializer = Serializer::with_formatter(&mut template, formatter);
    object.serialize(&mut serializer).ok()?;
    String::from_utf8(template).ok()
}

/// The JSON again, with the next of these values in their places; none where there are too few.
pub(super) fn fill(
    template: &str,
    values: &mut impl Iterator<Item = Option<String>>,
) -> Option<String> {
    let mut json = String::with_capacity(2 * template.len());
    let mut parts = template.split(PLACE);
    json.push_str(parts.next()?);
    for part in parts {
        json.push_str(&values.next()??);
        json.push_str(part);
    }
    Some(json)
}

/// The number of values that a template leaves out.
pub(super) fn places(template: &str) -> usize {
    template.matches(PLACE).count()
}

/// Writes a template, and collects what is left out.
struct TemplateFormatter<'a> {
    values: &'a mut ScalarList,
    is_left_out: fn(&str) -> bool,
    /// The number of open objects.
    depth: usize,
    is_key: bool,
    /// The name of the current field of the outermost object.
    field: Vec<u8>,
    /// Whether the values of this field are left out.
    leaves_out: bool,
    /// The current string, where it is left out: as in JSON, without the quotes.
    text: Option<Vec<u8>>,
}

impl TemplateFormatter<'_> {
    const fn is_left_out(&self) -> bool {
        self.leaves_out && !self.is_key
    }

    /// Leaves a number out, if it is one of those that are.
    fn leave_out<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        number: Scalar,
        is_zero: bool,
    ) -> io::Result<bool> {
        let is_left_out = self.is_left_out() && !is_zero;
        if is_left_out {
            self.values.push(number);
            write_place(writer)?;
        }
        Ok(is_left_out)
    }
}

fn write_place<W: ?Sized + Write>(writer: &mut W) -> io::Result<()> {
    writer.write_all(PLACE.encode_utf8(&mut [0; 4]).as_bytes())
}

/// The writers of numbers, by their type in JSON and in a [`Scalar`].
macro_rules! write_numbers {
    ($($method:ident: $number:ty => $scalar:ident),* $(,)?) => {$(
        fn $method<W: ?Sized + Write>(&mut self, writer: &mut W, number: $number) -> io::Result<()> {
            let is_zero = number == <$number>::default();
            if self.leave_out(writer, Scalar::$scalar(number.into()), is_zero)? {
                return Ok(());
            }
            CompactFormatter.$method(writer, number)
        }
    )*};
}

impl Formatter for TemplateFormatter<'_> {
    write_numbers! {
        write_i8: i8 => Integer,
        write_i16: i16 => Integer,
        write_i32: i32 => Integer,
        write_i64: i64 => Integer,
        write_u8: u8 => Unsigned,
        write_u16: u16 => Unsigned,
        write_u32: u32 => Unsigned,
        write_u64: u64 => Unsigned,
        write_f32: f32 => Float,
        write_f64: f64 => Float,
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_left_out() {
            self.text = Some(Vec::new());
            return Ok(());
        }
        CompactFormatter.begin_string(writer)
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let Some(text) = self.text.take() else {
            return CompactFormatter.end_string(writer);
        };
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        self.values.push_text(text);
        write_place(writer)
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if let Some(text) = &mut self.text {
            text.extend_from_slice(fragment.as_bytes());
            return Ok(());
        }
        if self.is_key && self.depth == 1 {
            self.field.extend_from_slice(fragment.as_bytes());
        }
        CompactFormatter.write_string_fragment(writer, fragment)
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match &mut self.text {
            Some(text) => CompactFormatter.write_char_escape(text, escape),
            None => CompactFormatter.write_char_escape(writer, escape),
        }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        CompactFormatter.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        CompactFormatter.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.is_key = true;
        if self.depth == 1 {
            self.field.clear();
        }
        CompactFormatter.begin_object_key(writer, first)
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.is_key = false;
        if self.depth == 1 {
            let name = std::str::from_utf8(&self.field).map_err(io::Error::other)?;
            self.leaves_out = (self.is_left_out)(name);
        }
        CompactFormatter.end_object_key(writer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn is_own(field: &str) -> bool {
        field.starts_with('o')
    }

    #[test]
    fn own_strings_and_numbers_are_left_out() {
        let object = json!({
            "own": ["x\n\"", {"common": [1, null, true, 0, -2.5], "o": ""}],
            "common": ["x", 7, {"own": "y"}],
            "o": 2,
        });
        let mut values = ScalarList::default();
        let template = split(&object, is_own, &mut values).expect("an object");
        assert_eq!(
            template,
            "{\"common\":[\"x\",7,{\"own\":\"y\"}],\"o\":\0,\
             \"own\":[\0,{\"common\":[\0,null,true,0,\0],\"o\":\0}]}"
        );
        assert_eq!((values.as_json().count(), places(&template)), (5, 5));
        let json = fill(&template, &mut values.as_json()).expect("as many");
        assert_eq!(json, object.to_string());
        assert_eq!(fill(&format!("{template}\0"), &mut values.as_json()), None);
    }

    #[test]
    fn keys_that_are_numbers_stay_in_the_template() {
        let numbers = BTreeMap::from([(1, "a"), (2, "b")]);
        let object = BTreeMap::from([("own", numbers)]);
        let mut values = ScalarList::default();
        let template = split(&object, is_own, &mut values).expect("an object");
        assert_eq!(template, "{\"own\":{\"1\":\0,\"2\":\0}}");
        assert_eq!(values.as_json().count(), 2);
    }

    fn json_values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[oc\0\"]{0,3}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_split_is_filled_to_the_same(value in json_values()) {
            let mut values = ScalarList::default();
            let template = split(&value, is_own, &mut values).expect("JSON");
            let values = ScalarList::decode(&values.encode().expect("values")).expect("the same");
            prop_assert_eq!(values.as_json().count(), places(&template));
            prop_assert_eq!(fill(&template, &mut values.as_json()), Some(value.to_string()));
        }
    }
}
