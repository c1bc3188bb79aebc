//! The choice of a namespace in the bar.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{AccessKeyId, Namespace};
use maud::{Markup, html};

use crate::{fields::Fields, filter_words::FilterWords, visitor::Visitor};

/// For how long names are good enough, and how long a page waits for them.
const FRESH: Duration = Duration::from_secs(30);
const WAIT_MAX: Duration = Duration::from_millis(20);
/// More would be no choice any more: a filter names one.
const LISTED_MAX: usize = 200;

/// The names that the viewers of each key may choose from. `None` is the administrator's.
#[derive(Default)]
pub(crate) struct KnownNamespaces(Mutex<HashMap<Option<AccessKeyId>, Known>>);

#[derive(Clone)]
struct Known {
    names: Arc<[Namespace]>,
    /// On the monotonic clock.
    read_at: Duration,
}

impl KnownNamespaces {
    fn state(&self) -> MutexGuard<'_, HashMap<Option<AccessKeyId>, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The namespaces of a viewer. No page waits for a store that counts long: it shows those that were known before, or none.
pub(crate) async fn names(visitor: &Visitor) -> Arc<[Namespace]> {
    if let Some(own) = visitor.commands.caller.bound_to() {
        return own.into();
    }
    let (key, now) = (visitor.commands.caller.key_id(), visitor.commands.clock.monotonic());
    let known = visitor.shared.known_namespaces.state().get(&key).cloned();
    if let Some(known) = &known
        && now.saturating_sub(known.read_at) < FRESH
    {
        return Arc::clone(&known.names);
    }
    let asking = visitor.clone();
    let reading = tokio::spawn(async move {
        let listed = asking.commands.namespaces().await.ok()?.namespaces;
        let names: Arc<[Namespace]> = listed.into_iter().take(LISTED_MAX).map(|listed| listed.count.namespace).collect();
        let read_at = asking.commands.clock.monotonic();
        asking.shared.known_namespaces.state().insert(key, Known { names: Arc::clone(&names), read_at });
        Some(names)
    });
    let read = tokio::time::timeout(WAIT_MAX, reading).await.ok().and_then(Result::ok).flatten();
    read.or(known.map(|known| known.names)).unwrap_or_default()
}

/// A form that leads to a page for one namespace; without a choice there is none.
pub(crate) fn picker(visitor: &Visitor, page: &str) -> Markup {
    let query = visitor.path.split_once('?').map_or("", |(_, query)| query);
    let fields = Fields::parse(query.as_bytes());
    let words = FilterWords::parse(fields.get("q").unwrap_or_default(), visitor.now()).unwrap_or_default();
    let chosen = fields.get("ns").map(str::to_owned).or_else(|| words.namespace().map(ToString::to_string));
    html! {
        @if visitor.namespaces.len() > 1 || chosen.is_some() {
            form.picker action=(visitor.link(page)) {
                @for name in ["q", "range", "sort", "order"] {
                    @if let Some(value) = fields.get(name) { input type="hidden" name=(name) value=(value); }
                }
                select name="ns" aria-label="Limit to" data-submit {
                    option value="" { "All namespaces" }
                    @if let Some(chosen) = chosen.as_deref().filter(|chosen| !visitor.namespaces.iter().any(|name| name.as_str() == *chosen)) {
                        option value=(chosen) selected { (chosen) }
                    }
                    @for name in visitor.namespaces.iter() { option value=(name) selected[chosen.as_deref() == Some(name.as_str())] { (name) } }
                }
                button data-submitted { "Go" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Rights;

    use crate::rig::Rig;

    #[tokio::test]
    async fn a_viewer_chooses_among_its_namespaces() {
        let rig = Rig::new();
        rig.timer("k", "a").await;
        rig.timer("k", "b").await;
        let page = rig.get("/console").await;
        assert!(page.text.contains("<option value=\"a\">") && page.text.contains("<option value=\"b\">"), "{}", page.text);
        let chosen = rig.get("/console?ns=b").await;
        assert!(chosen.text.contains("<option value=\"b\" selected>"), "{}", chosen.text);
        let led = rig.get("/console/timers?q=ns:a+status:pending&ns=b").await;
        assert_eq!(led.headers["location"], "/console/timers?q=status%3Apending+ns%3Ab");
        let led = rig.get("/console/timers?q=ns:a+status:pending&ns=").await;
        assert_eq!(led.headers["location"], "/console/timers?q=status%3Apending");
        let (_, cookie) = rig.holder(&["a", "c"], Rights::Read).await;
        let page = rig.get_as(&cookie, "/console").await;
        assert!(page.text.contains("<option value=\"c\">") && !page.text.contains("<option value=\"b\">"), "{}", page.text);
    }
}
