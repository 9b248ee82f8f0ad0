//! The table of parameters of a tool or route.

use serde_json::{Map, Value, json};

/// A parameter of a tool or a query.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name in requests.
    pub name: &'static str,
    /// The type of its value.
    pub kind: ParameterKind,
    /// Whether a request without it is invalid.
    pub required: bool,
    /// The value that stands in for an absent one.
    pub default: Option<DefaultValue>,
    /// Where it may be given.
    pub location: ParameterLocation,
    /// The description in the schema.
    pub description: &'static str,
}

/// Where a parameter may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterLocation {
    /// At the top level, in the schema.
    Listed,
    /// An element of the table's [`ParameterKind::Options`], whose text describes it; also at the
    /// top level.
    Options,
    /// At the top level, not in the schema.
    Unlisted,
    /// An alias of this parameter, not in the schema.
    Alias(&'static str),
}

/// The type of a parameter's value.
#[derive(Debug, Clone, Copy)]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An integer in this inclusive range.
    Integer(i64, i64),
    /// As `Integer`, but larger values are reduced to the upper end.
    Clamped(i64, i64),
    /// True or false.
    Flag,
    /// A list of texts.
    List,
    /// A script, or a program and its arguments.
    Command,
    /// A list of texts; a single one may be given without a list.
    Ids,
    /// Rarely used parameters of the same table.
    Options,
    /// One text, or a list of texts.
    Hosts,
    /// An object of texts.
    Map,
    /// An object of texts or numbers; a number is converted to text.
    Amounts,
    /// An object of texts, numbers, true and false, each converted to text.
    Scalars,
    /// A port of this machine, or `auto`.
    Port,
    /// An object with exactly these parameters.
    Object(&'static [Parameter]),
}

/// The default of an absent parameter.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    Text(&'static str),
    Integer(i64),
    Flag(bool),
}

impl Parameter {
    /// A parameter that every request must have.
    #[must_use]
    pub const fn required(
        name: &'static str,
        kind: ParameterKind,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            required: true,
            default: None,
            location: ParameterLocation::Listed,
            description,
        }
    }

    /// An alias of a parameter.
    #[must_use]
    pub const fn alias(name: &'static str, of: &'static str) -> Self {
        Self {
            location: ParameterLocation::Alias(of),
            ..Self::optional(name, ParameterKind::Text, "")
        }
    }

    /// The same as an entry of the table's options.
    #[must_use]
    pub const fn in_options(self) -> Self {
        Self {
            location: ParameterLocation::Options,
            ..self
        }
    }

    /// The same, without an entry in the schema.
    #[must_use]
    pub const fn unlisted(self) -> Self {
        Self {
            location: ParameterLocation::Unlisted,
            ..self
        }
    }

    /// The same with another description.
    #[must_use]
    pub const fn with_description(self, description: &'static str) -> Self {
        Self {
            description,
            ..self
        }
    }

    /// A parameter that may be absent.
    #[must_use]
    pub const fn optional(
        name: &'static str,
        kind: ParameterKind,
        description: &'static str,
    ) -> Self {
        Self {
            required: false,
            ..Self::required(name, kind, description)
        }
    }

    /// The same with an integer as default.
    #[must_use]
    pub const fn with_default(self, value: i64) -> Self {
        self.with_default_value(DefaultValue::Integer(value))
    }

    /// The same with a flag as default.
    #[must_use]
    pub const fn with_default_flag(self, value: bool) -> Self {
        self.with_default_value(DefaultValue::Flag(value))
    }

    /// The same with a text as default.
    #[must_use]
    pub const fn with_default_text(self, value: &'static str) -> Self {
        self.with_default_value(DefaultValue::Text(value))
    }

    const fn with_default_value(self, value: DefaultValue) -> Self {
        Self {
            default: Some(value),
            ..self
        }
    }
}

/// The largest upper limit that the schema contains; higher ones are not reached by accident, and
/// the error message then states them.
const MAX_LISTED_BOUND: i64 = 50_000;
/// The smallest lower limit that the schema contains; that counts, times and sizes start at 0 or 1
/// is obvious.
const MIN_LISTED_BOUND: i64 = 2;

impl ParameterKind {
    /// The allowed values, for people.
    pub fn allowed_text(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Integer(min, max) | Self::Clamped(min, max) => {
                format!("a whole number from {min} to {max}")
            }
            Self::Flag => "true or false".to_owned(),
            Self::List => "a list of texts".to_owned(),
            Self::Command => "a text, which is a script for bash, or a list of a program and its \
                              arguments, as in [\"ls\", \"-l\"]"
                .to_owned(),
            Self::Ids => "a text or a list of texts".to_owned(),
            Self::Options => "an object".to_owned(),
            Self::Hosts => "none, full, or a list of hosts".to_owned(),
            Self::Map => "an object whose values are texts".to_owned(),
            Self::Amounts => "an object such as {\"memory\": \"512M\", \"pids\": 64}".to_owned(),
            Self::Scalars => "an object of texts, numbers, true or false".to_owned(),
            Self::Port => "a port from 1 to 65535, or auto".to_owned(),
            Self::Object(parameters) => {
                let names: Vec<&str> = parameters.iter().map(|it| it.name).collect();
                format!("an object with {}", names.join(", "))
            }
        }
    }

    fn value_schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Choice(words) => json!({"type": "string", "enum": words}),
            Self::Integer(min, max) | Self::Clamped(min, max) => {
                let mut schema = json!({"type": "integer"});
                if min >= MIN_LISTED_BOUND {
                    schema["minimum"] = min.into();
                }
                if max <= MAX_LISTED_BOUND {
                    schema["maximum"] = max.into();
                }
                schema
            }
            Self::Flag => json!({"type": "boolean"}),
            Self::List => json!({"type": "array", "items": {"type": "string"}}),
            Self::Command | Self::Ids => json!({"anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}},
            ]}),
            Self::Hosts => json!({"type": ["string", "array"], "items": {"type": "string"}}),
            Self::Map => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Self::Amounts | Self::Options | Self::Scalars => json!({"type": "object"}),
            Self::Port => json!({"type": ["integer", "string"]}),
            Self::Object(parameters) => Value::Object(object_schema(parameters)),
        }
    }
}

impl DefaultValue {
    fn to_json(self) -> Value {
        match self {
            Self::Text(text) => Value::from(text),
            Self::Integer(number) => Value::from(number),
            Self::Flag(flag) => Value::from(flag),
        }
    }
}

/// The JSON schema of an object with exactly these parameters.
pub fn object_schema(parameters: &[Parameter]) -> Map<String, Value> {
    let properties: Map<String, Value> = parameters
        .iter()
        .filter(|parameter| parameter.location == ParameterLocation::Listed)
        .map(|parameter| (parameter.name.to_owned(), property_schema(parameter)))
        .collect();
    let required: Vec<&str> = parameters
        .iter()
        .filter(|parameter| parameter.required)
        .map(|parameter| parameter.name)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

fn property_schema(parameter: &Parameter) -> Value {
    let mut schema = parameter.kind.value_schema();
    if !parameter.description.is_empty() {
        schema["description"] = parameter.description.into();
    }
    if let Some(preset) = parameter.default {
        schema["default"] = preset.to_json();
    }
    schema
}
