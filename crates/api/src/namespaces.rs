//! `GET /namespaces`: the namespaces that a key opens, and what they have.

use commands::{ListedNamespace, ListedNamespaces};
use domain::{RetryPolicy, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope},
    error::ApiError,
};

/// Namespaces with what they have.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Namespaces)]
pub(crate) struct NamespacesView {
    /// By name.
    namespaces: Vec<NamespaceView>,
    /// Whether a part of the pending timers was counted and the rest inferred from it, because there are very many.
    #[schema(example = false)]
    pending_is_estimate: bool,
    /// Whether there are more failed timers than were counted.
    #[schema(example = false)]
    failed_is_estimate: bool,
    /// Whether these are all: of the namespaces that have timers, the first 1,000 are listed.
    #[schema(example = true)]
    complete: bool,
}

/// A namespace.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Namespace)]
struct NamespaceView {
    #[schema(example = "billing")]
    name: String,
    /// Timers that are pending.
    #[schema(minimum = 0, example = 1200)]
    pending: u64,
    /// Timers that have failed and are still there.
    #[schema(minimum = 0, example = 3)]
    failed: u64,
    /// When its oldest pending timer was due, if one is overdue.
    #[schema(value_type = Option<String>, required = true, format = DateTime)]
    oldest_overdue: Option<Timestamp>,
    /// Whether the operator has set a retry policy for it.
    #[schema(example = true)]
    has_retry_policy: bool,
    /// How calls of timers without a policy of their own are tried again, where the operator has set that.
    #[schema(required = true)]
    retry_policy: Option<RetryPolicy>,
    /// Whether its calls are signed with a secret of its own.
    #[schema(example = true)]
    has_signing_secret: bool,
    /// Whether the operator has limited the NATS subjects it may publish to.
    #[schema(example = false)]
    has_subjects: bool,
}

impl From<ListedNamespace> for NamespaceView {
    fn from(ListedNamespace { count, settings }: ListedNamespace) -> Self {
        Self {
            name: count.namespace.to_string(),
            pending: count.pending,
            failed: count.failed,
            oldest_overdue: count.oldest_overdue,
            has_retry_policy: settings.retry_policy.is_some(),
            retry_policy: settings.retry_policy,
            has_signing_secret: settings.has_signing_secret,
            has_subjects: settings.has_subjects,
        }
    }
}

/// Namespaces
///
/// The namespaces that have timers, or for which the operator has set something; for a key that is bound to namespaces, all of those.
/// The answer may be up to a second old. Where timers are counted, that takes a quarter of a second at most, and numbers that are
/// estimates say so.
#[utoipa::path(
    get, path = "/namespaces", tag = "stats", operation_id = "listNamespaces", security(("ApiKey" = [])),
    responses((status = 200, description = "The namespaces: `success`.", body = Envelope<NamespacesView>))
)]
pub(crate) async fn namespaces(Permitted(commands): Permitted) -> Result<Answer<NamespacesView>, ApiError> {
    let ListedNamespaces { namespaces, pending_is_estimate, failed_is_estimate, is_complete } = commands.namespaces().await?;
    let namespaces = namespaces.into_iter().map(NamespaceView::from).collect();
    Ok(Answer::ok("success", NamespacesView { namespaces, pending_is_estimate, failed_is_estimate, complete: is_complete }))
}
