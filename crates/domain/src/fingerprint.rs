use sha2::{Digest, Sha256};

use crate::{Definition, JsonText, Options, json::without_blanks};

/// A short stand-in for everything a request said except when: equal for requests that mean the same.
///
/// Blanks between JSON tokens do not count; the order of members does, because receivers get to see it. What is stored with a timer
/// without a key is its id: hardly one is ever asked for again, and [`Fingerprint::of_content`] tells what it said.
///
/// Stores keep fingerprints, so that what one version of this program wrote is compared with what a later one makes of the repeated
/// request. A fingerprint must therefore never change for a request that an earlier version could take; the golden values in the tests
/// guard that. See [`Parts::add`] for how a new field of a timer joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    pub fn of(definition: &Definition) -> Self {
        // Most timers have no key, and none of them should pay for a hash, nor for the text of its callback.
        if definition.key.is_none() {
            return Self(definition.id.as_uuid().into_bytes());
        }
        Self::of_content(definition)
    }

    /// Makes the fingerprint of what the request said, also where it has no key: for a request that repeats an id, or chose one that is
    /// taken.
    pub fn of_content(definition: &Definition) -> Self {
        let Definition {
            id: _,
            namespace,
            key,
            asked: _,
            callback,
            metadata,
            correlation_id,
            retry_policy,
            delivery,
            group,
            // The same request, sent again, belongs to another span.
            options: Options { expiry, postpone_max, on_success, on_failure, trace: _ },
        } = definition;
        let mut parts = Parts::default();
        parts.add(FIRST, Some(namespace.as_str()));
        parts.add(FIRST, key.as_ref().map(|key| key.as_str()));
        parts.add(FIRST, Some(&without_blanks(&callback.to_json())));
        parts.add(FIRST, metadata.as_ref().map(JsonText::without_blanks).as_deref());
        parts.add(FIRST, correlation_id.as_ref().map(|id| id.as_str()));
        parts.add(FIRST, retry_policy.as_ref().map(crate::RetryPolicy::to_json).as_deref());
        parts.add(FIRST, Some(delivery.as_str()));
        parts.add(2, expiry.map(|expiry| i64::from(expiry).to_string()).as_deref());
        parts.add(3, postpone_max.map(|span| span.as_micros().to_string()).as_deref());
        parts.add(4, group.as_ref().map(|group| group.as_str()));
        parts.add(5, on_success.as_ref().map(|callback| without_blanks(&callback.to_json())).as_deref());
        parts.add(6, on_failure.as_ref().map(|callback| without_blanks(&callback.to_json())).as_deref());
        parts.finish()
    }
}

/// The version of the fingerprint that has a part.
type Version = u8;

/// Parts of the first version count whether the request has them or not.
const FIRST: Version = 1;

/// What a request said, in a fixed order.
#[derive(Default)]
struct Parts(Sha256);

