//! Calls to copy, by operation.

/// The example of an operation, if it has one.
pub(super) fn of(operation_id: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(id, _)| *id == operation_id).map(|(_, example)| *example)
}

const EXAMPLES: [(&str, &str); 7] = [
    (
        "createTimer",
        r#"# At an instant, with everything
curl -sS http://localhost:8080/timers \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{
    "execute_at": "2030-01-31T12:00:00Z",
    "callback": {
      "type": "http",
      "url": "https://api.example.com/webhook",
      "headers": {"Authorization": "Bearer s3cret"},
      "payload": {"reminder": "water the plants", "plant": 7}
    },
    "key": "plant-7",
    "metadata": {"owner": "ada"},
    "retry_policy": {"max_retries": 5, "initial_interval": "10s"}
  }'

# In an hour and a half
curl -sS http://localhost:8080/timers \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"delay": "1h30m", "callback": {"type": "http", "url": "https://api.example.com/webhook"}}'

# The short form: POSTs to https://api.example.com/done/<id of the timer>
curl -sS http://localhost:8080/timers \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"hours": 1, "minutes": 30, "seconds": 0, "url": "https://api.example.com/done"}'"#,
    ),
    (
        "listTimers",
        r#"# What fires next
curl -sS "http://localhost:8080/timers?status=pending&sort=execute_at&order=asc&limit=20" \
  -H "X-API-Key: $API_KEY""#,
    ),
    ("getTimer", r#"curl -sS "http://localhost:8080/timers/$ID" -H "X-API-Key: $API_KEY""#),
    (
        "updateTimer",
        r#"# Later, and without its metadata; everything else stays
curl -sS -X PUT "http://localhost:8080/timers/$ID" \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"delay": "2h", "metadata": null}'"#,
    ),
    ("cancelTimer", r#"curl -sS -X DELETE "http://localhost:8080/timers/$ID" -H "X-API-Key: $API_KEY""#),
    ("health", "curl -sS http://localhost:8080/healthz"),
    ("ping", "curl -sS http://localhost:8080/ping"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_belongs_to_an_operation() {
        let document = crate::openapi::document().to_string();
        for (id, _) in EXAMPLES {
            assert!(document.contains(&format!("\"operationId\":\"{id}\"")), "{id}");
            assert!(of(id).is_some());
        }
    }
}
