use std::{collections::BTreeMap, sync::Arc};

use domain::{Namespace, RetryPolicy};
use store::{NamespaceCount, NamespaceCounts};

use super::{BUDGET, is_meant};
use crate::{CommandError, Commands};

/// What the operator has decided for one namespace. Of its secret no more than that there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceSettings {
    pub namespace: Namespace,
    pub retry_policy: Option<RetryPolicy>,
    pub has_signing_secret: bool,
    pub has_subjects: bool,
}

/// The namespaces that the caller sees.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedNamespaces {
    /// Sorted by name.
    pub namespaces: Vec<ListedNamespace>,
    pub pending_is_estimate: bool,
    pub failed_is_estimate: bool,
    /// Whether these are all.
    pub is_complete: bool,
}

/// One namespace, with what it has and what was decided for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedNamespace {
    pub count: NamespaceCount,
    pub settings: NamespaceSettings,
}

impl Commands {
    /// Those that have timers or settings; for a key that is bound to namespaces, all of those.
    pub async fn namespaces(&self) -> Result<ListedNamespaces, CommandError> {
        let visible = self.visible(&[])?;
        let (stats, asked, now) = (Arc::clone(&self.stores.stats), visible.clone(), self.clock.now());
        let counting = self.scan(async move { stats.namespace_counts(&asked, now, BUDGET).await });
        let NamespaceCounts { namespaces, pending_is_estimate, failed_is_estimate, is_complete } =
            self.stats.namespaces.get(&visible, self.clock.as_ref(), counting).await?;
        let mut counts: BTreeMap<_, _> = namespaces.into_iter().map(|count| (count.namespace.clone(), count)).collect();
        for NamespaceSettings { namespace, .. } in self.stats.configured.iter() {
            if is_meant(&visible, namespace) && !counts.contains_key(namespace) {
                let count = NamespaceCount { namespace: namespace.clone(), pending: 0, failed: 0, oldest_overdue: None };
                counts.insert(namespace.clone(), count);
            }
        }
        let listed = |count: NamespaceCount| ListedNamespace { settings: self.settings_of(&count.namespace), count };
        let namespaces = counts.into_values().map(listed).collect();
        Ok(ListedNamespaces { namespaces, pending_is_estimate, failed_is_estimate, is_complete })
    }

    fn settings_of(&self, namespace: &Namespace) -> NamespaceSettings {
        let own = self.stats.configured.iter().find(|settings| settings.namespace == *namespace);
        own.cloned().unwrap_or_else(|| NamespaceSettings {
            namespace: namespace.clone(),
            retry_policy: None,
            has_signing_secret: false,
            has_subjects: false,
        })
    }
}
