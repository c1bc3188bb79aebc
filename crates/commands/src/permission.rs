//! Access control. A timer of another tenant does not exist for the caller; only what a request names itself can be forbidden.

use domain::{Caller, Namespace, TimerId};
use store::Filter;

use crate::{CommandError, Commands};

impl Commands {
    /// The same use cases, limited to what this caller may do.
    pub fn on_behalf_of(&self, caller: Caller) -> Self {
        Self { caller, ..self.clone() }
    }

    pub fn check_administrator(&self) -> Result<(), CommandError> {
        allowed(self.caller.is_administrator(), "this takes the administrator's key")
    }

    pub fn check_may_write(&self) -> Result<(), CommandError> {
        allowed(self.caller.may_write(), "this key may only read")
    }

    pub(crate) fn check_open(&self, namespace: &Namespace) -> Result<(), CommandError> {
        allowed(self.caller.sees(namespace), "namespace must be one that this key opens")
    }

    /// Whether the caller may know of this timer. Neither the namespace of a timer nor its id ever changes, so the answer still
    /// holds when the timer is changed afterwards.
    pub(crate) async fn check_seen(&self, id: TimerId) -> Result<(), CommandError> {
        if self.caller.bound_to().is_some() {
            self.get(id).await?;
        }
        Ok(())
    }

    /// The same filter, limited to the timers that this caller may know of.
    pub(crate) fn narrowed(&self, filter: &Filter) -> Result<Filter, CommandError> {
        Ok(Filter { namespaces: self.visible(&filter.namespaces)?, ..filter.clone() })
    }

    /// The namespaces that are meant: those that are named, or all that this caller sees; empty where that is all there are. A key that
    /// opens none is refused: what it sees must not be taken for that.
    pub(crate) fn visible(&self, named: &[Namespace]) -> Result<Vec<Namespace>, CommandError> {
        for namespace in named {
            self.check_open(namespace)?;
        }
        match self.caller.bound_to() {
            Some([]) => Err(CommandError::Forbidden("this key opens no namespace")),
            Some(own) if named.is_empty() => Ok(own.to_vec()),
            _ => Ok(named.to_vec()),
        }
    }
}

const fn allowed(is_allowed: bool, otherwise: &'static str) -> Result<(), CommandError> {
    if is_allowed { Ok(()) } else { Err(CommandError::Forbidden(otherwise)) }
}

#[cfg(test)]
mod tests;
