//! Members of answers as people read them.

use chrono::{DateTime, FixedOffset, Local, SecondsFormat, Utc};
use serde_json::Value;

/// Where times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    Local,
    Utc,
    Offset(FixedOffset),
}

impl Zone {
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "local" => Ok(Self::Local),
            "utc" | "UTC" | "Z" => Ok(Self::Utc),
            offset => offset.parse().map(Self::Offset).map_err(|_| "must be local, utc or an offset such as +02:00".to_owned()),
        }
    }

    /// A time to the millisecond.
    pub fn show(self, at: DateTime<Utc>) -> String {
        const SHAPE: &str = "%Y-%m-%d %H:%M:%S%.3f";
        match self {
            Self::Local => at.with_timezone(&Local).format(SHAPE).to_string(),
            Self::Utc => at.format(&format!("{SHAPE}Z")).to_string(),
            Self::Offset(offset) => at.with_timezone(&offset).format(&format!("{SHAPE}%:z")).to_string(),
        }
    }
}

/// A member by its path: `callback_config.url`.
pub fn member<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, name| match value {
        Value::Array(elements) => name.parse().ok().and_then(|at: usize| elements.get(at)).unwrap_or(&Value::Null),
        value => &value[name],
    })
}

/// The text of a scalar; the JSON of anything else.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// What a cell of a table shows.
pub fn cell(name: &str, value: &Value, zone: Zone) -> String {
    let text = text(value);
    if (name.ends_with("_at") || name == "at") && !text.is_empty() {
        return DateTime::parse_from_rfc3339(&text).map_or(text, |at| zone.show(at.to_utc()));
    }
    match (name, value.as_i64()) {
        ("time_left", Some(seconds)) => length(seconds),
        _ if text.is_empty() => "-".to_owned(),
        _ => text.replace(['\n', '\r', '\t'], " "),
    }
}

/// What a column is called.
pub fn heading(name: &str) -> String {
    match name {
        "execute_at" => "DUE".to_owned(),
        "time_left" => "IN".to_owned(),
        "callback_type" => "CALLS".to_owned(),
        name => name.trim_end_matches("_at").replace('_', " ").to_uppercase(),
    }
}

/// A number of seconds in the two largest units that it has.
pub fn length(seconds: i64) -> String {
    if seconds <= 0 {
        return "now".to_owned();
    }
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (unit, size) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if rest >= size || !parts.is_empty() {
            parts.push(format!("{}{unit}", rest / size));
        }
        rest %= size;
    }
    parts.truncate(2);
    parts.join(" ")
}

/// One line of CSV. What a spreadsheet would take for a formula is kept from that.
pub fn csv_line(cells: impl Iterator<Item = impl Into<String>>) -> String {
    let quoted = cells.map(|cell| {
        let mut cell: String = cell.into();
        if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            cell.insert(0, '\'');
        }
        if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
    });
    quoted.collect::<Vec<_>>().join(",")
}

/// An instant as the API takes it.
pub fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_read_well() {
        let utc = Zone::Utc;
        for (name, value, shown) in [
            ("execute_at", json!("2030-01-31T12:00:00.123456Z"), "2030-01-31 12:00:00.123Z"),
            ("executed_at", json!(null), "-"),
            ("time_left", json!(90), "1m 30s"),
            ("time_left", json!(0), "now"),
            ("time_left", json!(200_000), "2d 7h"),
            ("key", json!(null), "-"),
            ("last_error", json!("a\nb"), "a b"),
            ("revision", json!(3), "3"),
            ("metadata", json!({"a": 1}), r#"{"a":1}"#),
        ] {
            assert_eq!(cell(name, &value, utc), shown, "{name}");
        }
        let offset = Zone::parse("+02:00").unwrap();
        assert_eq!(cell("at", &json!("2030-01-31T12:00:00Z"), offset), "2030-01-31 14:00:00.000+02:00");
        assert!(Zone::parse("Berlin").is_err());
        assert_eq!(["execute_at", "created_at", "last_error"].map(heading), ["DUE", "CREATED", "LAST ERROR"]);
    }

    #[test]
    fn members_are_found_by_their_path() {
        let value = json!({"callback_config": {"url": "u", "list": [1, 2]}});
        assert_eq!(text(member(&value, "callback_config.url")), "u");
        assert_eq!(text(member(&value, "callback_config.list.1")), "2");
        assert_eq!(text(member(&value, "x.y")), "");
    }

    #[test]
    fn csv_is_quoted_and_no_formula() {
        let cells = ["a", "b,c", "say \"no\"", "=1+1", "-2"];
        assert_eq!(csv_line(cells.into_iter()), r#"a,"b,c","say ""no""",'=1+1,'-2"#);
    }
}
