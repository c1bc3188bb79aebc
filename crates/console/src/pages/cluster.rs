//! `/console/cluster`: the nodes, and which of them owns which shard. For the administrator.

use std::collections::HashMap;

use commands::{Cluster, Member, NodeId, NodeLoad, ShardMove};
use domain::{Span, Timestamp};
use maud::{Markup, html};

use crate::{
    frame::{self, Section},
    problem::Problem,
    region::Region,
    text::{self, distance, number},
    visitor::Visitor,
};

/// How many owners have a shade of their own.
const SHADES: usize = 8;

pub(crate) async fn show(visitor: Visitor) -> Result<Markup, Problem> {
    let regions = regions(&visitor).await?;
    let body = html! {
        div.title { h1 { "Cluster" } span.muted { "the nodes that share the work" } }
        @for region in &regions { (region) }
    };
    Ok(frame::page(&visitor, Some(Section::Cluster), "Cluster", body))
}

pub(crate) async fn regions(visitor: &Visitor) -> Result<Vec<Region>, Problem> {
    let cluster = visitor.commands.cluster().await?;
    let moves = visitor.commands.shard_moves()?;
    let loads = visitor.commands.node_loads().await?;
    let mut regions =
        vec![Region::new("nodes", "card", nodes(visitor, &cluster, &loads)), Region::new("shards", "card", shards(&cluster))];
    // One shard has one owner, and moves when its process is restarted.
    if cluster.shards.len() > 1 {
        regions.push(Region::new("moves", "card", history(visitor, &moves)));
    }
    Ok(regions)
}

impl Owners<'_> {
    /// The letter and the shade of a node: `A` is the first.
    fn mark(&self, node: NodeId) -> Option<(char, usize)> {
        let at = self.0.iter().position(|(member, _)| member.node == node)?;
        Some((char::from(b'A' + u8::try_from(at % 26).unwrap_or(0)), at % SHADES))
    }

    fn name(&self, node: NodeId) -> &str {
        self.0.iter().find(|(member, _)| member.node == node).map_or("a node that is gone", |(member, _)| member.name.as_str())
    }

    fn lives(&self, node: NodeId, now: Timestamp) -> bool {
        self.0.iter().any(|(member, lease_until)| member.node == node && *lease_until > now)
    }
}

struct Owners<'a>(&'a [(Member, Timestamp)]);

fn nodes(visitor: &Visitor, cluster: &Cluster, loads: &HashMap<NodeId, NodeLoad>) -> Markup {
    let owners = Owners(&cluster.members);
    let late = cluster.oldest_overdue.map(|at| cluster.now.since(at)).filter(|late| *late >= Span::from_millis(500));
    html! {
        header { h2 { "Nodes" } span.aside { "oldest overdue: " @match late { Some(late) => { (text::span(late)) } None => { "none" } } } }
        div.table tabindex="0" role="region" aria-label="Nodes" { table {
            thead { tr { th { span.unseen { "Mark" } } th { "Node" } th { "State" } th.extra { "Version" } th.num { "Shards" } th.num.minor { "In flight" } th.num.minor { "Fires per second" } th.num.minor { "Lease left" } th.num.minor { "Clock ahead" } th.minor { "Started" } } }
            tbody { @for (member, lease_until) in &cluster.members {
                @let is_alive = *lease_until > cluster.now;
                @let held = cluster.shards.iter().filter(|state| state.owner == Some(member.node)).count();
                tr {
                    td { (swatch(&owners, member.node)) }
                    td.cut.fill title=(member.name) { (member.name) span.under { (member.version) } }
                    td { @if !is_alive { span.status.failed { "gone" } } @else if member.takes_shards { span.status.completed { "alive" } } @else { span.status.expired { "takes no shards" } } }
                    td.extra { (member.version) }
                    @let load = loads.get(&member.node).copied().unwrap_or_default();
                    td.num { (number(held as u64)) }
                    td.num.minor { (number(load.in_flight.into())) }
                    td.num.minor title="Calls that it began in the last whole minute" { (rate(load.fires_per_second)) }
                    td.num.minor { @if is_alive { (text::span(whole_seconds(lease_until.since(cluster.now)))) } @else { "ran out " (distance(visitor, *lease_until)) } }
                    td.num.minor { @if cluster.members.len() == 1 { span.muted title="There is no other clock to compare it with" { "–" } } @else { (format!("{:+} ms", member.skew_micros / 1_000)) } }
                    td.minor { (text::time(visitor, member.started_at)) span.extra.muted { " " (distance(visitor, member.started_at)) } }
                }
            } }
        } }
    }
}

/// Up, so that a lease that is held never has nothing left.
fn whole_seconds(span: Span) -> Span {
    Span::from_micros_clamped(span.as_secs_up() * 1_000_000)
}

/// Writes a rate, with a digit behind the point where that tells something.
fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        few if few < 0.1 => "< 0.1".to_owned(),
        some if some < 10.0 => format!("{some:.1}"),
        many => number(many.round() as u64),
    }
}

