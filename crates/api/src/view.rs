//! Timers as answers show them.

use std::borrow::Cow;

use commands::Summary;
use domain::{
    AnyJson, Callback, CallbackConfig, CallbackKind, CorrelationId, Delivery, Expiry, Group, JsonText, Key, Namespace,
    RetryPolicy, Span, Status, Timer, TimerId, Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

/// A timer without what can be large.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timer)]
pub(crate) struct TimerView {
    /// The timer's id.
    #[schema(value_type = String, format = "uuid", example = "01890a5d-ac96-774b-bcce-b302099a8057")]
    pub id: TimerId,
    #[schema(value_type = String, example = "default")]
    pub namespace: Namespace,
    /// The caller's own id, if one was given.
    #[schema(value_type = Option<String>, required = true, example = "order-456")]
    pub key: Option<Key>,
    /// What the timer belongs to, if a group was given.
    #[schema(value_type = Option<String>, required = true, example = "campaign-7")]
    pub group: Option<Group>,
    pub status: Status,
    /// Whom it calls: `http`, `nats`, or `event` for a timer that came through the broker dialect.
    #[schema(value_type = CallbackKind)]
    pub callback_type: Cow<'static, str>,
    /// When it is due, in UTC.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T12:00:00Z")]
    pub execute_at: Timestamp,
    /// Whole seconds until `execute_at`; 0 once that has passed.
    #[schema(minimum = 0, example = 5400)]
    pub time_left: i64,
    /// When its last delivery ended, if one has.
    #[schema(value_type = Option<String>, required = true, format = DateTime)]
    pub executed_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    pub updated_at: Timestamp,
    /// Rises with every change of the timer's content and due time, and when it is paused, resumed or tried again by a client. The begin
    /// of an attempt, a retry by the service, an end and a cancel leave it. It is the `ETag` of answers with one timer. Send it as
    /// `If-Match` to change this version and no other.
    #[schema(minimum = 1, example = 1)]
    pub revision: u32,
}

/// A timer with everything that is known about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimerDetail)]
pub(crate) struct DetailView {
    #[serde(flatten)]
    pub timer: TimerView,
    /// The callback, with its payload exactly as it was given.
    #[schema(value_type = CallbackConfig)]
    pub callback_config: Callback,
    /// Exactly as it was given.
    #[schema(value_type = AnyJson)]
    pub metadata: Option<JsonText>,
    #[schema(value_type = Option<String>, required = true)]
    pub correlation_id: Option<CorrelationId>,
    #[schema(required = true)]
    pub retry_policy: Option<RetryPolicy>,
    pub delivery: Delivery,
    /// From when on no attempt is started any more, if it expires.
    #[schema(value_type = Option<String>, required = true, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// How long after the due time that is, if it was given so.
    #[schema(value_type = Option<String>, required = true, example = "30m")]
    pub expires_after: Option<Span>,
    /// How long after its first registration it may be postponed to at most.
    #[schema(value_type = Option<String>, required = true, example = "1h")]
    pub postpone_max: Option<Span>,
    /// Who is told when it has completed.
    #[schema(value_type = Option<CallbackConfig>, required = true)]
    pub on_success: Option<Box<Callback>>,
    /// Who is told when it has failed or expired.
    #[schema(value_type = Option<CallbackConfig>, required = true)]
    pub on_failure: Option<Box<Callback>>,
    /// How many deliveries have been started for this due time.
    pub attempt: u32,
    /// Why the last delivery failed, if it did.
    #[schema(required = true)]
    pub last_error: Option<String>,
    /// Since when it is paused, if it is.
    #[schema(value_type = Option<String>, required = true, format = DateTime)]
    pub paused_at: Option<Timestamp>,
    /// What was noted about the pause.
    #[schema(required = true)]
    pub pause_note: Option<String>,
}

impl TimerView {
    pub(crate) fn of(timer: Timer, now: Timestamp) -> Self {
        Self {
            time_left: timer.time_left(now).as_secs_up(),
            id: timer.id(),
            callback_type: timer.definition.callback.kind().into(),
            namespace: timer.definition.namespace,
            key: timer.definition.key,
            group: timer.definition.group,
            status: timer.status,
            execute_at: timer.execute_at,
            executed_at: timer.executed_at,
            created_at: timer.created_at,
            updated_at: timer.updated_at,
            revision: timer.revision,
        }
    }

    pub(crate) fn of_summary(summary: Summary, now: Timestamp) -> Self {
        Self {
            id: summary.id,
            namespace: summary.namespace,
            key: summary.key,
            group: summary.group,
            status: summary.status,
            callback_type: summary.callback_kind.into(),
            execute_at: summary.execute_at,
            time_left: summary.execute_at.since(now).as_secs_up(),
            executed_at: summary.executed_at,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            revision: summary.revision,
        }
    }
}

impl DetailView {
    pub(crate) fn of(timer: Timer, now: Timestamp) -> Self {
        let definition = timer.definition.clone();
        Self {
            expires_at: timer.expires_at(),
            expires_after: match definition.options.expiry {
                Some(Expiry::After(span)) => Some(span),
                Some(Expiry::At(_)) | None => None,
            },
            postpone_max: definition.options.postpone_max,
            on_success: definition.options.on_success,
            on_failure: definition.options.on_failure,
            attempt: timer.attempt,
            last_error: timer.last_error.clone(),
            paused_at: timer.pause.as_ref().map(|pause| pause.at),
            pause_note: timer.pause.as_ref().and_then(|pause| pause.note.clone()),
            timer: TimerView::of(timer, now),
            callback_config: definition.callback,
            metadata: definition.metadata,
            correlation_id: definition.correlation_id,
            retry_policy: definition.retry_policy,
            delivery: definition.delivery,
        }
    }
}
