//! Tests of the generator on small sources.

use serde_json::{Value, json};
use syn::Expr;

use super::document::document;
use super::parameters::query_parameters;
use super::rust_items::{REST, RustItems};
use super::schemas::{Direction, Schemas};

const CODES: &str = r#"pub const ERROR_CODES: [ErrorCodeInfo; 6] = [
    row(ErrorCode::Initialization, "initialization_error", "X", INTERNAL, 503, 69, true),
    row(ErrorCode::Value, "value_error", "ValueError", INVALID, 422, 64, false),
    row(ErrorCode::Permission, "permission_error", "PermissionError", INTERNAL, 403, 77, false),
    row(ErrorCode::ProcessNotFound, "process_not_found", "X", INTERNAL, 404, 66, false),
    row(ErrorCode::ProcessControl, "process_control_error", "X", INTERNAL, 409, 66, false),
    row(ErrorCode::CommandExecution, "command_execution_error", "X", INTERNAL, 422, 66, false),
];"#;
/// Which routes need `project:write`.
const ACCESS: &str = r#"const READ_ROUTES: &[&str] = &["/api/v1/wait"];
const WRITE_ROUTES: &[&str] = &["/api/v1/type"];
const CHECKED_ELSEWHERE: &[&str] = &["/api/v1/own"];"#;
const PROBLEM: &str = "#[derive(Serialize)] pub struct Problem { pub status: u16 }";

fn schema(source: &str, name: &str, direction: Direction) -> Value {
    let items = RustItems::of(&[("crates/api/src/lib.rs", source)]).unwrap();
    let mut schemas = Schemas::new(&items);
    schemas.reference(name, direction).unwrap();
    schemas.into_components().remove(name).unwrap()
}

/// The document of these routes, whose handlers are in the module `tests`.
fn document_of(routes: &str, handlers: &str) -> anyhow::Result<Value> {
    let (table, module) = (format!("{REST}/routes.rs"), format!("{REST}/tests.rs"));
    let items = RustItems::of(&[
        ("crates/model/src/error_code.rs", CODES),
        ("crates/api/src/problem.rs", PROBLEM),
        ("crates/http/src/rest/route_access.rs", ACCESS),
        (&table, routes),
        (&module, handlers),
    ])?;
    document(&items, "0.1.0")
}

#[test]
fn fields_are_required_as_serde_requires_them() {
    let source = "
        /// What it is.
        #[derive(Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Body {
            pub always: String,
            pub null: Option<u16>,
            #[serde(default, skip_serializing_if = \"Option::is_none\", rename = \"type\")]
            pub absent: Option<bool>,
        }";
    let request = schema(source, "Body", Direction::Request);
    assert_eq!(request["description"], "What it is.");
    assert_eq!(request["additionalProperties"], false);
    assert_eq!(request["required"], json!(["always"]));
    let or_null = json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]});
    assert_eq!(request["properties"]["type"], or_null);
    let response = schema(source, "Body", Direction::Response);
    assert_eq!(response["required"], json!(["always", "null"]));
    assert_eq!(response["properties"]["type"], json!({"type": "boolean"}));
}

