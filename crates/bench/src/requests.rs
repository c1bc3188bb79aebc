//! The requests of the load, written byte by byte: making them must cost little compared to answering them.

use std::{fmt::Write as _, ops::Range};

use domain::Timestamp;

use crate::plan::{Plan, mix};

/// How many timers share a namespace: as many as one request can cancel.
pub const TIMERS_PER_NAMESPACE: u64 = 10_000;

const MICROS_PER_SECOND: i64 = 1_000_000;
/// How much later an update makes a timer due.
const POSTPONED_MICROS: i64 = 600_000_000;
/// The filling of a payload: together with its number about 500 bytes, the size of a small order or message.
const FILLING: &str = concat!(
    r#""kind":"cart.abandoned","customer":{"id":"c-48151623","locale":"en-GB","segment":"returning","marketing":false},"#,
    r#""items":[{"sku":"TP-1001-BLK","name":"Espresso cup, stoneware, black","quantity":4,"price":"12.50"},"#,
    r#"{"sku":"TP-2042-OAK","name":"Serving board, oiled oak, large","quantity":1,"price":"38.90"}],"#,
    r#""total":{"amount":"88.90","currency":"EUR"},"channel":"web","campaign":null,"attempt":1,"#,
    r#""links":{"cart":"https://shop.example/cart/48151623","support":"https://shop.example/help"}"#
);

/// Writes requests of one round.
#[derive(Debug, Clone)]
pub struct Requests {
    host: String,
    api_key: String,
    origins: Vec<String>,
    round: u64,
    plan: Plan,
    /// Whether creates carry an id that follows from the number, by which the timer can be changed later.
    has_ids: bool,
    timers_per_namespace: u64,
    /// The last second that was formatted, as text: neighbouring timers are mostly due in the same one.
    second: (i64, String),
    body: String,
}

impl Requests {
    pub fn new(host: &str, api_key: &str, origins: &[String], round: u64, plan: Plan) -> Self {
        let (host, api_key, origins) = (host.to_owned(), api_key.to_owned(), origins.to_vec());
        Self {
            host,
            api_key,
            origins,
            round,
            plan,
            has_ids: false,
            timers_per_namespace: TIMERS_PER_NAMESPACE,
            second: (i64::MIN, String::new()),
            body: String::new(),
        }
    }

    /// The same with an id in every create.
    pub const fn with_ids(mut self) -> Self {
        self.has_ids = true;
        self
    }

    /// The same with all timers in one namespace.
    pub const fn in_one_namespace(mut self) -> Self {
        self.timers_per_namespace = u64::MAX;
        self
    }

    /// `POST /timers` for timer `number`.
    pub fn create(&mut self, number: u64, request: &mut Vec<u8>) {
        self.body.clear();
        self.push_timer(number);
        self.finish("POST", "/timers", request);
    }

