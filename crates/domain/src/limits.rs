//! All limits on what a client may send.

use crate::Span;

pub const NAMESPACE_CHARS_MAX: usize = 255;
pub const KEY_CHARS_MAX: usize = 255;
pub const CORRELATION_ID_CHARS_MAX: usize = 255;
pub const GROUP_CHARS_MAX: usize = 255;

pub const URL_CHARS_MAX: usize = 2048;
pub const SUBJECT_BYTES_MAX: usize = 255;

pub const HEADERS_MAX: usize = 32;
pub const HEADER_BYTES_MAX: usize = 4 * 1024;
pub const HEADERS_BYTES_MAX: usize = 16 * 1024;

pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
pub const METADATA_BYTES_MAX: usize = 64 * 1024;
pub const JSON_DEPTH_MAX: usize = 64;
/// A callback that follows the end of a timer, as JSON: it is read with every claim.
pub const FOLLOW_UP_BYTES_MAX: usize = 16 * 1024;

/// What a filter may ask of metadata: how long a path is, and how many conditions there are.
pub const METADATA_PATH_BYTES_MAX: usize = 1024;
pub const METADATA_CONDITIONS_MAX: usize = 16;
/// How long a text is that a filter looks for.
pub const SEARCHED_CHARS_MAX: usize = 1024;

/// A due time that lies no further in the past counts as now: clocks differ, and a request takes time.
pub const PAST_COUNTS_AS_NOW: Span = Span::from_secs(60);

/// Never changes: stores leave it out, and read it into what has none.
pub const CALLBACK_TIMEOUT_DEFAULT: Span = Span::from_secs(30);
pub const CALLBACK_TIMEOUT_MIN: Span = Span::from_millis(100);
pub const CALLBACK_TIMEOUT_MAX: Span = Span::from_secs(300);

/// How many names of one object are looked at to say what is wrong with them: more than any object of ours has.
pub const MEMBER_NAMES_MAX: usize = 64;
/// What is repeated of a name that a client made up.
pub const ECHOED_CHARS_MAX: usize = 64;
pub const RETRIES_MAX: u32 = 1000;
pub const BACKOFF_MULTIPLIER_MAX: f64 = 100.0;
/// How many attempts beyond the retry policy a timer gets because their nodes stopped: more than the crashes of an outage, few
/// enough to end a timer that causes crashes.
pub const RECOVERIES_MAX: u32 = 100;

/// How much of an error is stored: enough to understand it, too little to fill a disk.
pub const LAST_ERROR_CHARS_MAX: usize = 1024;

/// How long the note of a pause may be.
pub const PAUSE_NOTE_CHARS_MAX: usize = 255;

/// How many attempts of a timer are recorded, and how much of an answer.
pub const ATTEMPTS_KEPT: usize = 20;
pub const ATTEMPT_DETAIL_CHARS_MAX: usize = 256;

/// How many timers one request may register, or cancel by filter.
pub const CREATED_AT_ONCE_MAX: usize = 1_000;
pub const CANCELED_AT_ONCE_MAX: usize = 10_000;

pub const KEY_NAME_CHARS_MAX: usize = 100;
/// How many namespaces one key can name.
pub const KEY_NAMESPACES_MAX: usize = 100;