impl Parts {
    /// Adds what a request said, or did not say, in one of its fields.
    ///
    /// `since` is the version that brought the field. A field that came later counts only where a request has it, so that a request
    /// without it keeps the fingerprint that earlier versions have stored. It is added behind all earlier ones, with the next version,
    /// and `None` stands for its default.
    fn add(&mut self, since: Version, text: Option<&str>) {
        if since > FIRST {
            if text.is_none() {
                return;
            }
            // The version tells a later part from any other that is left out before it.
            self.0.update([since]);
        }
        // Lengths keep neighbouring parts apart; no text at all differs from an empty one.
        self.0.update(text.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
        self.0.update(text.unwrap_or_default());
    }

    fn finish(self) -> Fingerprint {
        let mut short = [0; 16];
        short.copy_from_slice(&self.0.finalize()[..16]);
        Fingerprint(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Callback, CorrelationId, Delivery, Expiry, Group, Key, Namespace, RequestedTime, RetryPolicy, Span, TimerId, Timestamp,
    };

    fn definition(callback: &str) -> Definition {
        let (namespace, key) = (Namespace::parse("tenant").unwrap(), Key::parse("order-7").unwrap());
        Definition {
            id: TimerId::keyed(&namespace, &key),
            namespace,
            key: Some(key),
            asked: RequestedTime::At(Timestamp::from_micros(0)),
            callback: Callback::from_json(callback).unwrap(),
            metadata: None,
            correlation_id: None,
            retry_policy: None,
            delivery: Delivery::AtLeastOnce,
            group: None,
            options: Options::default(),
        }
    }

    fn hex(fingerprint: Fingerprint) -> String {
        fingerprint.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    const PLAIN: &str = r#"{"type":"http","url":"http://a.example/hook"}"#;
    const NATS: &str = r#"{"type":"nats","topic":"orders.late","key":"k","headers":{"X-A":"1"},"payload":null,"jetstream":true}"#;
    const FULL: &str = r#"{"type":"http","url":"https://c.example/x","headers":{"X-A":"1","X-B":"2"},"payload":{"é": 1.0, "b":[ 1 ]},
        "timeout":"5s","protocol":"timer"}"#;

    /// Databases out there hold these: a value that changes turns a repeated request into a conflict. Never change one; add rows.
    #[test]
    fn the_fingerprint_of_a_request_is_the_same_in_every_version() {
        let policy =
            r#"{"max_retries":3,"initial_interval":"1s","backoff_multiplier":1.5,"max_interval":"60s","max_duration":"1h"}"#;
        let full = Definition {
            metadata: Some(JsonText::trusted(r#"{ "team": "é" }"#)),
            correlation_id: Some(CorrelationId::parse("c-7").unwrap()),
            retry_policy: Some(RetryPolicy::from_json(policy).unwrap()),
            delivery: Delivery::AtMostOnce,
            ..definition(FULL)
        };
        let default_policy = Definition { retry_policy: Some(RetryPolicy::default()), ..definition(PLAIN) };
        let event = Definition { callback: Callback::EVENT, ..definition(PLAIN) };
        let expiring =
            |expiry| Definition { options: Options { expiry: Some(expiry), ..Options::default() }, ..definition(PLAIN) };
        let postpone_max = Some(Span::from_secs(90));
        let limited = Definition { options: Options { postpone_max, ..Options::default() }, ..definition(PLAIN) };
        let grouped = Definition { group: Some(Group::parse("g").unwrap()), ..definition(PLAIN) };
        let other = || Some(Box::new(Callback::from_json(NATS).unwrap()));
        let followed = Definition { options: Options { on_success: other(), ..Options::default() }, ..definition(PLAIN) };
        let reported = Definition { options: Options { on_failure: other(), ..Options::default() }, ..definition(PLAIN) };
        let trace = crate::TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").map(Into::into);
        let traced = Definition { options: Options { trace, ..Options::default() }, ..definition(PLAIN) };
        // The last two are from databases that the first version wrote.
        let order_5 = Key::parse("order-5").unwrap();
        let stored_5 = Definition { key: Some(order_5), ..definition(r#"{"type":"http","url":"http://a.example/"}"#) };
        let stored_7 = Definition {
            metadata: Some(JsonText::trusted(r#"{"a":1}"#)),
            ..definition(r#"{"type":"http","url":"http://a.example/hook","payload":{"n": 1.0}}"#)
        };
        for (what, definition, golden) in [
            ("the least that can be said", definition(PLAIN), "ce27dffc29987b5ca18574406f98c9f5"),
            ("the same in a trace", traced, "ce27dffc29987b5ca18574406f98c9f5"),
            ("everything that can be said", full, "7e55845aeb88a4b31f53e06b7662e2fd"),
            ("the default retry policy", default_policy, "6758f32f62deb73d95b555333c802ffb"),
            ("an instant of expiry", expiring(Expiry::At(Timestamp::from_micros(90))), "16cc62ecdd26d5041d8d3a7315b138f2"),
            ("a span to expiry", expiring(Expiry::After(Span::from_secs(90))), "82fb2633a34b50d19efc18f28f35f312"),
            ("a limit of postponing", limited, "d8b8475392f58513b8a1fc36ac1fb63e"),
            ("a group", grouped, "a2479f13c4a5828093f399e27f293164"),
            ("a call after success", followed, "9913d7c78a35d4907a5456dfe0003444"),
            ("a call after failure", reported, "60bdcb3bf799159245e126819687186e"),
            ("a message", definition(NATS), "db6848abf7fd9dc3450f3239f007218b"),
            ("the event of a command", event, "5a187cfb58a177628ad6fea4901003b9"),
            ("an order in SQLite", stored_5, "1a91dcc8b02efaf7141b57df0c0b8b11"),
            ("an order in PostgreSQL", stored_7, "01c3d401dd5aea37c211f443bd79db23"),
        ] {
            assert_eq!(hex(definition.fingerprint()), golden, "{what}");
        }
    }

    #[test]
    fn what_a_store_leaves_out_of_a_callback_counts_all_the_same() {
        for json in [PLAIN, NATS, FULL] {
            let given = definition(json);
            for stored in [given.callback.to_json(), given.callback.to_stored()] {
                let callback = Callback::from_stored(&stored).unwrap();
                let followed = |callback| {
                    let on_success = Some(Box::new(callback));
                    Definition { options: Options { on_success, ..Options::default() }, ..definition(PLAIN) }
                };
                assert_eq!(followed(callback.clone()).fingerprint(), followed(given.callback.clone()).fingerprint(), "{stored}");
                assert_eq!(Definition { callback, ..definition(PLAIN) }.fingerprint(), given.fingerprint(), "{stored}");
            }
        }
    }

    #[test]
    fn a_timer_without_a_key_is_like_no_other() {
        let id = TimerId::parse("id", "00000000-0000-7000-8000-000000000001").unwrap();
        let definition = Definition { id, key: None, ..definition(PLAIN) };
        assert_eq!(hex(definition.fingerprint()), "00000000000070008000000000000001");
    }

    #[test]
    fn a_field_that_came_later_counts_only_where_it_is_said() {
        let with = |later: &[(Version, Option<&str>)]| {
            let mut parts = Parts::default();
            parts.add(FIRST, Some("tenant"));
            parts.add(FIRST, None);
            for (since, text) in later {
                parts.add(*since, *text);
            }
            hex(parts.finish())
        };
        let before = with(&[]);
        assert_eq!(with(&[(2, None)]), before);
        assert_eq!(with(&[(2, None), (3, None)]), before);
        let said =
            [with(&[(2, Some(""))]), with(&[(2, Some("a"))]), with(&[(3, Some("a"))]), with(&[(2, Some("a")), (3, Some("a"))])];
        for (place, fingerprint) in said.iter().enumerate() {
            assert!(*fingerprint != before && !said[..place].contains(fingerprint), "{place}");
        }
    }
}
