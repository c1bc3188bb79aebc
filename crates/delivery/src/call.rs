use std::borrow::Cow;

use domain::{AttemptLog, Timer, Timestamp, TraceContext};

use crate::SigningSecrets;

/// One attempt to deliver one timer.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub timer: &'a Timer,
    /// 1 for the first.
    pub attempt: u32,
    /// When the attempt was started.
    pub at: Timestamp,
    /// Without them it is not signed.
    pub signing: Option<&'a SigningSecrets>,
    /// The trace that the receiver is told to go on with.
    pub trace: Option<&'a TraceContext>,
    /// Whether the answer is read beyond what the outcome needs.
    pub attempt_log: AttemptLog,
    /// How much of the answer's body is kept with the record; nothing of the answer where it is 0.
    pub answer_bytes_max: usize,
}

impl Call<'_> {
    /// What the receiver knows the timer by: the client's own key, if it gave one.
    pub fn name(&self) -> Cow<'_, str> {
        let definition = &self.timer.definition;
        definition.key.as_ref().map_or_else(|| definition.id.to_string().into(), |key| key.as_str().into())
    }
}
