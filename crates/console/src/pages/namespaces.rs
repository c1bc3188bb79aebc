//! `/console/namespaces`: the tenants that a viewer sees, and what each has.

use commands::{ListedNamespace, ListedNamespaces};
use maud::{Markup, html};

use crate::{
    fields::Fields,
    filter_words::word,
    frame::{self, Section},
    pages::tiles::OVERDUE,
    problem::Problem,
    region::Region,
    retry_curve,
    text::{self, number},
    visitor::Visitor,
};

pub(crate) async fn show(visitor: Visitor) -> Result<Markup, Problem> {
    let regions = regions(&visitor).await?;
    let body = html! {
        div.title { h1 { "Namespaces" } span.muted { "tenants: the scope of keys, limits and rights" } }
        @for region in &regions { (region) }
    };
    Ok(frame::page(&visitor, Some(Section::Namespaces), "Namespaces", body))
}

pub(crate) async fn regions(visitor: &Visitor) -> Result<Vec<Region>, Problem> {
    let listed = visitor.commands.namespaces().await?;
    Ok(vec![Region::new("namespaces", "card", table(visitor, &listed))])
}

fn table(visitor: &Visitor, listed: &ListedNamespaces) -> Markup {
    let now = visitor.now();
    let list = |name: &str, status: &str| visitor.link_to_timers(&format!("status:{status} {}", word("ns:", name)));
    html! {
        @if listed.namespaces.is_empty() {
            div.empty { h2 { "No namespaces yet" } p { "A namespace appears with its first timer." } }
        } @else {
            @if !listed.is_complete { p.summary.muted { "These are not all of them." } }
            div.table tabindex="0" role="region" aria-label="Namespaces" { table {
                thead { tr { th { "Namespace" } th.num { "Pending" } th.num { "Failed" } th.num.minor { "Oldest overdue" } th.minor { "Retry policy" } th.minor { "Signing secret" } th.minor { "NATS subjects" } th { span.unseen { "Timers" } } } }
                tbody { @for ListedNamespace { count, settings } in &listed.namespaces {
                    @let name = count.namespace.as_str();
                    @let overview = visitor.link_to("", &Fields::from([("ns", name)]));
                    tr data-row=(overview) {
                        td.cut.fill { a href=(overview) title=(name) { (name) } }
                        td.num { a.cell href=(list(name, "pending")) { (about(count.pending, listed.pending_is_estimate)) } }
                        td.num { a.cell.bad[count.failed > 0] href=(list(name, "failed")) { (about(count.failed, listed.failed_is_estimate)) } }
                        td.num.minor { @match count.oldest_overdue {
                            Some(at) => { a.cell href=(visitor.link_to_next_timers(&format!("{OVERDUE} {}", word("ns:", name)))) { (text::span(now.since(at))) } }
                            None => { span.muted { "none" } }
                        } }
                        td.wrap.minor { @match &settings.retry_policy {
                            Some(policy) => { (retry_curve::summary(policy)) }
                            None => { span.muted { "as each timer says" } }
                        } }
                        td.minor { (set(settings.has_signing_secret)) }
                        td.minor { (set(settings.has_subjects)) }
                        td.num { a href=(visitor.link_to_timers(&word("ns:", name))) { "Timers" } }
                    }
                } }
            } }
        }
    }
}

fn about(count: u64, is_estimate: bool) -> String {
    if is_estimate { format!("~ {}", number(count)) } else { number(count) }
}

fn set(is_set: bool) -> Markup {
    html! { @if is_set { "own" } @else { span.muted { "default" } } }
}

#[cfg(test)]
mod tests {
    use domain::{RetryPolicy, Rights, Span};

    use crate::{retry_curve, rig::Rig};

    #[test]
    fn a_policy_is_told_in_words() {
        let told = |json: &str| retry_curve::summary(&RetryPolicy::from_json(json).unwrap());
        assert_eq!(told(r#"{"max_retries":3,"max_duration":"1h"}"#), "3, after 30 s, 1 min, 2 min, not later than 1 h after due");
        assert_eq!(told(r#"{"max_retries":0}"#), "none");
    }

    #[tokio::test]
    async fn every_number_leads_to_the_timers_that_it_is_of() {
        let rig = Rig::new();
        rig.timer("k", "billing").await;
        rig.clock.advance(Span::from_secs(7_200));
        let page = rig.get("/console/namespaces").await.text;
        for words in
            ["status%3Apending+ns%3Abilling", "status%3Afailed+ns%3Abilling", "status%3Apending+due%3A%3C0s+ns%3Abilling&amp;"]
        {
            assert!(page.contains(&format!("/console/timers?q={words}")), "{words}: {page}");
        }
    }

    #[tokio::test]
    async fn a_viewer_sees_its_namespaces() {
        let rig = Rig::new();
        rig.timer("k", "billing").await;
        rig.timer("k", "<i>shop</i>").await;
        let page = rig.get("/console/namespaces").await;
        assert!(
            page.text.contains(">billing<") && page.text.contains("&lt;i&gt;shop") && !page.text.contains("<i>shop"),
            "{}",
            page.text
        );
        let (_, cookie) = rig.holder(&["billing"], Rights::Read).await;
        assert!(!rig.get_as(&cookie, "/console/namespaces").await.text.contains("shop"));
    }
}