#[test]
fn enumerations_look_as_their_attributes_say() {
    let words = "#[derive(Serialize)] #[serde(rename_all = \"snake_case\")]
        pub enum Words { /// One.
        FirstWord, #[serde(rename = \"2\")] Second, Number(u8) }";
    let words = schema(words, "Words", Direction::Response);
    assert_eq!(words["oneOf"][0]["enum"], json!(["first_word", "2"]));
    assert_eq!(words["oneOf"][1]["required"], json!(["number"]));
    let tagged = "#[derive(Serialize)] #[serde(tag = \"why\", rename_all = \"lowercase\")]
        pub enum Tagged { End { status: i32 }, Inner(Fields) }
        #[derive(Serialize)] pub struct Fields { pub name: String }";
    let tagged = schema(tagged, "Tagged", Direction::Response);
    assert_eq!(
        tagged["oneOf"][0]["properties"]["why"],
        json!({"const": "end"})
    );
    assert_eq!(tagged["oneOf"][1]["required"], json!(["why", "name"]));
}

#[test]
fn a_type_that_serde_does_not_derive_is_refused() {
    let items = RustItems::of(&[("crates/api/src/lib.rs", "pub struct Own(u8);")]).unwrap();
    let error = Schemas::new(&items).reference("Own", Direction::Request);
    let error = format!("{:#}", error.unwrap_err());
    assert!(error.contains("special_form"), "{error}");
}

#[test]
fn tables_of_parameters_are_read_with_their_constants() {
    let place = "crates/http/src/rest/tests.rs";
    let source = "
        const LIMIT: i64 = 2 * 50;
        const LIST: &[Parameter] = &[ALL, Parameter::optional(
            \"limit\", ParameterKind::Integer(1, LIMIT), \"At most\").with_default(LIMIT)];
        const ALL: Parameter = Parameter::required(
            \"kind\", KIND, \"Which\");
        const KIND: ParameterKind = ParameterKind::Choice(&[\"a\", \"b\"]);";
    let items = RustItems::of(&[(place, source)]).unwrap();
    let table: Expr = syn::parse_quote!(LIST);
    let parameters = query_parameters(&items, place, &table).unwrap();
    assert_eq!(parameters[0]["required"], true);
    assert_eq!(parameters[0]["schema"]["enum"], json!(["a", "b"]));
    let limit = json!({"type": "integer", "minimum": 1, "maximum": 100, "default": 100});
    assert_eq!(parameters[1]["schema"], limit);
    let unknown: Expr = syn::parse_quote!(&[OTHER]);
    assert!(query_parameters(&items, place, &unknown).is_err());
}

#[test]
fn a_route_has_its_path_methods_and_statuses() {
    let routes = "
        pub fn router(state: S) -> Router {
            Router::new().nest(\"/api/v1\", inner().merge(more())).layer(l()).with_state(state)
        }
        fn inner() -> Router { Router::new().route(\"/a/{id}\", get(tests::show).put(tests::set)) }
        fn more() -> Router { Router::new() }";
    let handlers = "
        /// `GET /api/v1/a/{id}`: shows one. With all its data.
        async fn show(query_string: QueryString) -> RestResult<Json<Problem>> {
            state.engine.stop(&caller, &id).await
        }
        /// `PUT /api/v1/a/{id}`: sets one.
        async fn set(JsonBody(body): JsonBody<Problem>) -> RestResult<StatusCode> {
            Ok(StatusCode::NO_CONTENT)
        }";
    let document = document_of(routes, handlers).unwrap();
    let methods = &document["paths"]["/api/v1/a/{id}"];
    assert_eq!(methods["get"]["summary"], "Shows one");
    assert_eq!(methods["get"]["description"], "With all its data.");
    assert_eq!(methods["get"]["parameters"][0]["name"], "id");
    assert!(methods["get"]["responses"]["200"]["content"].is_object());
    assert!(methods["get"]["responses"]["503"].is_object());
    assert_eq!(methods["put"]["responses"].get("503"), None);
    assert!(methods["put"]["responses"]["204"].is_object());
    assert!(methods["put"]["responses"]["413"].is_object());
    assert_eq!(methods["put"]["requestBody"]["required"], true);
}

#[test]
fn what_changes_something_needs_the_scope_unless_a_table_says_otherwise() {
    let routes = "pub fn router() -> Router { Router::new()
        .route(\"/api/v1/a\", get(tests::it).post(tests::other))
        .route(\"/api/v1/wait\", post(tests::it))
        .route(\"/api/v1/type\", get(tests::it))
        .route(\"/api/v1/own\", post(tests::it)) }";
    let handlers = "/// `GET /a`: does it.
        async fn it() -> RestResult<Json<Problem>> { todo!() }
        /// `POST /a`: does another.
        async fn other() -> RestResult<Json<Problem>> { todo!() }";
    let document = document_of(routes, handlers).unwrap();
    for (path, method, scopes) in [
        ("a", "get", json!([])),
        ("a", "post", json!(["project:write"])),
        ("wait", "post", json!([])),
        ("type", "get", json!(["project:write"])),
        ("own", "post", json!([])),
    ] {
        let operation = &document["paths"][format!("/api/v1/{path}")][method];
        assert_eq!(
            operation["security"][0]["bearer"], scopes,
            "{method} {path}"
        );
    }
}

#[test]
fn a_handler_that_does_not_say_what_it_does_is_refused() {
    let routes = "pub fn router() -> Router { Router::new().route(\"/a\", get(tests::show)) }";
    let handlers = "/// `GET /a`.
        async fn show() -> RestResult<Json<Problem>> { todo!() }";
    let error = format!("{:#}", document_of(routes, handlers).unwrap_err());
    assert!(error.contains("what it does"), "{error}");
    assert!(error.contains("tests::show"), "{error}");
}
