use std::collections::{BTreeMap, HashMap};

use domain::Namespace;
use store::{Digest, NodeDigest, NodeId};

/// How many namespaces are counted by themselves in one minute; all are counted together.
const NAMESPACES_MAX: usize = 128;
/// How many minutes are in memory while the store takes none; the oldest are given up.
const MINUTES_MAX: usize = 60;

/// What happened in each of the last minutes.
#[derive(Debug, Default)]
pub(super) struct Minutes(BTreeMap<i64, Minute>);

#[derive(Debug, Default)]
struct Minute {
    in_all: Digest,
    by_namespace: HashMap<Namespace, Digest>,
    is_written: bool,
}

impl Minutes {
    /// `namespace` is `None` for a timer that cannot be read.
    pub(super) fn count(&mut self, minute: i64, namespace: Option<&Namespace>, add: impl Fn(&mut Digest)) {
        if !self.0.contains_key(&minute) && self.0.len() >= MINUTES_MAX {
            self.0.pop_first();
        }
        let minute = self.0.entry(minute).or_default();
        minute.is_written = false;
        add(&mut minute.in_all);
        let Some(namespace) = namespace else { return };
        if let Some(digest) = minute.by_namespace.get_mut(namespace) {
            add(digest);
        } else if minute.by_namespace.len() < NAMESPACES_MAX {
            add(minute.by_namespace.entry(namespace.clone()).or_default());
        }
    }

    pub(super) fn all(&self, node: NodeId) -> Vec<NodeDigest> {
        self.0.iter().flat_map(|(minute, counted)| counted.digests(node, *minute)).collect()
    }

    /// What has changed since the last time, and counts as written from now on. What was written before and is over is dropped.
    pub(super) fn take_unwritten(&mut self, node: NodeId, now: i64) -> Vec<NodeDigest> {
        self.0.retain(|minute, counted| !counted.is_written || *minute >= now);
        let mut digests = Vec::new();
        for (minute, counted) in self.0.iter_mut().filter(|(_, counted)| !counted.is_written) {
            counted.is_written = true;
            digests.extend(counted.digests(node, *minute));
        }
        digests
    }

    /// The last write failed, or its outcome is unknown.
    pub(super) fn mark_unwritten(&mut self) {
        self.0.values_mut().for_each(|minute| minute.is_written = false);
    }
}

impl Minute {
    fn digests(&self, node: NodeId, minute: i64) -> impl Iterator<Item = NodeDigest> {
        let in_all = NodeDigest { node, minute, namespace: None, digest: self.in_all.clone() };
        let of_one = move |(namespace, digest): (&Namespace, &Digest)| NodeDigest {
            node,
            minute,
            namespace: Some(namespace.clone()),
            digest: digest.clone(),
        };
        std::iter::once(in_all).chain(self.by_namespace.iter().map(of_one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(7);

    fn count(minutes: &mut Minutes, minute: i64, namespace: &str) {
        minutes.count(minute, Namespace::parse(namespace).ok().as_ref(), |digest| digest.fired += 1);
    }

    /// Each minute with the namespace (`*` for all) and what was fired there.
    fn fired(digests: &[NodeDigest]) -> Vec<(i64, String, u64)> {
        let name = |digest: &NodeDigest| digest.namespace.as_ref().map_or("*".to_owned(), ToString::to_string);
        let mut fired: Vec<_> = digests.iter().map(|digest| (digest.minute, name(digest), digest.digest.fired)).collect();
        fired.sort();
        fired
    }

    fn told(minute: i64, name: &str, fired: u64) -> (i64, String, u64) {
        (minute, name.to_owned(), fired)
    }

    #[test]
    fn a_minute_is_written_when_it_has_changed_and_dropped_when_it_is_over() {
        let mut minutes = Minutes::default();
        count(&mut minutes, 5, "a");
        count(&mut minutes, 5, "b");
        count(&mut minutes, 5, "");
        let first = [told(5, "*", 3), told(5, "a", 1), told(5, "b", 1)];
        assert_eq!(fired(&minutes.take_unwritten(NODE, 5)), first);
        assert_eq!(minutes.take_unwritten(NODE, 5), []);
        count(&mut minutes, 5, "b");
        count(&mut minutes, 6, "b");
        let changed = [told(5, "*", 4), told(5, "a", 1), told(5, "b", 2), told(6, "*", 1), told(6, "b", 1)];
        assert_eq!(fired(&minutes.take_unwritten(NODE, 6)), changed);
        minutes.mark_unwritten();
        assert_eq!(fired(&minutes.take_unwritten(NODE, 6)), changed);
        assert_eq!((minutes.take_unwritten(NODE, 6), fired(&minutes.all(NODE)).len()), (vec![], 2));
    }

    #[test]
    fn memory_is_bounded() {
        let mut minutes = Minutes::default();
        (0..1_000).for_each(|name| count(&mut minutes, 5, &name.to_string()));
        assert_eq!((minutes.all(NODE).len(), minutes.all(NODE)[0].digest.fired), (NAMESPACES_MAX + 1, 1_000));
        (0..1_000).for_each(|minute| count(&mut minutes, minute, "a"));
        assert_eq!((minutes.0.len(), minutes.0.keys().next()), (MINUTES_MAX, Some(&940)));
    }
}