fn swatch(owners: &Owners<'_>, node: NodeId) -> Markup {
    html! { @if let Some((letter, shade)) = owners.mark(node) { span class={ "swatch owner-" (shade) } { (letter) } } }
}

fn shards(cluster: &Cluster) -> Markup {
    let owners = Owners(&cluster.members);
    let orphans =
        cluster.shards.iter().filter(|state| !state.owner.is_some_and(|owner| owners.lives(owner, cluster.now))).count();
    html! {
        header { h2 { "Shards" } span.aside {
            (text::counted(cluster.shards.len() as u64, "shard", "shards"))
            @if orphans > 0 { ", " span.bad { (orphans) " without a living owner" } }
        } }
        div.body.stack {
            @if cluster.shards.len() <= 1 { p.muted { "This store has one shard: a single process owns it." } }
            ol.shards aria-label="Shards by owner" {
                @for state in &cluster.shards {
                    @match state.owner.filter(|owner| owners.lives(*owner, cluster.now)) {
                        Some(owner) => {
                            @let (letter, shade) = owners.mark(owner).unwrap_or(('?', 0));
                            li class={ "shard owner-" (shade) } title={ "Shard " (state.shard.0) ": " (owners.name(owner)) ", epoch " (state.epoch.0) } { (letter) }
                        }
                        None => { li.shard.orphan title={ "Shard " (state.shard.0) ": no living owner, epoch " (state.epoch.0) } { "!" } }
                    }
                }
            }
        }
    }
}

/// Which shards had another owner, and when that was seen. What moved at the same time from one node to another is one row.
fn history(visitor: &Visitor, moves: &[ShardMove]) -> Markup {
    let mut moves: Vec<_> = moves.iter().collect();
    moves.sort_by_key(|one| (std::cmp::Reverse(one.at), &one.from, &one.to, one.shard));
    let is_one_row = |a: &&ShardMove, b: &&ShardMove| (a.at, &a.from, &a.to) == (b.at, &b.from, &b.to);
    html! {
        header { h2 { "Moves" } span.aside { "the latest that this node has seen" } }
        @if moves.is_empty() {
            div.body { p.muted { "No shard has moved since this node was started." } }
        } @else {
            div.table tabindex="0" role="region" aria-label="Moves" { table {
                thead { tr { th { "Time" } th { "From" } th { "To" } th.num.minor { "Shards" } th.minor { "Which" } } }
                tbody { @for row in moves.chunk_by(is_one_row) {
                    @let one = row[0];
                    tr {
                        td { (text::time(visitor, one.at)) span.extra.muted { " " (distance(visitor, one.at)) } }
                        td.cut { @match &one.from { Some(from) => { (from) } None => { span.muted { "no owner" } } } }
                        td.cut { (one.to) @if one.from.as_ref() == Some(&one.to) { span.muted { ", again" } } }
                        td.num.minor { (number(row.len() as u64)) }
                        td.wrap.muted.minor { (row.iter().map(|one| one.shard.0.to_string()).collect::<Vec<_>>().join(", ")) }
                    }
                } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Shard;

    use super::*;
    use crate::rig::{Rig, config};

    #[test]
    fn rates_are_as_exact_as_they_are_large() {
        for (per_second, text) in [(0.0, "0"), (0.02, "< 0.1"), (1.55, "1.6"), (41.5, "42"), (12_345.0, "12,345")] {
            assert_eq!(rate(per_second), text);
        }
    }

    #[tokio::test]
    async fn shards_that_were_acquired_by_another_node_are_listed() {
        let rig = Rig::sharded(config(), 2);
        let joins = async |node: u128, name: &str| {
            let member = Member { name: name.to_owned(), ..Member::new(NodeId(node)) };
            rig.store.heartbeat(&member, Span::from_secs(60)).await.unwrap();
        };
        let shards = [Shard(0), Shard(1)];
        joins(1, "first").await;
        let held = rig.store.acquire(NodeId(1), &shards).await.unwrap();
        assert!(rig.get("/console/cluster").await.text.contains("No shard has moved"));
        joins(2, "second").await;
        rig.store.release(NodeId(1), &held[1..]).await.unwrap();
        rig.store.acquire(NodeId(2), &shards[1..]).await.unwrap();
        let page = rig.get("/console/cluster").await.text;
        let row = page.split("aria-label=\"Moves\"").nth(1).unwrap().split("<tr>").nth(2).unwrap();
        assert!(row.contains("<td class=\"cut\">first</td><td class=\"cut\">second</td>"), "{row}");
    }

    #[tokio::test]
    async fn nodes_and_shards_are_shown_and_orphans_are_marked() {
        let rig = Rig::new();
        let before = rig.get("/console/cluster").await;
        assert!(before.text.contains("1 without a living owner") && before.text.contains("shard orphan"), "{}", before.text);
        rig.timer("k", "a").await;
        rig.fail_all("x").await;
        let page = rig.get("/console/cluster").await;
        assert!(
            page.text.contains(">1 min<")
                && page.text.contains("shard owner-0")
                && page.text.contains("epoch 1")
                && page.text.contains("alive"),
            "{}",
            page.text
        );
    }
}
