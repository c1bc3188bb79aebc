//! `/console/operations/new`: what a change of many timers would meet, and the form that makes it.
//!
//! The form carries the filter as it was understood when it was shown, so that it changes what was looked at: `due:<1h` does not move on.

use axum::response::{IntoResponse, Redirect, Response};
use commands::{BulkAnswer, BulkBreakdown, BulkPreview, BulkRequest, Filter};
use domain::{Event, Invalid, Status};
use maud::{Markup, html};

use crate::{
    fields::{Fields, Form},
    filter_words::{FilterWords, words_of},
    frame::{self, Section},
    pages::{
        bulk_selection,
        bulk_work::{done, is_final, parameters, work_of},
    },
    problem::Problem,
    text, timer_rows,
    visitor::Visitor,
};

/// The number of timers beyond which the viewer has to type their number to confirm.
const TYPED_BEYOND: u64 = 1_000;

/// What can be done to many timers: its name, its title, and what it does.
pub(crate) const WORKS: [(&str, &str, &str); 8] = [
    ("cancel", "Cancel", "They will never fire. This cannot be undone."),
    ("fire", "Fire now", "They become due now, and their calls are made as permits allow."),
    ("retry", "Retry", "Failed and expired ones become due again now, with a new count of attempts."),
    ("reschedule", "Reschedule", "They get another due time."),
    ("pause", "Pause", "They are taken out of what is due until they are resumed."),
    ("resume", "Resume", "They are pending again; those that were due meanwhile are called now."),
    ("expire", "Expire", "They end as expired, without a call."),
    ("delete", "Delete", "Finished ones are removed from the record: failed ones are given up. This cannot be undone."),
];

fn described(name: Option<&str>) -> Result<(&'static str, &'static str, &'static str), Problem> {
    WORKS.into_iter().find(|(known, ..)| Some(*known) == name).ok_or(Problem::NoSuchPage)
}

/// The statuses of the timers that a kind of work changes. Where the filter names none, only these are meant, so that the count is that of
/// the timers that change.
fn concerned(name: &str) -> Vec<Status> {
    let changes = |status: &Status| match name {
        "cancel" | "expire" => status.after(Event::Cancel).is_some(),
        "fire" | "reschedule" | "pause" => *status == Status::Pending,
        "retry" => status.after(Event::Reopen).is_some(),
        "resume" => *status == Status::Paused,
        _ => status.is_finished(),
    };
    Status::ALL.into_iter().filter(changes).collect()
}

/// `GET /console/operations/new?do=…&q=…`, or `&id=…&id=…`.
pub(crate) async fn preview(visitor: Visitor, fields: Fields) -> Result<Markup, Problem> {
    visitor.check_may_write()?;
    let work = described(fields.get("do"))?;
    let ids: Vec<&str> = fields.all("id").collect();
    let is_selection = fields.get("scope").map_or(!ids.is_empty(), |scope| scope == "selected");
    let body = if is_selection {
        bulk_selection::confirm(&visitor, work, &ids)?
    } else {
        let mut words = FilterWords::parse(fields.get("q").unwrap_or_default(), visitor.now())?;
        if words.filter.status.is_empty() {
            words.filter.status = concerned(work.0);
        }
        let preview = visitor.commands.preview_bulk(&words.filter).await?;
        let breakdown = visitor.commands.bulk_breakdown(&words.filter).await?;
        let seen = seen_otherwise(fields.get("seen"), preview.matched.timers);
        let over = fields.get("over").unwrap_or_default();
        html! { (seen) (matching(&visitor, work, &words, (preview, &breakdown), over).await?) }
    };
    Ok(frame::page(&visitor, Some(Section::Operations), work.1, body))
}

