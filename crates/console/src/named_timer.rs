//! The timer that a path names.

use domain::{Timer, TimerId};

use crate::{problem::Problem, visitor::Visitor};

pub(crate) async fn read(visitor: &Visitor, id: &str) -> Result<Timer, Problem> {
    let id = TimerId::parse("id", id).map_err(|_| Problem::NoSuchPage)?;
    Ok(visitor.commands.get(id).await?)
}

/// Its key, or its id where it has none.
pub(crate) fn name_of(timer: &Timer) -> String {
    timer.definition.key.as_ref().map_or_else(|| timer.id().to_string(), ToString::to_string)
}
