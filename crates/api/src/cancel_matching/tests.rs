use serde_json::json;

use crate::rig::{Reply, Rig};

/// Eight timers: two namespaces, two beginnings of keys, two owners.
async fn rig() -> Rig {
    let rig = Rig::new();
    for namespace in ["n", "m"] {
        for key in ["order-1", "user-1"] {
            for owner in ["ada", "bob"] {
                rig.created(&format!(
                    r#"{{"delay":"1h","callback":{{"type":"http","url":"http://a"}},"namespace":"{namespace}","key":"{key}-{owner}",
                    "metadata":{{"owner": "{owner}","n":[1, 2]}}}}"#
                ))
                .await;
            }
        }
    }
    rig
}

async fn cancel(rig: &Rig, body: &str) -> Reply {
    rig.call("POST", "/timers/cancel", body).await
}

async fn canceled(rig: &Rig) -> u64 {
    rig.get("/timers?status=canceled").await.data("total").as_u64().unwrap()
}

#[tokio::test]
async fn timers_are_canceled_for_which_every_condition_holds() {
    for (conditions, matched) in [
        (r#""status":"pending""#, 8),
        (r#""namespace":"n""#, 4),
        (r#""namespace":"x""#, 0),
        (r#""key_prefix":"order-""#, 4),
        (r#""key_prefix":"order-1-ada","namespace":"m""#, 1),
        (r#""key_prefix":"order%""#, 0),
        (r#""metadata":{"owner":"ada"}"#, 4),
        (r#""metadata":{"n":[1,2],"owner":"bob"},"namespace":"n","status":"pending","key_prefix":"user""#, 1),
        (r#""metadata":{"owner":"eve"}"#, 0),
        (r#""metadata":{"n":[1]}"#, 0),
    ] {
        let rig = rig().await;
        let reply = cancel(&rig, &format!(r#"{{{conditions},"expected_max":8}}"#)).await;
        assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "timers canceled successfully"), "{}", reply.text);
        assert_eq!(reply.json()["data"], json!({"matched": matched, "canceled": matched}), "{conditions}");
        assert_eq!(canceled(&rig).await, matched, "{conditions}");
        // What is canceled does not match again.
        let reply = cancel(&rig, &format!(r#"{{{conditions},"expected_max":8}}"#)).await;
        assert_eq!(reply.json()["data"], json!({"matched": 0, "canceled": 0}), "{conditions}");
    }
}

#[tokio::test]
async fn if_more_match_than_are_expected_none_is_canceled() {
    let rig = rig().await;
    let reply = cancel(&rig, r#"{"namespace":"n","expected_max":3}"#).await;
    let message = reply.refused(409, 6);
    assert_eq!(message, "more than 3 timers match, and none was changed: raise expected_max if all of them are meant");
    assert_eq!(canceled(&rig).await, 0);
    assert_eq!(cancel(&rig, r#"{"namespace":"n","expected_max":4}"#).await.data("canceled"), 4);
}

#[tokio::test]
async fn timers_that_have_ended_do_not_count() {
    let rig = rig().await;
    rig.complete_all().await;
    rig.created(r#"{"delay":"1h","callback":{"type":"http","url":"http://a"},"namespace":"n"}"#).await;
    let reply = cancel(&rig, r#"{"namespace":"n","expected_max":1}"#).await;
    assert_eq!(reply.json()["data"], json!({"matched": 1, "canceled": 1}));
}

#[tokio::test]
async fn every_bad_request_is_refused_by_name_and_cancels_nothing() {
    let rig = rig().await;
    let long = format!(r#"{{"key_prefix":"{}","expected_max":8}}"#, "k".repeat(256));
    for (body, message) in [
        ("[]", "the body must be a JSON object"),
        ("{}", "expected_max is required"),
        (r#"{"namespace":"n"}"#, "expected_max is required"),
        (r#"{"expected_max":8}"#, "namespace, status, key_prefix, metadata must not all be missing: say which timers are meant"),
        (r#"{"namespace":"n","expected_max":0}"#, "expected_max must be a whole number from 1 to 10000"),
        (r#"{"namespace":"n","expected_max":10001}"#, "expected_max must be a whole number from 1 to 10000"),
        (r#"{"namespace":"n","expected_max":-1}"#, "expected_max must be a whole number from 1 to 10000"),
        (r#"{"namespace":"n","expected_max":"8"}"#, "expected_max must be a whole number from 1 to 10000"),
        (r#"{"namespace":"n","expected_max":null}"#, "expected_max must be a whole number from 1 to 10000"),
        (r#"{"namespace":"n","expected_max":8,"expected_max":9}"#, "expected_max must not be given twice"),
        (r#"{"namespace":"n","expected_max":8,"keyprefix":"a"}"#, "'keyprefix' is not a known field"),
        (r#"{"namespace":"","expected_max":8}"#, "namespace must have 1 to 255 characters"),
        (r#"{"namespace":null,"expected_max":8}"#, "namespace must be a string"),
        (r#"{"status":"failed","expected_max":8}"#, "status must be pending: no other timers can be canceled"),
        (r#"{"status":"Pending","expected_max":8}"#, "status must be pending: no other timers can be canceled"),
        (r#"{"status":null,"expected_max":8}"#, "status must be a string"),
        (r#"{"key_prefix":"","expected_max":8}"#, "key_prefix must have 1 to 255 characters"),
        (long.as_str(), "key_prefix must have 1 to 255 characters"),
        (r#"{"key_prefix":"a\u0000","expected_max":8}"#, "key_prefix must not contain control characters"),
        (r#"{"metadata":{},"expected_max":8}"#, "metadata must have at least one member"),
        (r#"{"metadata":null,"expected_max":8}"#, "metadata must be an object"),
        (r#"{"metadata":[1],"expected_max":8}"#, "metadata must be an object"),
    ] {
        assert_eq!(cancel(&rig, body).await.refused(400, 2), message, "{body}");
    }
    assert_eq!(canceled(&rig).await, 0);
}
