"use strict";

/** The document; texts of it only ever become text nodes. */
let api = null;

const byId = (id) => document.getElementById(id);

/** An element with attributes and children; a child that is no node is text. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

/** What `{"$ref": "#/…"}` means; any other value is itself. */
function resolved(value) {
  if (!value || !value.$ref) return value;
  const path = value.$ref.slice(2).split("/");
  return path.reduce((part, key) => part[key.replaceAll("~1", "/").replaceAll("~0", "~")], api);
}

/** A description: text between backticks is code. */
function prose(text) {
  const parts = (text || "").split("`");
  return element("p", {}, ...parts.map((part, index) => (index % 2 ? element("code", {}, part) : part)));
}

/** A box whose content is made when it is opened first. */
function lazy(summary, fill) {
  const box = element("details", {}, element("summary", {}, ...summary));
  const make = () => { if (box.open && box.children.length === 1) box.append(element("div", {}, ...fill())); };
  box.addEventListener("toggle", make);
  return box;
}

/** The type of a schema in a few words. */
function typeText(schema) {
  if (!schema) return "nothing";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf || schema.anyOf;
  if (choices) return choices.map(typeText).join(" | ");
  if (schema.contentSchema) return `${typeText(schema.contentSchema)}, one after the other`;
  if (schema.prefixItems) return `[${schema.prefixItems.map(typeText).join(", ")}]`;
  if (schema.type === "array") return `list of ${typeText(schema.items)}`;
  if (!schema.type) return "any";
  const range = [schema.minimum, schema.maximum].some((bound) => bound !== undefined)
    ? ` ${schema.minimum ?? ""}..${schema.maximum ?? ""}` : "";
  return `${schema.type}${schema.format ? ` (${schema.format})` : ""}${range}`;
}

/** The schemas in a schema that have fields of their own. */
function inner(schema) {
  if (!schema) return [];
  const parts = [schema.items, schema.contentSchema, schema.additionalProperties, ...(schema.prefixItems || []),
    ...(schema.oneOf || []), ...(schema.anyOf || []), ...(schema.allOf || [])];
  return parts.filter((part) => part && typeof part === "object");
}

function hasFields(schema) {
  const target = resolved(schema);
  return Boolean(target && (target.properties || target.enum || inner(target).some(hasFieldsOnce)));
}

const hasFieldsOnce = (schema) => Boolean(schema.$ref || schema.properties || inner(schema).length);

/** A schema: its type, or a box with its fields. */
function schemaView(schema) {
  const type = element("code", {}, typeText(schema));
  if (!hasFields(schema)) return type;
  return lazy([type], () => schemaContent(resolved(schema)));
}

function schemaContent(schema) {
  const parts = schema.description ? [prose(schema.description)] : [];
  if (schema.enum) parts.push(element("p", {}, element("code", {}, typeText(schema))));
  const required = schema.required || [];
  const fields = Object.entries(schema.properties || {});
  if (fields.length) parts.push(element("dl", {}, ...fields.flatMap(([name, field]) =>
    described(name, required.includes(name), field, field.description))));
  parts.push(...inner(schema).map(schemaView));
  return parts;
}

/** A name with its type and description. */
function described(name, required, schema, description) {
  const given = schema && schema.default !== undefined ? ` = ${JSON.stringify(schema.default)}` : "";
  const terms = [element("code", {}, name), required ? " (required) " : " ", element("span", { class: "dim" }, given), " "];
  const text = [schemaView(schema), description ? prose(description) : null];
  return [element("dt", {}, ...terms), element("dd", {}, ...text.filter(Boolean))];
}

function bodyView(content) {
  return Object.entries(content || {}).flatMap(([type, media]) =>
    [element("p", { class: "dim" }, type), media.schema ? schemaView(media.schema) : null]).filter(Boolean);
}

function operationContent(operation) {
  const parts = operation.description ? [prose(operation.description)] : [];
  const scopes = operation.security.flatMap((rule) => Object.values(rule).flat());
  if (scopes.length) parts.push(prose(`Scopes: ${scopes.map((scope) => `\`${scope}\``).join(", ")}.`));
  const parameters = operation.parameters.map(resolved);
  if (parameters.length) parts.push(element("h3", {}, "Parameters"), element("dl", {}, ...parameters.flatMap((it) =>
    described(`${it.name} (${it.in})`, it.required, it.schema, it.description))));
  if (operation.requestBody) parts.push(element("h3", {}, "Body"), ...bodyView(operation.requestBody.content));
  parts.push(element("h3", {}, "Responses"), element("dl", {}, ...Object.entries(operation.responses).flatMap(([status, it]) => {
    const response = resolved(it);
    return [element("dt", {}, element("code", {}, status), ` ${response.description}`), element("dd", {}, ...bodyView(response.content))];
  })));
  return parts;
}

function show() {
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const title = [element("span", { class: `method ${method}` }, method.toUpperCase()),
        element("span", { class: "path" }, path), element("span", { class: "dim" }, ` ${operation.summary}`)];
      const box = lazy(title, () => operationContent(operation));
      box.id = operation.operationId;
      box.dataset.text = `${method} ${path} ${operation.summary}`.toLowerCase();
      const tag = operation.tags[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(box);
    }
  }
  const sections = [...groups].map(([tag, boxes]) => element("section", {}, element("h2", {}, tag), ...boxes));
  byId("routes").replaceChildren(prose(api.info.description), ...sections);
  byId("title").textContent = `${api.info.title} ${api.info.version}: REST API`;
  byId("login").hidden = true;
  byId("filter").hidden = false;
  const named = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
  if (named) { named.open = true; named.scrollIntoView(); }
}

function filter() {
  const words = byId("filter").value.toLowerCase().split(/\s+/);
  for (const section of document.querySelectorAll("section")) {
    const boxes = [...section.querySelectorAll(":scope > details")];
    for (const box of boxes) box.hidden = !words.every((word) => box.dataset.text.includes(word));
    section.hidden = boxes.every((box) => box.hidden);
  }
}

/** Fetches the document. The token is kept in no storage. */
async function load(token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  try {
    const response = await fetch("openapi.json", { headers, credentials: "omit", cache: "no-store" });
    const body = await response.json();
    if (response.ok) { api = body; return show(); }
    byId("status").textContent = token ? body.message : "";
    byId("login").hidden = false;
    byId("token").focus();
  } catch (error) {
    byId("status").textContent = `The document cannot be read: ${error.message}`;
  }
}

byId("login").addEventListener("submit", (event) => { event.preventDefault(); load(byId("token").value.trim()); });
byId("filter").addEventListener("input", filter);
document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !isTyping) { event.preventDefault(); byId("filter").focus(); }
  if (event.key === "Escape" && event.target === byId("filter")) { byId("filter").value = ""; filter(); }
});
load("");
