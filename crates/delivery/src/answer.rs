use domain::CallbackKind;

use crate::{Failure, FailureKind, Outcome};

/// How a call ended, as its sender saw it.
#[derive(Debug)]
pub struct Answer {
    pub outcome: Outcome,
    /// The status of an HTTP receiver that answered.
    pub status: Option<u16>,
    /// Those of its headers that are kept with a record.
    pub headers: Vec<(String, String)>,
    /// How the answer begins, as far as it was read for the record.
    pub body: Vec<u8>,
}

impl Answer {
    /// To a call that is not of the sender's kind. The registry makes none.
    pub(crate) fn misdirected(kind: CallbackKind) -> Self {
        Outcome::from(Failure::new(FailureKind::Request, format!("cannot be sent: it is not a callback of type {kind}"))).into()
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, status: None, headers: Vec::new(), body: Vec::new() }
    }
}
