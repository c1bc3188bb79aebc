use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::Timestamp;
use serde::Serialize;
use tokio::{sync::Notify, time::Instant};

/// How many calls are kept: the oldest go first.
pub const CALLS_KEPT: usize = 1_000;
/// How many bytes of bodies are kept.
const BODY_BYTES_KEPT: usize = 64 * 1024 * 1024;

/// One call that the receiver got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// Counts from 1, also over an inbox that was emptied.
    pub seq: u64,
    #[serde(flatten)]
    pub arrival: Arrival,
    /// The first call that is still there with the same `webhook-id`: an attempt before this one, or a repetition.
    pub duplicate_of: Option<u64>,
}

/// A call as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Arrival {
    pub at: Timestamp,
    /// How long after the due time of the timer that was; `None` for a call that names none.
    pub lateness_ms: Option<i64>,
    pub timer_id: Option<String>,
    pub attempt: Option<u64>,
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in small letters.
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// Whether the signature is right; `None` for a call without one.
    pub signature_valid: Option<bool>,
    /// The status of the answer; `None` for a call that is never answered.
    pub answered: Option<u16>,
}

/// Which calls are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboxQuery {
    pub timer: Option<String>,
    /// Without its query.
    pub path: Option<String>,
    /// Only calls with a greater `seq`.
    pub after: u64,
    pub limit: usize,
}

impl InboxQuery {
    fn matches(&self, call: &Call) -> bool {
        call.seq > self.after
            && self.timer.as_ref().is_none_or(|timer| call.arrival.timer_id.as_ref() == Some(timer))
            && self.path.as_ref().is_none_or(|path| without_query(&call.arrival.path) == path)
    }
}

