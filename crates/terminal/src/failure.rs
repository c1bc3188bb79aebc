use std::{io::Write, process::ExitCode};

use client::Error;
use domain::Invalid;

/// Why a command ends with an error: its exit code, and one sentence for people. The codes from 1 to 6 are those of the envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub exit: u8,
    sentence: String,
    /// What the service said, for `-o json`.
    envelope: Option<String>,
}

/// The service cannot be reached.
pub const UNREACHABLE: u8 = 7;
/// `--wait` or `--timeout` ran out.
pub const OUT_OF_TIME: u8 = 8;
/// The timer that was waited for has ended, and not well.
pub const ENDED_OTHERWISE: u8 = 9;

impl Failure {
    pub fn new(exit: u8, sentence: impl Into<String>) -> Self {
        Self { exit, sentence: sentence.into(), envelope: None }
    }

    pub fn unexpected(sentence: impl Into<String>) -> Self {
        Self::new(1, sentence)
    }

    pub fn usage(sentence: impl Into<String>) -> Self {
        Self::new(2, sentence)
    }

    /// The same with the words of the service as they are.
    #[must_use]
    pub fn in_json(self, is_json: bool) -> Self {
        if is_json { self } else { Self { envelope: None, ..self } }
    }

    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    pub(crate) fn tell(self) -> ExitCode {
        // A closed standard error is no reason to fail otherwise.
        let _ = match &self.envelope {
            Some(envelope) => writeln!(std::io::stderr(), "{envelope}"),
            None if self.sentence.is_empty() => Ok(()),
            None => writeln!(std::io::stderr(), "timer: {}.", self.sentence.trim_end_matches('.')),
        };
        ExitCode::from(self.exit)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Unreachable { .. } => UNREACHABLE,
            Error::Usage(_) => 2,
            // What is not from the service is not a code of it.
            other => other.refusal().and_then(|refusal| refusal.code).unwrap_or(1),
        };
        let envelope = error.refusal().filter(|refusal| refusal.code.is_some()).map(|refusal| refusal.envelope.clone());
        Self { exit, sentence: error.to_string(), envelope }
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::usage(invalid.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::unexpected(error.to_string())
    }
}
