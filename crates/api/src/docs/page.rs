use serde_json::Value;

pub(crate) fn render(_document: &Value) -> String {
    String::new()
}
