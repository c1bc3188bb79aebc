use std::{fmt, io::Write, process::ExitCode};

use domain::Invalid;

/// Why the program ends with an error. Each is one sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something about how it was started must be changed first.
    #[error("{0}")]
    Configuration(String),
    /// It was started well, but could not do its work.
    #[error("{0}")]
    Run(String),
}

/// A setting that breaks a rule.
impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::Configuration(format!("{invalid}."))
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
