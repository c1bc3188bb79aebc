use std::{error::Error, fmt, io::Write, process::ExitCode};

use domain::{Cause, Invalid};

/// Why the program ends with an error. Each is one sentence for the operator, and keeps the error that it came from.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something about how it was started must be changed first.
    #[error("{0}")]
    Configuration(#[source] Cause),
    /// It was started well, but could not do its work.
    #[error("{0}")]
    Run(#[source] Cause),
}

impl Failure {
    /// A [`Configuration`](Self::Configuration) failure in these words, with the error that it came from.
    pub fn configuration(sentence: String, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Configuration(Cause::new(sentence, source))
    }

    /// A [`Run`](Self::Run) failure in these words, with the error that it came from.
    pub fn run(sentence: String, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Run(Cause::new(sentence, source))
    }
}

/// A setting that breaks a rule.
impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::configuration(format!("{invalid}."), invalid)
    }
}

/// Tells the operator. A closed standard error is no reason to fail.
pub fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints what was asked for. A closed standard output is no reason to fail.
pub fn print(text: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub fn code(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    say(format_args!("timer: {failure}"));
    match failure {
        Failure::Configuration(_) => ExitCode::from(2),
        Failure::Run(_) => ExitCode::FAILURE,
    }
}