/// A notice where a group of failures had another number of timers than its filter finds: other timers may have the same words in their error.
fn seen_otherwise(seen: Option<&str>, matched: u64) -> Markup {
    let seen = seen.and_then(|seen| seen.parse::<u64>().ok()).filter(|seen| *seen != matched);
    let matches = if matched == 1 { "timer matches" } else { "timers match" };
    html! { @if let Some(seen) = seen {
        p.notice.warn role="status" { "The group counted " (text::number(seen)) ", and " (text::number(matched)) " " (matches) " its filter now: look at the examples before you go on." }
    } }
}

async fn matching(
    visitor: &Visitor,
    (name, title, consequence): (&str, &str, &str),
    words: &FilterWords,
    (preview, breakdown): (BulkPreview, &BulkBreakdown),
    over: &str,
) -> Result<Markup, Problem> {
    let BulkPreview { matched, by_status, examples } = preview;
    let count = matched.timers;
    let expected_max = count + count / 10;
    let filter = serde_json::to_string(&words.filter).unwrap_or_default();
    let rows = timer_rows::read(visitor, examples).await;
    let filtered = |name: &str, value: &str| visitor.link_to_timers(&words.with(name, value));
    Ok(html! {
        div.title { h1 { (title) " timers" } span.muted { (text::count(count, matched.is_estimate)) " match" } }
        div.grid {
            section.card.span-12.form { header { h2 { "What happens" } } div.body.stack {
                p { (consequence) }
                p.chips { @for (status, count) in by_status.iter().filter(|(_, count)| *count > 0) { span { (text::status(*status)) " " (text::number(*count)) } } }
                p { "Filter: " @if words.words.is_empty() { strong { "every timer that you may see" } } @else { code { (words.text()) } } }
                @if count == 0 {
                    p.muted { "Nothing matches." }
                    div { a.button href=(visitor.link_to_timers(&words.text())) { "Back" } }
                } @else {
                    form.stack method="post" action=(visitor.link("/operations/new")) {
                        input type="hidden" name="do" value=(name);
                        input type="hidden" name="filter" value=(filter);
                        input type="hidden" name="q" value=(words.text());
                        (parameters(name, over))
                        label { "Refuse if more match than" span.hint { "The count and a tenth. Timers that are registered meanwhile are left alone." }
                            input type="number" name="expected_max" min="1" value=(expected_max);
                        }
                        @if count > TYPED_BEYOND {
                            label { "Type " (count) " to confirm" input type="text" name="typed" required pattern=(count) inputmode="numeric" autocomplete="off"; }
                            input type="hidden" name="count" value=(count);
                        }
                        div.actions {
                            a.button href=(visitor.link_to_timers(&words.text())) { "Back" }
                            @if is_final(name) { button.danger { (title) " " (text::count(count, matched.is_estimate)) } }
                            @else { button.main { (title) " " (text::count(count, matched.is_estimate)) } }
                        }
                    }
                }
            } }
            @if count > 0 { (parts(visitor, words, breakdown)) }
            @if !rows.is_empty() {
                section.card.span-12 { header { h2 { "Examples" } span.aside { "the first " (rows.len()) } }
                    div.table tabindex="0" role="region" aria-label="Examples" { table.stacked {
                        thead { tr { th.state { "Status" } th.name { "Timer" } th.minor { "Namespace" } th.minor { "Due" } th.num.left { "Time\u{a0}left" } th.extra { "Destination" } th.num.spare { "Attempt" } th.extra { "Last error" } th.spare { "Created" } } }
                        tbody { @for row in &rows { (row.without_tick(visitor, &filtered)) } }
                    } }
                }
            }
        }
    })
}

