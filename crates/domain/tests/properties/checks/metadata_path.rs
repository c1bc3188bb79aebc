use domain::MetadataPath;
use serde_json::Value;

/// A path leads where it would lead in the parsed value, and no text makes it fail.
pub fn check(json: &str, path: &str, text: &str) {
    let Ok(path) = MetadataPath::parse("metadata", path) else { return };
    let leads = path.leads_to(json, text);
    let Ok(value) = serde_json::from_str::<Value>(json) else { return };
    let found = path.names().try_fold(&value, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(elements) => {
            let is_position = name == "0" || !name.starts_with(['0', '+']);
            name.parse::<usize>().ok().filter(|_| is_position).and_then(|position| elements.get(position))
        }
        _ => None,
    });
    // Numbers are compared as they are written, which a parsed one does not tell.
    let expected = match found {
        Some(Value::String(string)) => string == text,
        Some(Value::Bool(bool)) => bool.to_string() == text,
        Some(Value::Null) => text == "null",
        Some(Value::Number(_)) => return,
        None | Some(Value::Object(_) | Value::Array(_)) => false,
    };
    assert_eq!(leads, expected, "{path} in {json} is {text}");
}
