//! The OpenAPI document as a page of the book.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::Value;

use super::cell;
use crate::openapi;

/// An answer that this many operations describe in the same words is described once, for all.
const COMMON_FROM: usize = 20;

pub(super) fn page() -> String {
    let document = openapi::document();
    let common = common_answers(&document);
    let mut text = "## Answers that most calls can have\n\n| status | when |\n|---|---|\n".to_owned();
    for (status, description) in &common {
        writeln!(text, "| {status} | {} |", cell(description)).expect("text");
    }
    for tag in list(&document["tags"]) {
        let name = string(&tag["name"]);
        let (first, rest) = name.split_at(1);
        write!(text, "\n## {}{rest}\n\n{}\n", first.to_uppercase(), string(&tag["description"])).expect("text");
        for (path, method, operation) in operations(&document) {
            if list(&operation["tags"]).first().map(string) == Some(name) {
                text.push_str(&operation_section(path, method, operation, &common));
            }
        }
    }
    text.push_str("\n## Objects\n");
    for (name, schema) in members(&document["components"]["schemas"]) {
        if !name.starts_with("Envelope_") {
            text.push_str(&object_section(name, schema));
        }
    }
    text
}

fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    members(&document["paths"]).flat_map(|(path, item)| {
        let methods = ["post", "get", "put", "delete"].into_iter();
        methods.filter_map(move |method| item.get(method).map(|operation| (path, method, operation)))
    })
}

fn common_answers(document: &Value) -> Vec<(String, String)> {
    let mut seen = BTreeMap::<_, usize>::new();
    for (_, _, operation) in operations(document) {
        for (status, answer) in members(&operation["responses"]) {
            *seen.entry((status.to_owned(), string(&answer["description"]).to_owned())).or_default() += 1;
        }
    }
    seen.into_iter().filter(|(_, count)| *count >= COMMON_FROM).map(|(answer, _)| answer).collect()
}

fn operation_section(path: &str, method: &str, operation: &Value, common: &[(String, String)]) -> String {
    let mut text = format!(
        "\n### {}\n\n`{} {path}`\n\n{}\n",
        string(&operation["summary"]),
        method.to_uppercase(),
        string(&operation["description"])
    );
    let parameters = list(&operation["parameters"]);
    if !parameters.is_empty() {
        text.push_str("\n| parameter | type | meaning |\n|---|---|---|\n");
        for parameter in parameters {
            let name = named(string(&parameter["name"]), parameter["required"] == true);
            let kind = cell(&kind(&parameter["schema"]));
            writeln!(text, "| {name} | {kind} | {} |", cell(string(&parameter["description"]))).expect("text");
        }
    }
    let body = &operation["requestBody"];
    if let Some(schema) = content(body) {
        let description = string(&body["description"]).trim_end_matches('.');
        write!(text, "\nBody: {}. {description}.\n", kind(schema)).expect("text");
    }
    text.push_str("\n| status | answer | |\n|---|---|---|\n");
    for (status, answer) in members(&operation["responses"]) {
        let description = string(&answer["description"]);
        if common.iter().any(|(known, words)| known == status && words == description) {
            continue;
        }
        let of = content(answer).filter(|_| status.starts_with('2')).map(kind).unwrap_or_default();
        writeln!(text, "| {status} | {} | {} |", cell(description), cell(&of)).expect("text");
    }
    text
}

fn object_section(name: &str, schema: &Value) -> String {
    // Some objects have the name of an operation, whose heading would be theirs.
    let mut text = format!("\n<a id=\"object-{}\"></a>\n\n### {name}\n\n", name.to_lowercase());
    let description = string(&schema["description"]);
    if !description.is_empty() {
        write!(text, "{description}\n\n").expect("text");
    }
    let parts: Vec<&Value> = match schema["allOf"].as_array() {
        Some(parts) => parts.iter().collect(),
        None => vec![schema],
    };
    for part in parts {
        if reference(part).is_some() {
            write!(text, "Everything of {}, and:\n\n", kind(part)).expect("text");
        } else if part["properties"].is_object() {
            text.push_str(&fields(part));
        } else if part["type"] != "object" {
            writeln!(text, "{}", kind(part)).expect("text");
        }
    }
    text.trim_end().to_owned() + "\n"
}

fn fields(schema: &Value) -> String {
    let mut text = "| field | type | meaning |\n|---|---|---|\n".to_owned();
    for (name, property) in members(&schema["properties"]) {
        let is_required = list(&schema["required"]).iter().any(|required| required == name);
        let options = list(&property["oneOf"]).iter();
        let description = std::iter::once(property).chain(options).map(|schema| string(&schema["description"]));
        let description = description.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let row = [named(name, is_required), cell(&kind(property)), cell(description)];
        writeln!(text, "| {} |", row.join(" | ")).expect("text");
    }
    text
}

fn named(name: &str, is_required: bool) -> String {
    format!("`{name}`{}", if is_required { ", required" } else { "" })
}

/// What kind of value it is, with its limits.
fn kind(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return match name.strip_prefix("Envelope_") {
            Some(data) => format!("`data`: [{data}](#object-{})", data.to_lowercase()),
            None => format!("[{name}](#object-{})", name.to_lowercase()),
        };
    }
    if let Some(options) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        return options.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{}`", plain(value))).collect::<Vec<_>>().join(", ");
    }
    let types = match &schema["type"] {
        Value::String(one) => one.clone(),
        Value::Array(several) => several.iter().map(plain).collect::<Vec<_>>().join(" or "),
        _ => "any JSON".to_owned(),
    };
    let mut words = vec![types];
    if schema["type"] == "array" {
        words.push(format!("of {}", kind(&schema["items"])));
    }
    if let Some(format) = schema["format"].as_str().filter(|format| !format.starts_with("int") && *format != "double") {
        words.push(format!("({format})"));
    }
    for (limit, unit) in [("minimum", ""), ("maximum", ""), ("maxLength", " characters"), ("maxItems", ""), ("maxProperties", "")]
    {
        if let Some(number) = schema[limit].as_number() {
            words.push(format!("{} {number}{unit}", if limit == "minimum" { "≥" } else { "≤" }));
        }
    }
    words.join(" ")
}

/// What a body or an answer is, if it has one.
fn content(of: &Value) -> Option<&Value> {
    members(&of["content"]).map(|(_, content)| &content["schema"]).find(|schema| schema.is_object())
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}