/// Whose timers these are, and where they call.
fn parts(visitor: &Visitor, words: &FilterWords, breakdown: &BulkBreakdown) -> Markup {
    // The statuses that were added belong to what is counted.
    let words = FilterWords::parse(&words_of(&words.filter), visitor.now()).unwrap_or_default();
    let namespaces: Vec<_> = breakdown.by_namespace.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let destinations: Vec<_> = breakdown.by_destination.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    html! {
        @for (title, name, counts) in [("By namespace", "ns:", &namespaces), ("By destination", "dest:", &destinations)] {
            section.card.span-6 {
                header { h2 { (title) } @if !breakdown.is_complete { span.aside { "of the first " (text::number(breakdown.timers)) } } }
                @if counts.is_empty() {
                    div.body { p.muted { "None of them calls a receiver." } }
                } @else {
                    div.table { table { tbody { @for (value, count) in counts {
                        tr {
                            td.cut.fill { a.cell href=(visitor.link_to_timers(&words.with(name, value))) title=(value) { (value) } }
                            td.num { (text::number(*count)) }
                            td.num.muted { (share(*count, breakdown.timers)) }
                        }
                    } } } }
                }
            }
        }
    }
}

fn share(count: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * count as f64 / all.max(1) as f64)
}

/// `POST /console/operations/new`.
pub(crate) async fn start(visitor: Visitor, Form(form): Form) -> Result<Response, Problem> {
    visitor.check_may_write()?;
    let (name, title, _) = described(form.get("do"))?;
    if form.get("filter").is_none() {
        return bulk_selection::change(&visitor, name, title, &form).await;
    }
    if form.get("count") != form.get("typed") {
        return Err(Invalid::new("the number", "that you typed is another one, and nothing was changed").into());
    }
    let wrong = |_| Invalid::new("filter", "cannot be read: begin again with the list");
    let filter: Filter = serde_json::from_str(form.get("filter").unwrap_or_default()).map_err(wrong)?;
    // Counted again: what the form leaves out, or says about how many there were, is not believed.
    let typed: Option<u64> = form.get("typed").and_then(|typed| typed.parse().ok());
    if typed.is_none_or(|typed| typed <= TYPED_BEYOND) && visitor.commands.count(&filter).await?.timers > TYPED_BEYOND {
        let rule =
            format!("has to be typed where more than {} timers match, and nothing was changed", text::number(TYPED_BEYOND));
        return Err(Invalid::new("the number", rule).into());
    }
    let expected_max = form.get("expected_max").and_then(|count| count.parse().ok()).unwrap_or(0);
    let request = BulkRequest { work: work_of(name, &form)?, filter, expected_max };
    match visitor.commands.bulk(&request).await? {
        BulkAnswer::Started(operation) => {
            Ok(Redirect::to(&visitor.link(&format!("/operations/{}", operation.id.0))).into_response())
        }
        BulkAnswer::Done { changed, skipped } => {
            let back = visitor.link_to_timers(form.get("q").unwrap_or_default());
            Ok(done(&visitor, title, changed, skipped, &[], &back).into_response())
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Rights, Status, TimerId};

    use super::concerned;
    use crate::rig::Rig;

    #[test]
    fn a_kind_of_work_concerns_what_it_can_change() {
        for (name, statuses) in [
            ("cancel", &[Status::Pending, Status::Paused][..]),
            ("fire", &[Status::Pending]),
            ("retry", &[Status::Failed, Status::Expired]),
            ("resume", &[Status::Paused]),
            ("delete", &[Status::Completed, Status::Failed, Status::Canceled, Status::Expired]),
        ] {
            assert_eq!(concerned(name), statuses, "{name}");
        }
    }

    async fn status(rig: &Rig, id: TimerId) -> Status {
        rig.commands.get(id).await.unwrap().status
    }

    #[tokio::test]
    async fn what_was_looked_at_is_changed_and_nothing_else() {
        let rig = Rig::new();
        let (one, other) = (rig.timer("order-1", "a").await, rig.timer("order-2", "b").await);
        let page = rig.get("/console/operations/new?do=cancel&q=ns:a").await;
        assert!(
            page.text.contains("Cancel 1<") && page.text.contains("order-1") && !page.text.contains("order-2"),
            "{}",
            page.text
        );
        let form = "do=cancel&filter=%7B%22namespace%22%3A%5B%22a%22%5D%7D&expected_max=1&q=ns:a";
        let done = rig.post("/console/operations/new", form).await;
        assert!(done.status == 200 && done.text.contains("<strong>1 timer</strong> changed"), "{}", done.text);
        assert_eq!((status(&rig, one).await, status(&rig, other).await), (Status::Canceled, Status::Pending));
    }

    #[tokio::test]
    async fn more_than_expected_changes_nothing() {
        let rig = Rig::new();
        let id = rig.timer("a", "a").await;
        rig.timer("b", "a").await;
        let refused = rig.post("/console/operations/new", "do=cancel&filter=%7B%7D&expected_max=1").await;
        assert!(refused.status == 409 && refused.text.contains("More than 1 timers match"), "{}", refused.text);
        let mistyped = rig.post("/console/operations/new", "do=cancel&filter=%7B%7D&expected_max=9&count=2&typed=3").await;
        assert_eq!(mistyped.status, 400);
        assert_eq!(rig.post("/console/operations/new", "do=cancel&filter=x&expected_max=9").await.status, 400);
        assert_eq!(status(&rig, id).await, Status::Pending);
    }

    #[tokio::test]
    async fn the_number_of_many_has_to_be_typed_whatever_the_form_says() {
        let rig = Rig::new();
        let mut id = rig.timer("k", "a").await;
        for n in 0..1_000 {
            id = rig.timer(&format!("k{n}"), "a").await;
        }
        let form = "do=cancel&filter=%7B%22namespace%22%3A%5B%22a%22%5D%7D&expected_max=2000";
        for claimed in ["", "&count=5&typed=5", "&typed=1001", "&count=1001", "&count=1001&typed=1000", "&count=x&typed=x"] {
            let refused = rig.post("/console/operations/new", &format!("{form}{claimed}")).await;
            assert!(refused.status == 400 && refused.text.contains("nothing was changed"), "{claimed}: {}", refused.text);
        }
        assert_eq!(status(&rig, id).await, Status::Pending);
        let started = rig.post("/console/operations/new", &format!("{form}&count=1001&typed=1001")).await;
        assert!(started.status == 303 && started.headers["location"].to_str().unwrap().starts_with("/console/operations/"));
    }

    #[tokio::test]
    async fn a_preview_tells_whose_timers_they_are_and_where_they_call() {
        let rig = Rig::new();
        rig.timer("a", "shop").await;
        rig.timer("b", "shop").await;
        rig.timer("c", "billing").await;
        let page = rig.get("/console/operations/new?do=cancel").await.text;
        for part in [
            "By namespace",
            ">shop</a></td><td class=\"num\">2</td><td class=\"num muted\">66.7 %",
            "By destination",
            ">api.shop.example:443</a></td><td class=\"num\">3<",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.contains("status%3Apending%2Cpaused+ns%3Ashop"), "a name leads to what is counted: {page}");
        assert!(!page.contains("of the first"), "all of them were looked at");
    }

    #[tokio::test]
    async fn rights_hold_for_many_as_for_one() {
        let rig = Rig::new();
        let id = rig.timer("a", "a").await;
        let (_, reader) = rig.holder(&["a"], Rights::Read).await;
        assert_eq!(rig.get_as(&reader, "/console/operations/new?do=cancel").await.status, 403);
        let forms = [format!("do=cancel&id={id}"), "do=cancel&filter=%7B%7D&expected_max=9".to_owned()];
        for form in &forms {
            assert_eq!(rig.post_as(&reader, "/console/operations/new", form).await.status, 403);
        }
        let (_, other) = rig.holder(&["b", "c"], Rights::Write).await;
        for form in &forms {
            rig.post_as(&other, "/console/operations/new", form).await;
        }
        assert_eq!(status(&rig, id).await, Status::Pending);
    }
}
