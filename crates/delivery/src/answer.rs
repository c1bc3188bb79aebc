use crate::Outcome;

/// What a sender brings back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub outcome: Outcome,
    /// Of an HTTP receiver that answered.
    pub status: Option<u16>,
    /// How the answer begins, as far as it was listened to for the record.
    pub body: Vec<u8>,
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, status: None, body: Vec::new() }
    }
}
