//! What is asked before many timers are changed.

use std::io::{BufRead, Write};

use crate::{Context, Failure};

/// Asks on the terminal; only `y` and `yes` are a yes.
pub fn confirmed(context: &Context, question: &str) -> Result<(), Failure> {
    if !context.surroundings.is_interactive {
        return Err(Failure::usage("nothing was changed: there is no terminal to ask on, so say --yes"));
    }
    let mut error = std::io::stderr();
    write!(error, "{question} [y/N] ").and_then(|()| error.flush())?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::unexpected("nothing was changed")),
    }
}
