//! What a timer is: its identity, when it is due, whom it calls, and how its status may change.
//!
//! Everything here is pure: no I/O, no async, and the current time is always an argument. Values are parsed
//! once, at the boundary; past it they are right by construction.

mod access;
mod attempt;
mod backoff;
mod callback;
mod callback_headers;
mod cause;
mod clock;
mod conflict;
mod destination;
mod expiry;
mod fair_share;
mod fingerprint;
mod follow_up;
mod given;
mod group;
mod headers;
mod id;
mod invalid;
mod json;
pub mod limits;
mod metric;
mod object;
mod options;
mod retry;
mod schedule;
mod span;
mod status;
mod subject;
mod timer;
mod timestamp;

pub use access::{Access, AccessKey, AccessKeyId, Caller, Namespaces, Rights};
pub use attempt::{Attempt, AttemptLog};
pub use backoff::Backoff;
pub use callback::{Backend, Callback, CallbackKind, CallbackUrl, Endpoint, HttpEndpoint, KindSet, NatsEndpoint, Protocol};
pub use callback_headers::{CALL_TIME_HEADER, TIMER_ID_HEADER};
pub use cause::Cause;
pub use clock::{Clock, ManualClock, SystemClock};
pub use conflict::{Content, OnConflict, Resolution, Times, resolve};
pub use destination::{Destination, ReceiverId, TenantId};
pub use expiry::Expiry;
pub use fair_share::FairShare;
pub use fingerprint::Fingerprint;
pub use follow_up::{Ending, follow_up};
pub use given::{FromMember, Given, Json, Whole};
pub use group::Group;
pub use headers::Headers;
pub use id::{CorrelationId, Key, Namespace, Shard, TimerId};
pub use invalid::Invalid;
pub use json::{JsonText, string_in};
pub use metric::{Metric, MetricKind, MetricLabel};
pub use object::{MemberNames, names_of, quoted, read_object, read_object_in};
pub use options::Options;
pub use retry::RetryPolicy;
pub use schedule::{Countdown, Horizon, RequestedTime};
pub use span::Span;
pub use status::{Event, Next, Status};
pub use subject::{Subject, SubjectPattern};
pub use timer::{Definition, Delivery, NewTimer, Timer};
pub use timestamp::Timestamp;