/// The path of a request target.
pub(crate) fn without_query(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// The last calls that the receiver got.
#[derive(Debug, Default)]
pub struct Inbox {
    kept: Mutex<Kept>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    calls: VecDeque<Call>,
    body_bytes: usize,
    /// The `seq` of the last call.
    last: u64,
    /// The first call that is kept, for each `webhook-id`.
    first_of: HashMap<String, u64>,
    is_closed: bool,
}

const WEBHOOK_ID: &str = "webhook-id";

impl Kept {
    fn push(&mut self, arrival: Arrival) {
        self.last += 1;
        let seq = self.last;
        let duplicate_of = arrival.headers.get(WEBHOOK_ID).and_then(|id| match self.first_of.get(id) {
            Some(first) => Some(*first),
            None => {
                self.first_of.insert(id.clone(), seq);
                None
            }
        });
        self.body_bytes += arrival.body.len();
        self.calls.push_back(Call { seq, arrival, duplicate_of });
        while self.calls.len() > CALLS_KEPT || (self.body_bytes > BODY_BYTES_KEPT && self.calls.len() > 1) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some(call) = self.calls.pop_front() else { return };
        self.body_bytes -= call.arrival.body.len();
        if let Some(id) = call.arrival.headers.get(WEBHOOK_ID)
            && self.first_of.get(id) == Some(&call.seq)
        {
            self.first_of.remove(id);
        }
    }
}

impl Inbox {
    /// Keeps a call.
    pub fn record(&self, arrival: Arrival) {
        self.kept().push(arrival);
        self.changed.notify_waiters();
    }

    /// The calls that match, the oldest first.
    pub fn list(&self, query: &InboxQuery) -> Vec<Call> {
        self.kept().calls.iter().filter(|call| query.matches(call)).take(query.limit).cloned().collect()
    }

    /// The last calls before this number, the latest first, and how many are kept in all.
    pub fn latest(&self, before: Option<u64>, limit: usize) -> (Vec<Call>, usize) {
        let kept = self.kept();
        let is_meant = |call: &&Call| before.is_none_or(|before| call.seq < before);
        (kept.calls.iter().rev().filter(is_meant).take(limit).cloned().collect(), kept.calls.len())
    }

    /// The call with this number, if it is still there.
    pub fn get(&self, seq: u64) -> Option<Call> {
        self.kept().calls.iter().find(|call| call.seq == seq).cloned()
    }

    /// The same, once there is one; nothing if there is none within `wait`, or when the service stops.
    pub async fn wait(&self, query: &InboxQuery, wait: Duration) -> Vec<Call> {
        let deadline = Instant::now() + wait;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before it is looked: a call that comes in between is not missed.
            changed.as_mut().enable();
            let calls = self.list(query);
            if !calls.is_empty() || self.kept().is_closed || tokio::time::timeout_at(deadline, changed).await.is_err() {
                return calls;
            }
        }
    }

    /// Forgets all calls; says how many there were. Numbers go on.
    pub fn clear(&self) -> usize {
        let mut kept = self.kept();
        let count = kept.calls.len();
        *kept = Kept { last: kept.last, is_closed: kept.is_closed, ..Kept::default() };
        count
    }

    /// The service stops: clients wait no longer.
    pub fn close(&self) {
        self.kept().is_closed = true;
        self.changed.notify_waiters();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Counts of bytes may be wrong after a panic, which ends at worst with fewer calls that are kept.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn arrival(timer: &str, path: &str, webhook_id: &str) -> Arrival {
        Arrival {
            at: Timestamp::from_micros(0),
            lateness_ms: Some(3),
            timer_id: Some(timer.to_owned()),
            attempt: Some(1),
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: BTreeMap::from([(WEBHOOK_ID.to_owned(), webhook_id.to_owned())]),
            body: "{}".to_owned(),
            signature_valid: Some(true),
            answered: Some(200),
        }
    }

    fn all() -> InboxQuery {
        InboxQuery { limit: CALLS_KEPT, ..InboxQuery::default() }
    }

    #[test]
    fn calls_are_found_by_timer_path_and_number() {
        let inbox = Inbox::default();
        inbox.record(arrival("a", "/x?n=1", "w1"));
        inbox.record(arrival("b", "/y", "w2"));
        inbox.record(arrival("a", "/x", "w1"));
        let seqs = |query: InboxQuery| inbox.list(&query).iter().map(|call| (call.seq, call.duplicate_of)).collect::<Vec<_>>();
        assert_eq!(seqs(all()), [(1, None), (2, None), (3, Some(1))]);
        assert_eq!(seqs(InboxQuery { timer: Some("a".into()), ..all() }), [(1, None), (3, Some(1))]);
        assert_eq!(seqs(InboxQuery { path: Some("/x".into()), after: 1, ..all() }), [(3, Some(1))]);
        assert_eq!(seqs(InboxQuery { limit: 1, ..all() }), [(1, None)]);
        let latest = |before, limit| inbox.latest(before, limit).0.iter().map(|call| call.seq).collect::<Vec<_>>();
        assert_eq!((latest(None, 2), latest(Some(2), 9), inbox.latest(None, 1).1), (vec![3, 2], vec![1], 3));
        assert_eq!((inbox.get(2).map(|call| call.seq), inbox.get(9)), (Some(2), None));
        assert_eq!(inbox.clear(), 3);
        inbox.record(arrival("a", "/x", "w1"));
        assert_eq!(seqs(all()), [(4, None)], "numbers go on, and what is gone has no duplicates");
    }

    #[test]
    fn memory_is_bounded() {
        let inbox = Inbox::default();
        for number in 0..CALLS_KEPT + 5 {
            inbox.record(arrival("a", "/", &number.to_string()));
        }
        assert_eq!((inbox.list(&all()).len(), inbox.list(&all())[0].seq), (CALLS_KEPT, 6));
        assert_eq!(inbox.kept().first_of.len(), CALLS_KEPT);
        let large = Arrival { body: "x".repeat(BODY_BYTES_KEPT / 2), ..arrival("a", "/", "large") };
        for _ in 0..3 {
            inbox.record(large.clone());
        }
        assert!(inbox.kept().body_bytes <= BODY_BYTES_KEPT && inbox.list(&all()).len() == 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_for_a_call_for_a_while() {
        let inbox = Arc::new(Inbox::default());
        assert_eq!(inbox.wait(&all(), Duration::from_secs(10)).await, []);
        let of_b = InboxQuery { timer: Some("b".into()), ..all() };
        let waiting = tokio::spawn({
            let (inbox, of_b) = (inbox.clone(), of_b.clone());
            async move { inbox.wait(&of_b, Duration::from_secs(10)).await }
        });
        tokio::task::yield_now().await;
        inbox.record(arrival("a", "/", "w1"));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        inbox.record(arrival("b", "/", "w2"));
        assert_eq!(waiting.await.unwrap()[0].seq, 2);
        inbox.close();
        inbox.clear();
        assert_eq!(inbox.wait(&of_b, Duration::from_secs(600)).await, [], "the service stops");
    }
}