    /// `POST /timers/batch` for all of `numbers`.
    pub fn batch(&mut self, numbers: Range<u64>, request: &mut Vec<u8>) {
        self.body.clear();
        self.body.push_str(r#"{"timers":["#);
        for number in numbers.clone() {
            if number != numbers.start {
                self.body.push(',');
            }
            self.push_timer(number);
        }
        self.body.push_str("]}");
        self.finish("POST", "/timers/batch", request);
    }

    /// `DELETE /timers/{id}` for timer `number`, which was created with its id.
    pub fn cancel(&mut self, number: u64, request: &mut Vec<u8>) {
        self.body.clear();
        self.finish("DELETE", &format!("/timers/{}", self.id(number)), request);
    }

    /// `PUT /timers/{id}` for timer `number`, which was created with its id: makes it due later.
    pub fn update(&mut self, number: u64, request: &mut Vec<u8>) {
        self.body.clear();
        self.body.push_str(r#"{"execute_at":""#);
        self.push_instant(self.plan.due(number) + POSTPONED_MICROS);
        self.body.push_str(r#""}"#);
        self.finish("PUT", &format!("/timers/{}", self.id(number)), request);
    }

    /// The first page of one of the lists that users look at most, in the namespace of timer 0.
    pub fn list(&mut self, number: u64, request: &mut Vec<u8>) {
        let namespace = format!("&namespace=bench-{}-0", self.round);
        let filter = match number % 4 {
            0 => format!("&status=pending{namespace}"),
            1 => "&status=pending".to_owned(),
            2 => namespace,
            _ => "&status=executing".to_owned(),
        };
        self.get(&format!("/timers?limit=50{filter}"), request);
    }

    /// `POST /timers/bulk` that cancels every pending timer of one namespace of this round.
    pub fn cancel_many(&mut self, namespace: u64, request: &mut Vec<u8>) {
        self.body.clear();
        let round = self.round;
        put(
            &mut self.body,
            format_args!(
                concat!(
                    r#"{{"action":"cancel","filter":{{"namespace":"bench-{}-{}","status":"pending"}},"#,
                    r#""expected_max":1000000000}}"#
                ),
                round, namespace
            ),
        );
        self.finish("POST", "/timers/bulk", request);
    }

    /// `POST /timers/cancel` for one namespace of this round.
    pub fn cancel_namespace(&mut self, namespace: u64, request: &mut Vec<u8>) {
        self.body.clear();
        let round = self.round;
        put(&mut self.body, format_args!(r#"{{"namespace":"bench-{round}-{namespace}","expected_max":{TIMERS_PER_NAMESPACE}}}"#));
        self.finish("POST", "/timers/cancel", request);
    }

    /// A GET request for `path`.
    pub fn get(&mut self, path: &str, request: &mut Vec<u8>) {
        self.body.clear();
        self.finish("GET", path, request);
    }

    fn push_timer(&mut self, number: u64) {
        self.body.push('{');
        if self.has_ids {
            let id = self.id(number);
            put(&mut self.body, format_args!(r#""id":"{id}","#));
        }
        self.body.push_str(r#""execute_at":""#);
        self.push_instant(self.plan.due(number));
        let (round, namespace) = (self.round, number / self.timers_per_namespace);
        let origins = self.origins.len().max(1) as u64;
        let index = usize::try_from(number % origins).unwrap_or_default();
        let origin = self.origins.get(index).map(String::as_str).unwrap_or_default();
        put(
            &mut self.body,
            format_args!(
                concat!(
                    r#"","namespace":"bench-{}-{}","callback":{{"type":"http","url":"{}/{}/{}","#,
                    r#""payload":{{"number":{},{}}}}}}}"#
                ),
                round, namespace, origin, round, number, number, FILLING
            ),
        );
    }

    /// A UUIDv7 of the moment in which the round began, the same for a number each time.
    fn id(&self, number: u64) -> String {
        let (millis, random) = (self.round / 1_000, mix(self.round ^ number.rotate_left(32)));
        let variant = 0x8000 | (random >> 48) & 0x3fff;
        format!(
            "{:08x}-{:04x}-7{:03x}-{variant:04x}-{:012x}",
            millis >> 16 & 0xffff_ffff,
            millis & 0xffff,
            number & 0xfff,
            random & 0xffff_ffff_ffff
        )
    }

    fn push_instant(&mut self, micros: i64) {
        let second = micros.div_euclid(MICROS_PER_SECOND);
        if self.second.0 != second {
            let text = Timestamp::from_micros(second.saturating_mul(MICROS_PER_SECOND)).to_string();
            self.second = (second, text.trim_end_matches('Z').to_owned());
        }
        self.body.push_str(&self.second.1);
        put(&mut self.body, format_args!(".{:06}Z", micros.rem_euclid(MICROS_PER_SECOND)));
    }

    fn finish(&self, method: &str, path: &str, request: &mut Vec<u8>) {
        let (host, api_key, length) = (&self.host, &self.api_key, self.body.len());
        request.clear();
        for piece in [method, " ", path, " HTTP/1.1\r\nhost: ", host, "\r\nx-api-key: ", api_key] {
            request.extend_from_slice(piece.as_bytes());
        }
        if length > 0 {
            request.extend_from_slice(b"\r\ncontent-type: application/json\r\ncontent-length: ");
            request.extend_from_slice(length.to_string().as_bytes());
        }
        request.extend_from_slice(b"\r\n\r\n");
        request.extend_from_slice(self.body.as_bytes());
    }
}

/// Writing to a string cannot fail.
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}

/// The call that the sink would get for timer `number`, as the service makes it, to measure the ceiling without a service.
pub fn call(host: &str, round: u64, number: u64, request: &mut Vec<u8>) {
    let body = format!(r#"{{"number":{number},{FILLING}}}"#);
    let head = format!(
        "POST /{round}/{number} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    request.clear();
    request.extend_from_slice(head.as_bytes());
    request.extend_from_slice(body.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::wire;

    fn requests(plan: Plan) -> Requests {
        let origins = ["http://127.0.0.1:1", "http://127.0.0.1:2"].map(str::to_owned);
        Requests::new("localhost:8080", "secret", &origins, 7, plan)
    }

    fn body(request: &[u8]) -> Value {
        let extent = wire::extent(request).unwrap().unwrap();
        assert_eq!(extent.bytes(), request.len());
        serde_json::from_slice(&request[extent.head_bytes..]).unwrap()
    }

    #[test]
    fn a_create_carries_its_number_its_due_time_and_half_a_kilobyte() {
        let mut request = Vec::new();
        // 2030-01-31T10:30:00Z, and 50 microseconds for each number.
        requests(Plan::Every { first: 1_896_085_800_000_000, gap: 50 }).create(10_003, &mut request);
        assert!(request.starts_with(b"POST /timers HTTP/1.1\r\nhost: localhost:8080\r\nx-api-key: secret\r\n"));
        let timer = body(&request);
        assert_eq!(timer["execute_at"], "2030-01-31T10:30:00.500150Z");
        assert_eq!(timer["namespace"], "bench-7-1");
        assert_eq!(timer["callback"]["url"], "http://127.0.0.1:2/7/10003");
        assert_eq!(timer["callback"]["payload"]["number"], 10_003);
        let payload = timer["callback"]["payload"].to_string().len();
        assert!((500..=600).contains(&payload), "{payload}");
    }

    #[test]
    fn a_batch_holds_one_after_the_other_and_crosses_seconds_rightly() {
        let mut request = Vec::new();
        requests(Plan::Every { first: 1_896_085_799_999_999, gap: 1 }).batch(0..3, &mut request);
        let batch = body(&request);
        let instants: Vec<_> = batch["timers"].as_array().unwrap().iter().map(|timer| timer["execute_at"].clone()).collect();
        assert_eq!(instants, ["2030-01-31T10:29:59.999999Z", "2030-01-31T10:30:00.000000Z", "2030-01-31T10:30:00.000001Z"]);
    }

    #[test]
    fn a_timer_is_changed_by_the_id_with_which_it_was_created() {
        let (mut create, mut cancel, mut update) = (Vec::new(), Vec::new(), Vec::new());
        let mut requests = requests(Plan::Every { first: 1_896_085_800_000_000, gap: 0 }).with_ids();
        for number in [0, 1, 4_097] {
            requests.create(number, &mut create);
            let id = body(&create)["id"].as_str().unwrap().to_owned();
            assert_eq!(domain::TimerId::parse_chosen("id", &id).unwrap().to_string(), id);
            requests.cancel(number, &mut cancel);
            assert!(cancel.starts_with(format!("DELETE /timers/{id} HTTP/1.1\r\n").as_bytes()));
            requests.update(number, &mut update);
            assert!(update.starts_with(format!("PUT /timers/{id} HTTP/1.1\r\n").as_bytes()));
            assert_eq!(body(&update)["execute_at"], "2030-01-31T10:40:00.000000Z");
        }
        let ids: std::collections::BTreeSet<String> = (0..10_000).map(|number| requests.id(number)).collect();
        assert_eq!(ids.len(), 10_000);
    }

    #[test]
    fn a_namespace_can_hold_a_whole_round() {
        let mut request = Vec::new();
        let mut requests = requests(Plan::Every { first: 0, gap: 0 }).in_one_namespace();
        requests.create(5_000_000, &mut request);
        assert_eq!(body(&request)["namespace"], "bench-7-0");
        requests.cancel_many(0, &mut request);
        assert_eq!(body(&request)["filter"], serde_json::json!({"namespace": "bench-7-0", "status": "pending"}));
        requests.list(0, &mut request);
        assert!(request.starts_with(b"GET /timers?limit=50&status=pending&namespace=bench-7-0 HTTP/1.1\r\n"));
    }

    #[test]
    fn a_request_that_asks_has_no_body() {
        let mut request = Vec::new();
        requests(Plan::Every { first: 0, gap: 0 }).get("/cluster", &mut request);
        assert_eq!(request, b"GET /cluster HTTP/1.1\r\nhost: localhost:8080\r\nx-api-key: secret\r\n\r\n");
    }

    #[test]
    fn the_call_for_the_ceiling_is_one_that_the_sink_understands() {
        let mut request = Vec::new();
        call("127.0.0.1:1", 7, 12, &mut request);
        assert_eq!(wire::hook(&request), Some((7, 12)));
        assert_eq!(body(&request)["number"], 12);
    }
}
