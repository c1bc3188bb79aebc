use bytes::Bytes;
use domain::{TRACEPARENT, TRACESTATE, Timer, Timestamp, TraceContext};

use crate::{Broker, BrokerError, Event, due_time_reached};

/// Publishes the event of a due timer. `Ok` means that the broker has stored it durably.
pub async fn announce(
    broker: &dyn Broker,
    timer: &Timer,
    attempt: u32,
    trace: Option<&TraceContext>,
    now: Timestamp,
) -> Result<(), BrokerError> {
    let announced = broker.publish(event(timer, attempt, trace, now)).await;
    let result = if announced.is_ok() { "published" } else { "failed" };
    metrics::counter!("timer_events_published_total", "result" => result).increment(1);
    announced
}

/// The event, with the headers that every message about a timer carries.
fn event(timer: &Timer, attempt: u32, trace: Option<&TraceContext>, now: Timestamp) -> Event {
    let parent = trace.map(|trace| (TRACEPARENT, trace.traceparent()));
    let state = trace.and_then(|trace| Some((TRACESTATE, trace.tracestate()?.to_owned())));
    let told = timer.callback_headers(attempt).into_iter().chain(timer.correlation_header()).chain(parent).chain(state);
    Event {
        tenant: timer.definition.namespace.clone(),
        id: timer.webhook_id(),
        headers: told.map(|(name, value)| (name.to_owned(), value)).collect(),
        body: Bytes::from(due_time_reached(timer, now)),
    }
}

#[cfg(test)]
mod tests {
    use domain::{Namespace, Span};

    use super::*;
    use crate::{Memory, rig::timer};

    #[tokio::test]
    async fn an_event_carries_the_headers_of_its_timer() {
        let broker = Memory::default();
        let timer = timer(Some("call-1"), Some("c"));
        let now = timer.execute_at.saturating_add(Span::from_millis(7));
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = TraceContext::parse(parent).unwrap().with_state("vendor=1");
        announce(&broker, &timer, 3, Some(&trace), now).await.unwrap();
        let events = broker.events();
        let [event] = &events[..] else { panic!("{events:?}") };
        let header = |name: &str| event.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        assert_eq!(header("X-Timer-Id"), Some(timer.id().to_string().as_str()));
        assert_eq!(header("X-Timer-Namespace"), Some("acme"));
        assert_eq!(header("X-Timer-Attempt"), Some("3"));
        assert_eq!(header("X-Timer-Scheduled-At"), Some("2030-01-31T12:00:00Z"));
        assert_eq!(header("X-Correlation-Id"), Some("c"));
        assert_eq!((header("traceparent"), header("tracestate")), (Some(parent), Some("vendor=1")));
        assert_eq!(header("webhook-id"), Some(timer.webhook_id().as_str()));
        assert_eq!((event.id.as_str(), &event.tenant), (timer.webhook_id().as_str(), &Namespace::parse("acme").unwrap()));
        assert_eq!(event.body, due_time_reached(&timer, now));
    }

    #[tokio::test]
    async fn a_repeated_announcement_is_the_same_event() {
        let broker = Memory::default();
        let timer = timer(Some("call-1"), None);
        for attempt in [1, 2] {
            announce(&broker, &timer, attempt, None, timer.execute_at).await.unwrap();
        }
        assert_eq!(broker.events().len(), 1);
    }

    #[tokio::test]
    async fn what_the_broker_does_not_take_is_not_announced() {
        let broker = Memory::default();
        broker.set_away(true);
        let timer = timer(Some("call-1"), None);
        let error = announce(&broker, &timer, 1, None, timer.execute_at).await.unwrap_err();
        assert!(matches!(error, BrokerError::Away(_)), "{error}");
        assert!(broker.events().is_empty());
    }
}
