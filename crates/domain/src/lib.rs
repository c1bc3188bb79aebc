//! What a timer is: its identity, when it is due, whom it calls, and how its status may change.
//!
//! Everything here is pure: no I/O, no async, and the current time is always an argument. Values are parsed
//! once, at the boundary; past it they are right by construction. A value that clients send or see is described for the OpenAPI document
//! where it is read.

mod access;
mod attempt;
mod backoff;
mod callback;
mod callback_headers;
mod cause;
mod checked_json;
mod clock;
mod conflict;
mod description;
mod destination;
mod duration_histogram;
mod expiry;
mod fair_share;
mod filter_words;
mod fingerprint;
mod follow_up;
mod given;
mod group;
mod headers;
mod id;
mod invalid;
mod json;
pub mod limits;
mod metadata_path;
mod metric;
mod object;
mod options;
mod received_answer;
mod retry;
mod schedule;
mod span;
mod status;
mod subject;
mod timer;
mod timestamp;
mod trace_context;
mod tracer;

pub use access::{Access, AccessKey, AccessKeyId, Caller, Namespaces, Rights};
pub use attempt::{Attempt, AttemptLog};
pub use backoff::Backoff;
// Everything that is public there: a kind of callback is named in that module alone.
pub use callback::*;
pub use callback_headers::{CALL_TIME_HEADER, TIMER_ID_HEADER};
pub use cause::Cause;
pub use clock::{Clock, ManualClock, SystemClock};
pub use conflict::{Content, OnConflict, Resolution, Times, resolve};
pub use description::{AnyJson, choice};
pub use destination::{Destination, ReceiverId, TenantId};
pub use duration_histogram::DurationHistogram;
pub use expiry::Expiry;
pub use fair_share::FairShare;
pub use filter_words::{Bounds, Condition, FILTER_WORDS, filter_parameters, split_filter_words};
pub use fingerprint::Fingerprint;
pub use follow_up::{Ending, follow_up};
pub use given::{FromMember, Given, Json, Whole};
pub use group::Group;
pub use headers::Headers;
pub use id::{CorrelationId, Key, Namespace, Shard, TimerId};
pub use invalid::Invalid;
pub use json::{JsonText, string_in};
pub use metadata_path::MetadataPath;
pub use metric::{Metric, MetricKind, MetricLabel};
pub use object::{MemberNames, StringMembers, names_of, quoted, read_object, read_object_in};
pub use options::Options;
pub use received_answer::{AnswerBody, ReceivedAnswer};
pub use retry::RetryPolicy;
pub use schedule::{Countdown, Horizon, RequestedTime, StoredTime};
pub use span::Span;
pub use status::{Event, Next, Status};
pub use subject::{Subject, SubjectPattern};
pub use timer::{Definition, Delivery, Missed, NewTimer, Pause, Timer};
pub use timestamp::Timestamp;
pub use trace_context::{TRACEPARENT, TRACESTATE, TraceContext};
pub use tracer::{ActiveSpan, Firing, NewSpan, SpanKind, SpanValue, Tracer};
