//! Turns the OpenAPI document into one HTML page: no script, nothing fetched from anywhere.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    BookUrl,
    text::{escape, inline, marked_up},
};

const STYLE: &str = include_str!("page.css");

/// What the page may load: its own style, known by its hash, and nothing else.
pub(crate) fn policy() -> String {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
}

/// The whole page.
pub(crate) fn render(document: &Value, book: Option<&BookUrl>) -> String {
    let title = escape(text(&document["info"]["title"]));
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head><body><header><h1>{title} <small>{}</small></h1>{}</header>",
        escape(text(&document["info"]["version"])),
        marked_up(text(&document["info"]["description"])),
    );
    page.push_str(&contents(document));
    page.push_str("<main>");
    page.push_str(INTRODUCTION);
    for (path, method, operation) in operations(document) {
        page.push_str(&render_operation(document, path, method, operation));
    }
    page.push_str(&render_schemas(document));
    page.push_str("</main><footer><p>Made from <a href=\"openapi.json\">openapi.json</a>. ");
    page.push_str(&pointer_to(book));
    page.push_str("</p></footer></body></html>");
    page
}

/// The book has the concepts, how-to pages and what operators need. It is not in the program, and only the operator knows its address.
fn pointer_to(book: Option<&BookUrl>) -> String {
    match book {
        Some(url) => format!("Concepts, how-to and operation: <a href=\"{}\">the book</a>.", escape(url.as_str())),
        None => "Concepts, how-to and operation are in the book, <code>docs/book</code> of the repository; <code>BOOK_URL</code> makes this a link.".to_owned(),
    }
}

/// What a new user needs to know before the first call.
const INTRODUCTION: &str = include_str!("introduction.html");

/// Every operation of the document, in its order.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        ["post", "get", "put", "delete"]
            .into_iter()
            .filter_map(move |method| item.get(method).map(|operation| (path.as_str(), method, operation)))
    })
}

fn contents(document: &Value) -> String {
    let mut list = String::from("<nav><ul><li><a href=\"#start\">Start here</a></li>");
    for (path, method, operation) in operations(document) {
        list.push_str(&format!(
            "<li><a href=\"#{}\"><b class=\"{method}\">{}</b> <code>{}</code></a></li>",
            escape(text(&operation["operationId"])),
            method.to_uppercase(),
            escape(path)
        ));
    }
    list.push_str("<li><a href=\"#schemas\">Objects</a></li></ul></nav>");
    list
}

fn render_operation(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let id = escape(text(&operation["operationId"]));
    let lock = if operation["security"].is_array() { "<span class=\"key\">needs X-API-Key</span>" } else { "" };
    let mut html = format!(
        "<section id=\"{id}\"><h2>{}</h2><p class=\"call\"><b class=\"{method}\">{}</b> <code>{}</code> {lock}</p>{}",
        escape(text(&operation["summary"])),
        method.to_uppercase(),
        escape(path),
        marked_up(text(&operation["description"])),
    );
    if let Some(parameters) = operation["parameters"].as_array() {
        html.push_str("<h3>Parameters</h3><dl class=\"fields\">");
        for parameter in parameters {
            let is_required = parameter["required"] == true;
            let description = text(&parameter["description"]);
            html.push_str(&field(document, text(&parameter["name"]), &parameter["schema"], is_required, description));
        }
        html.push_str("</dl>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if body.is_object() {
        html.push_str(&format!(
            "<h3>Body</h3><p>{}.</p>",
            inline(text(&operation["requestBody"]["description"]).trim_end_matches('.'))
        ));
        html.push_str(&render_body(document, body));
    }
    if let Some(example) = super::examples::of(text(&operation["operationId"])) {
        // What can be scrolled must be reachable without a mouse, and say what it is.
        html.push_str(&format!(
            "<h3>Example</h3><pre tabindex=\"0\" role=\"region\" aria-label=\"Example: {} {}\"><code>{}</code></pre>",
            method.to_uppercase(),
            escape(path),
            escape(example)
        ));
    }
    html.push_str(&render_responses(operation));
    html.push_str("</section>");
    html
}

/// The fields of a body; of each of its forms, where it has several.
fn render_body(document: &Value, body: &Value) -> String {
    let schema = &document["components"]["schemas"][reference(body).unwrap_or_default()];
    let Some(forms) = schema["oneOf"].as_array() else {
        return render_schema(document, schema);
    };
    let mut html = String::new();
    for form in forms {
        let schema = &document["components"]["schemas"][reference(form).unwrap_or_default()];
        let summary = inline(text(&schema["description"]));
        html.push_str(&format!("<details open><summary>{summary}</summary>{}</details>", render_schema(document, schema)));
    }
    html
}

fn render_responses(operation: &Value) -> String {
    let mut html = String::from("<h3>Answers</h3><dl class=\"answers\">");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let class = if status.starts_with('2') { "good" } else { "bad" };
        html.push_str(&format!(
            "<dt class=\"{class}\">{}</dt><dd>{}</dd>",
            escape(status),
            inline(text(&response["description"]))
        ));
    }
    html.push_str("</dl>");
    html
}

