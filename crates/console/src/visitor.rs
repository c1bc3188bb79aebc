//! Who looks at a page, and through which eyes.

use std::{convert::Infallible, net::IpAddr, sync::Arc};

use axum::extract::{ConnectInfo, FromRequestParts};
use commands::Commands;
use domain::{Caller, Namespace, Timestamp};
use http::{Extensions, request::Parts};

use crate::{ConsoleMode, Shared, config::Payloads, fields::Fields, preferences::Preferences, problem::Problem};

/// A viewer that has logged in. The commands are those that its key permits; pages can call no others.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) commands: Arc<Commands>,
    /// When its cookie runs out, by the clock of the machine.
    pub(crate) session_ends_at: Timestamp,
    pub(crate) preferences: Preferences,
    /// Scheme and authority under which the viewer has opened the console.
    pub(crate) origin: String,
    /// The page that is asked for, behind the base path, with its query.
    pub(crate) path: String,
    /// The namespaces that it can choose from, as far as they are known.
    pub(crate) namespaces: Arc<[Namespace]>,
    /// Whether the database did not answer when it was last asked.
    pub(crate) is_database_away: bool,
    /// Whether this is a region of a page that is sent again because something has changed. What only counts time is left to the
    /// script then, so that nothing is sent for the passing of time.
    pub(crate) is_live: bool,
}

impl Visitor {
    /// The address of a page of the console: `""` is the overview.
    pub(crate) fn link(&self, path: &str) -> String {
        format!("{}/console{path}", self.shared.config.base_path)
    }

    pub(crate) fn link_to(&self, path: &str, fields: &Fields) -> String {
        self.link(path) + &fields.to_query()
    }

    /// The list of the timers that these words name.
    pub(crate) fn link_to_timers(&self, words: &str) -> String {
        self.link_to("/timers", &Fields::from([("q", words)]))
    }

    /// The same list in the order in which they are due.
    pub(crate) fn link_to_next_timers(&self, words: &str) -> String {
        self.link_to("/timers", &Fields::from([("q", words), ("sort", "due"), ("order", "asc")]))
    }

    /// The address of the API.
    pub(crate) fn api(&self) -> String {
        format!("{}{}", self.origin, self.shared.config.base_path)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.commands.clock.now()
    }

    pub(crate) fn may_write(&self) -> bool {
        self.commands.caller.may_write() && self.shared.config.mode == ConsoleMode::On
    }

    /// Refuses a page that exists for its form only, where the form could not be sent.
    pub(crate) fn check_may_write(&self) -> Result<(), Problem> {
        if self.shared.config.mode == ConsoleMode::ReadOnly {
            return Err(Problem::ReadOnlyConsole);
        }
        Ok(self.commands.check_may_write()?)
    }

    pub(crate) fn is_administrator(&self) -> bool {
        self.commands.caller.is_administrator()
    }

    /// What the viewer is called.
    pub(crate) fn name(&self) -> &str {
        match &self.commands.caller {
            Caller::Administrator => "administrator",
            Caller::Holder(key) => &key.name,
        }
    }

    pub(crate) fn payloads(&self) -> Payloads {
        self.shared.config.payloads
    }
}

impl FromRequestParts<Arc<Shared>> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, Problem> {
        // The guard has put it there, or has refused the request.
        parts.extensions.get().cloned().ok_or(Problem::LoggedOut)
    }
}

/// The address that the request came from, where the listener tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub Option<IpAddr>);

impl Peer {
    pub(crate) fn of(extensions: &Extensions) -> Self {
        Self(extensions.get().map(|ConnectInfo(address): &ConnectInfo<IpAddr>| *address))
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
