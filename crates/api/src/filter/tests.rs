use super::*;

#[derive(Deserialize)]
struct NoMore {}

fn of_query(query: &str) -> Result<Filter, String> {
    let uri: Uri = format!("/timers?{query}").parse().unwrap();
    read::<NoMore>(&uri).map(|(filter, _)| filter).map_err(|error| match error {
        ApiError::Command(error) => error.to_string(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_query_says_which_timers_are_meant() {
    for (query, stored) in [
        ("", "{}"),
        ("status=failed", r#"{"status":["failed"]}"#),
        ("status=pending,failed,pending", r#"{"status":["pending","failed"]}"#),
        ("namespace=a,b", r#"{"namespace":["a","b"]}"#),
        ("key=k%20%C3%A9", r#"{"key":"k é"}"#),
        ("key_prefix=order-", r#"{"key_prefix":"order-"}"#),
        ("group=g", r#"{"group":"g"}"#),
        (
            "due_from=2030-01-01T01:00:00%2B01:00&due_to=2031-01-01T00:00:00Z",
            r#"{"due_from":"2030-01-01T00:00:00Z","due_to":"2031-01-01T00:00:00Z"}"#,
        ),
        ("created_from=2030-01-01T00:00:00Z", r#"{"created_from":"2030-01-01T00:00:00Z"}"#),
        ("correlation_id=c", r#"{"correlation_id":"c"}"#),
        ("destination=a.example:80", r#"{"destination":"a.example:80"}"#),
        ("metadata.customer.id=42&metadata.a=", r#"{"metadata":{"a":"","customer.id":"42"}}"#),
        ("error=HTTP%20500", r#"{"error":"HTTP 500"}"#),
    ] {
        let stored: Filter = serde_json::from_str(stored).unwrap();
        let sorted = |mut filter: Filter| {
            filter.metadata.sort();
            filter
        };
        assert_eq!(of_query(query).map(sorted), Ok(stored), "{query}");
    }
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    let long = "x".repeat(1025);
    for (query, start) in [
        ("status=done", "status must be pending, executing, "),
        ("status=pending,", "status must be"),
        ("status=", "status must be"),
        ("namespace=", "namespace must have 1 to 255 characters"),
        ("namespace=a,,b", "namespace must have 1 to 255 characters"),
        ("key=", "key must have"),
        ("key_prefix=", "key_prefix must have"),
        ("group=%00", "group must not contain control characters"),
        ("due_from=today", "due_from must be an RFC 3339 date"),
        ("due_to=", "due_to must be"),
        ("created_from=2030-01-01", "created_from must be"),
        ("created_from=2030-01-01T00:00:00Z&created_to=2030-01-01T00:00:00Z", "created_to must be later than created_from"),
        ("correlation_id=", "correlation_id must have"),
        ("destination=", "destination must have 1 to 1024 characters"),
        ("error=%00", "error must not contain the character U+0000"),
        (&format!("error={long}"), "error must have 1 to 1024 characters"),
        ("metadata.=1", "metadata must be a path of names"),
        ("metadata.a..b=1", "metadata must be a path of names"),
        (&format!("metadata.{long}=1"), "metadata must not be a path of more than 1024 bytes"),
        (&format!("metadata.a={long}"), "metadata must not be compared with more than 1024 characters"),
        ("metadata.a=x%00", "metadata must not contain the character U+0000"),
        ("metadata.%00=x", "metadata must not contain the character U+0000"),
        ("metadata.a=1&metadata.a=2", "'metadata.a' must not be given twice"),
        ("metadata.a=%ff", "'metadata.a' must be valid UTF-8"),
        ("metadata=1", "'metadata' is not a known parameter"),
        ("Status=pending", "'Status' is not a known parameter"),
        ("key=a&key=b", "key must not be given twice"),
    ] {
        let message = of_query(query).unwrap_err();
        assert!(message.starts_with(start), "{query}: {message}");
    }
    let many: Vec<_> = (0..17).map(|n| format!("metadata.a{n}=1")).collect();
    assert_eq!(of_query(&many.join("&")).unwrap_err(), "metadata must not have more than 16 conditions");
    let many: Vec<_> = (0..101).map(|n| format!("n{n}")).collect();
    assert_eq!(of_query(&format!("namespace={}", many.join(","))).unwrap_err(), "namespace must not name more than 100");
}
