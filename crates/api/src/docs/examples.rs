//! Calls to copy, by operation.

/// The example of an operation, if it has one.
pub(super) fn of(operation_id: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(id, _)| *id == operation_id).map(|(_, example)| *example)
}

const EXAMPLES: [(&str, &str); 24] = [
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
    ("fireTimer", r#"curl -sS -X POST "http://localhost:8080/timers/$ID/fire" -H "X-API-Key: $API_KEY""#),
    ("retryTimer", r#"curl -sS -X POST "http://localhost:8080/timers/$ID/retry" -H "X-API-Key: $API_KEY""#),
    ("listAttempts", r#"curl -sS "http://localhost:8080/timers/$ID/attempts" -H "X-API-Key: $API_KEY""#),
    (
        "createTimers",
        r#"# Each is answered for itself: repeating the whole batch is safe where every timer has a key
curl -sS http://localhost:8080/timers/batch \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"timers": [
    {"delay": "1h", "key": "plant-7", "callback": {"type": "http", "url": "https://api.example.com/webhook"}},
    {"execute_at": "2030-01-31T12:00:00Z", "key": "plant-8", "callback": {"type": "http", "url": "https://api.example.com/webhook"}},
    {"minutes": 5, "url": "https://api.example.com/done"}
  ]}'"#,
    ),
    (
        "cancelTimers",
        r#"# All of one order, if there are no more than ten
curl -sS http://localhost:8080/timers/cancel \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"namespace": "default", "key_prefix": "order-456-", "metadata": {"owner": "ada"}, "expected_max": 10}'"#,
    ),
    (
        "v1CreateTimer",
        r#"curl -sS http://localhost:8080/api/v1/timers \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{
    "id": "user-reminder-123",
    "groupId": "notifications",
    "executeAt": "2030-01-31T12:00:00Z",
    "callbackUrl": "https://app.example.com/webhooks/timer",
    "payload": {"userId": "user123", "action": "send_reminder"},
    "retryPolicy": {"maxRetries": 3, "maxRetryAttemptsDuration": "1h"}
  }'"#,
    ),
    ("v1GetTimer", r#"curl -sS http://localhost:8080/api/v1/timers/notifications/user-reminder-123 -H "X-API-Key: $API_KEY""#),
    (
        "v1UpdateTimer",
        r#"# Later, with another payload; everything else stays
curl -sS -X PUT http://localhost:8080/api/v1/timers/notifications/user-reminder-123 \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"executeAt": "2030-01-31T16:00:00Z", "payload": {"userId": "user123", "action": "send_urgent_reminder"}}'"#,
    ),
    (
        "v1DeleteTimer",
        r#"curl -sS -X DELETE http://localhost:8080/api/v1/timers/notifications/user-reminder-123 -H "X-API-Key: $API_KEY""#,
    ),
    (
        "v1CreateOrReplaceTimer",
        r#"curl -sS http://localhost:8080/api/v1/timers/create \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{
    "namespace": "notifications",
    "id": "user-reminder-123",
    "executeAt": "2030-01-31T12:00:00Z",
    "callbackUrl": "https://app.example.com/webhooks/timer",
    "callbackTimeoutSeconds": 10
  }'"#,
    ),
    (
        "v1GetSelectedTimer",
        r#"curl -sS http://localhost:8080/api/v1/timers/get \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"namespace": "notifications", "timerId": "user-reminder-123"}'"#,
    ),
    (
        "v1UpdateSelectedTimer",
        r#"curl -sS http://localhost:8080/api/v1/timers/update \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"namespace": "notifications", "timerId": "user-reminder-123", "executeAt": "2030-01-31T16:00:00Z"}'"#,
    ),
    (
        "v1DeleteSelectedTimer",
        r#"curl -sS http://localhost:8080/api/v1/timers/delete \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"namespace": "notifications", "timerId": "user-reminder-123"}'"#,
    ),
    (
        "createKey",
        r#"# For a client that registers timers in one namespace; the answer has the key, this once
curl -sS http://localhost:8080/keys \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"name": "billing service", "namespaces": ["billing"], "rights": "write"}'

# For a dashboard that reads everything
curl -sS http://localhost:8080/keys \
  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \
  -d '{"name": "dashboard", "namespaces": null, "rights": "read"}'"#,
    ),
    ("listKeys", r#"curl -sS http://localhost:8080/keys -H "X-API-Key: $API_KEY""#),
    ("revokeKey", r#"curl -sS -X DELETE "http://localhost:8080/keys/$ID" -H "X-API-Key: $API_KEY""#),
    ("cluster", r#"curl -sS http://localhost:8080/cluster -H "X-API-Key: $API_KEY""#),
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