fn render_schemas(document: &Value) -> String {
    let mut html = String::from("<section id=\"schemas\"><h2>Objects</h2></section>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let name = escape(name);
        html.push_str(&format!("<section id=\"schema-{name}\"><h3>{name}</h3>{}", marked_up(text(&schema["description"]))));
        html.push_str(&render_schema(document, schema));
        html.push_str("</section>");
    }
    html
}

fn render_schema(document: &Value, schema: &Value) -> String {
    let mut html = String::new();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        match part["$ref"].as_str() {
            Some(_) => html.push_str(&format!("<p>Everything of {}, and:</p>", link(part))),
            None => html.push_str(&render_schema(document, part)),
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        html.push_str("<dl class=\"fields\">");
        for (name, property) in properties {
            let description = description(property);
            html.push_str(&field(document, name, property, required.contains(&name.as_str()), description));
        }
        html.push_str("</dl>");
    } else if schema.get("allOf").is_none() && schema["type"] != "object" {
        html.push_str(&format!("<p>{}</p>", kind(schema)));
    }
    html
}

/// A property that may be `null` has its description one level down.
fn description(property: &Value) -> &str {
    let options = property["oneOf"].as_array().into_iter().flatten();
    std::iter::once(property)
        .chain(options)
        .map(|schema| text(&schema["description"]))
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

fn field(document: &Value, name: &str, schema: &Value, is_required: bool, description: &str) -> String {
    let target = &document["components"]["schemas"][reference(schema).unwrap_or_default()];
    let own = inline(description);
    let inherited = if own.is_empty() { inline(text(&target["description"])) } else { own };
    let needed = if is_required { " <span class=\"needed\">required</span>" } else { "" };
    let example = match &schema["example"] {
        Value::Null => String::new(),
        example => format!(" <span class=\"example\">e.g. <code>{}</code></span>", escape(&plain(example))),
    };
    format!(
        "<dt><code>{}</code> <span class=\"kind\">{}</span>{needed}</dt><dd>{inherited}{example}</dd>",
        escape(name),
        kind(schema)
    )
}

/// What kind of value it is, with its limits, as HTML.
fn kind(schema: &Value) -> String {
    if reference(schema).is_some() {
        return link(schema);
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(options) = schema[choice].as_array() {
            return options.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| format!("<code>{}</code>", escape(&plain(value)))).collect();
        return values.join(" | ");
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
        words.push(format!("({})", escape(format)));
    }
    for (limit, say) in [("minimum", "≥ "), ("maximum", "≤ "), ("maxLength", "≤ "), ("maxProperties", "≤ "), ("maxItems", "≤ ")]
    {
        if let Some(number) = schema[limit].as_number() {
            let unit = if limit == "maxLength" { " characters" } else { "" };
            words.push(format!("{say}{number}{unit}"));
        }
    }
    words.join(" ")
}

fn link(schema: &Value) -> String {
    let name = escape(reference(schema).unwrap_or_default());
    format!("<a href=\"#schema-{name}\">{name}</a>")
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_object_of_the_document_is_on_the_page() {
        let document = crate::openapi::document();
        let page = render(&document, None);
        for (path, _, operation) in operations(&document) {
            assert!(page.contains(&format!("<section id=\"{}\">", text(&operation["operationId"]))), "{path}");
        }
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("<section id=\"schema-{name}\">")), "{name}");
        }
        // Every link leads somewhere.
        for link in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
        }
    }

    #[test]
    fn everything_that_can_be_scrolled_is_reached_by_the_keyboard_and_has_a_name_of_its_own() {
        let page = render(&crate::openapi::document(), None);
        let mut names = std::collections::HashSet::new();
        for pre in page.split("<pre").skip(1).map(|rest| rest.split('>').next().unwrap()) {
            let name = pre.strip_prefix(" tabindex=\"0\" role=\"region\" aria-label=\"").unwrap_or_else(|| panic!("<pre{pre}>"));
            assert!(names.insert(name), "{name} is there twice");
        }
        assert!(names.len() > 10, "{} examples", names.len());
    }

    #[test]
    fn the_page_links_the_book_where_the_operator_says_it_is() {
        let url = BookUrl::parse("BOOK_URL", "https://docs.example/?a=1&b=2").unwrap();
        let page = render(&crate::openapi::document(), Some(&url));
        assert!(page.contains("<a href=\"https://docs.example/?a=1&amp;b=2\">the book</a>"));
        assert!(!render(&crate::openapi::document(), None).contains("the book</a>"));
    }

    #[test]
    fn the_page_has_no_script_and_fetches_nothing() {
        let page = render(&crate::openapi::document(), None).to_lowercase();
        for forbidden in ["<script", "javascript:", "<link", "<img", "@import", "url(", " onclick", "<iframe", "src="] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn whatever_the_document_says_stays_text() {
        let evil = "</style><script>alert(1)</script>";
        let document = serde_json::json!({
            "info": {"title": evil, "version": evil, "description": evil},
            "paths": {(evil): {"get": {"operationId": evil, "summary": evil, "description": evil, "responses": {(evil): {"description": evil}},
                "parameters": [{"name": evil, "description": evil, "schema": {"type": evil, "example": evil, "enum": [evil]}}]}}},
            "components": {"schemas": {(evil): {"description": evil, "properties": {(evil): {"type": "string", "format": evil}}}}},
        });
        assert!(!render(&document, None).contains("<script"));
    }
}
