//! `/console/timers`: the timers that match a filter in words.

use axum::response::{IntoResponse, Redirect, Response};
use commands::{Cursor, Filter, ListQuery, Listed, Order, Sort};
use domain::{Invalid, TimerId, Timestamp};
use http::StatusCode;
use maud::{Markup, html};

use crate::{
    fields::Fields,
    filter_words::{CONDITIONS, FilterWords},
    frame::{self, Section},
    pages::bulk::WORKS,
    problem::{Problem, sentence},
    region::Region,
    text,
    timer_rows::{self, Row},
    visitor::Visitor,
};

pub(crate) const PAGE_TIMERS: u32 = 50;
/// What is offered where nothing is asked for yet.
const SUGGESTED: [&str; 5] = ["status:pending", "status:failed", "status:paused", "due:<1h", "created:<1h"];

/// What the URL asks for.
struct Asked {
    words: FilterWords,
    query: ListQuery,
    /// The page that ends before a cursor: it is read backwards.
    is_backwards: bool,
}

/// The order of the list, as the URL says it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sorting {
    sort: Sort,
    order: Order,
}

impl Sorting {
    fn read(fields: &Fields) -> Self {
        let sort = if fields.get("sort") == Some("due") { Sort::ExecuteAt } else { Sort::CreatedAt };
        let order = if fields.get("order") == Some("asc") { Order::Ascending } else { Order::Descending };
        Self { sort, order }
    }

    const fn reversed(self) -> Order {
        match self.order {
            Order::Ascending => Order::Descending,
            Order::Descending => Order::Ascending,
        }
    }
}

/// A column that the list can be sorted by.
struct Column {
    name: &'static str,
    field: &'static str,
    sort: Sort,
}

const DUE: Column = Column { name: "Due", field: "due", sort: Sort::ExecuteAt };
const CREATED: Column = Column { name: "Created", field: "created", sort: Sort::CreatedAt };

impl Column {
    /// The direction in which the list is sorted by it, if it is.
    fn direction(&self, fields: &Fields) -> Option<&'static str> {
        let current = Sorting::read(fields);
        (current.sort == self.sort).then_some(if current.order == Order::Ascending { "ascending" } else { "descending" })
    }

    /// The list sorted by it; by the other end if it is already.
    fn link(&self, visitor: &Visitor, fields: &Fields) -> String {
        let order = if self.direction(fields) == Some("descending") { "asc" } else { "desc" };
        visitor.link_to("/timers", &sorted(fields).with("sort", Some(self.field)).with("order", Some(order)))
    }
}

impl Asked {
    fn read(fields: &Fields, now: Timestamp) -> Result<Self, Invalid> {
        let words = FilterWords::parse(fields.get("q").unwrap_or_default(), now)?;
        let sorting = Sorting::read(fields);
        let before = fields.get("before").map(read_cursor).transpose()?;
        let after = fields.get("after").map(read_cursor).transpose()?;
        let order = if before.is_some() { sorting.reversed() } else { sorting.order };
        let query = ListQuery {
            filter: words.filter.clone(),
            sort: sorting.sort,
            order,
            limit: PAGE_TIMERS,
            after: before.or(after),
            ..ListQuery::default()
        };
        Ok(Self { words, query, is_backwards: before.is_some() })
    }
}

fn write_cursor(cursor: Cursor) -> String {
    format!("{}_{}", cursor.at.as_micros(), cursor.id)
}

fn read_cursor(text: &str) -> Result<Cursor, Invalid> {
    let wrong = || Invalid::new("the position", "is not one of this list: begin again");
    let (micros, id) = text.split_once('_').ok_or_else(wrong)?;
    let at = Timestamp::from_micros(micros.parse().map_err(|_| wrong())?);
    Ok(Cursor { at, id: TimerId::parse("id", id).map_err(|_| wrong())? })
}

pub(crate) async fn show(visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    let text = fields.get("q").unwrap_or_default().trim();
    // An id alone is that timer.
    if let Ok(id) = TimerId::parse("id", text) {
        return Ok(Redirect::to(&visitor.link(&format!("/timers/{id}"))).into_response());
    }
    let asked = match Asked::read(&fields, visitor.now()) {
        Ok(asked) => asked,
        Err(invalid) => {
            let body = layout(&visitor, &fields, None, &refused(&invalid));
            return Ok((StatusCode::BAD_REQUEST, frame::page(&visitor, Some(Section::Timers), "Timers", body)).into_response());
        }
    };
    // A choice of the bar becomes a word of the filter.
    if fields.has("ns") {
        let words = match fields.get("ns") {
            Some(namespace) => asked.words.with("ns:", namespace),
            None => asked.words.without_any("ns:"),
        };
        let fields = sorted(&fields).with("ns", None).with("q", Some(&words));
        return Ok(Redirect::to(&visitor.link_to("/timers", &fields)).into_response());
    }
    let region = list(&visitor, &fields, &asked).await?;
    let body = layout(&visitor, &fields, Some(&asked.words), &html! { (region) });
    Ok(frame::page(&visitor, Some(Section::Timers), "Timers", body).into_response())
}

/// What changes while the page is looked at.
pub(crate) async fn regions(visitor: &Visitor, fields: &Fields) -> Result<Vec<Region>, Problem> {
    let asked = Asked::read(fields, visitor.now())?;
    Ok(vec![list(visitor, fields, &asked).await?])
}

fn layout(visitor: &Visitor, fields: &Fields, words: Option<&FilterWords>, list: &Markup) -> Markup {
    let export =
        |format: &str| visitor.link_to(&format!("/timers.{format}"), &Fields::from([("q", fields.get("q").unwrap_or_default())]));
    html! {
        div.title {
            h1 { "Timers" }
            span.actions {
                details.menu { summary.button { "Export" }
                    div { @for format in ["csv", "json", "ndjson"] { a href=(export(format)) download { (format.to_uppercase()) } } }
                }
                @if visitor.may_write() { a.button.main href=(visitor.link("/timers/new")) { "New timer" } }
            }
        }
        div.card {
            (filter_bar(visitor, fields, words))
            @if let Some(words) = words.filter(|_| visitor.may_write()) { (bulk_bar(visitor, words)) }
            (list)
        }
    }
}

fn filter_bar(visitor: &Visitor, fields: &Fields, words: Option<&FilterWords>) -> Markup {
    let listed = |words: &str| visitor.link_to("/timers", &sorted(fields).with("q", Some(words)));
    let text = fields.get("q").unwrap_or_default();
    html! {
        div.filter {
            form #filter-form action=(visitor.link("/timers")) {
                @for name in ["sort", "order"] { @if let Some(value) = fields.get(name) { input type="hidden" name=(name) value=(value); } }
                input #filter type="text" name="q" aria-label="Filter" value=(text) list="conditions" autocomplete="off" spellcheck="false"
                    placeholder="status:failed ns:billing key:order-* due:<1h";
                button.main { "Filter" }
            }
            datalist #conditions { @for (_, example) in CONDITIONS { option value=(example); } }
            div.chips {
                @if let Some(words) = words {
                    @for (at, word) in words.words.iter().enumerate() {
                        a.chip.on href=(listed(&words.without(at))) aria-label={ "Remove " (word) } { (word) span aria-hidden="true" { "×" } }
                    }
                    @for word in SUGGESTED.iter().filter(|word| is_new(words, word)) {
                        a.chip href=(listed(format!("{} {word}", words.text()).trim())) { (word) }
                    }
                }
            }
        }
    }
}

/// What can be done to the selected ones, or to all that match. The boxes of the rows belong to this form.
fn bulk_bar(visitor: &Visitor, words: &FilterWords) -> Markup {
    html! {
        form #bulk .bulk action=(visitor.link("/operations/new")) aria-label="Change many" {
            input type="hidden" name="q" value=(words.text());
            span #selected-count .muted aria-live="polite" { "Select timers, or act on all that match" }
            select name="do" aria-label="Action" { @for (name, title, _) in WORKS { option value=(name) { (title) } } }
            button name="scope" value="selected" { "Selected…" }
            button name="scope" value="all" { "All that match…" }
        }
    }
}

/// Whether nothing is asked about the same yet.
fn is_new(words: &FilterWords, suggested: &str) -> bool {
    let name = suggested.split_inclusive(':').next().unwrap_or_default();
    !words.words.iter().any(|word| word.starts_with(name))
}

/// What stays the same on other pages of the list.
fn sorted(fields: &Fields) -> Fields {
    fields.with("after", None).with("before", None).with("done", None)
}

async fn list(visitor: &Visitor, fields: &Fields, asked: &Asked) -> Result<Region, Problem> {
    let Listed { mut page, total } = visitor.commands.list(&asked.query).await?;
    let next = page.next;
    if asked.is_backwards {
        page.timers.reverse();
    }
    let ends = page.timers.first().zip(page.timers.last()).map(|(first, last)| {
        let sort = asked.query.sort;
        (first.cursor(sort), last.cursor(sort))
    });
    let (is_first, is_last) = match asked.is_backwards {
        true => (next.is_none(), false),
        false => (asked.query.after.is_none(), next.is_none()),
    };
    let complete = page.complete;
    let searched = if complete { String::new() } else { searched(visitor, &asked.words, page.scanned).await? };
    let rows = timer_rows::read(visitor, page.timers).await;
    let at = |name: &str, cursor: Cursor| visitor.link_to("/timers", &sorted(fields).with(name, Some(&write_cursor(cursor))));
    let newer = ends.filter(|_| !is_first).map(|(first, _)| at("before", first));
    let older = match (asked.is_backwards, next, ends) {
        (false, Some(next), _) => Some(at("after", next)),
        (true, _, Some((_, last))) => Some(at("after", last)),
        _ => None,
    }
    .filter(|_| !is_last);
    let body = html! {
        div.summary { (sorts(visitor, fields)) span { strong { (text::count(total.timers, total.is_estimate)) } @if total.timers == 1 { " timer" } @else { " timers" } }
            @if !complete { span.muted { " · searched " (searched) } }
        }
        @if rows.is_empty() && complete { (nothing(visitor, fields)) } @else { (table(visitor, fields, asked, &rows)) }
        div.pages {
            @if !complete {
                span { "The search stopped after 250 ms, having looked at " (searched) "." }
                @if let Some(older) = &older { a href=(older) { "Go on" } }
            }
            span.actions {
                @if let Some(newer) = newer { a.button rel="prev" href=(newer) { "Previous" } }
                @if let Some(older) = older { a.button rel="next" href=(older) { "Next" } }
            }
        }
    };
    Ok(Region::new("timer-list", "list", body))
}

/// `180,000 of about 1,000,000 timers`: how many were looked at of those that the indexed conditions leave.
async fn searched(visitor: &Visitor, words: &FilterWords, scanned: u64) -> Result<String, Problem> {
    let Filter { status, namespaces, .. } = words.filter.clone();
    let filter = Filter { status, namespaces, ..Filter::default() };
    let all = visitor.commands.list(&ListQuery { filter, limit: 1, ..ListQuery::default() }).await?.total;
    Ok(format!("{} of {} timers", text::number(scanned), text::count(all.timers.max(scanned), all.is_estimate)))
}

fn table(visitor: &Visitor, fields: &Fields, asked: &Asked, rows: &[Row]) -> Markup {
    let filtered =
        |name: &str, value: &str| visitor.link_to("/timers", &sorted(fields).with("q", Some(&asked.words.with(name, value))));
    let head = |column: &Column, class: &str| {
        html! { th class=(class) aria-sort=[column.direction(fields)] { a.sort href=(column.link(visitor, fields)) { (column.name) } } }
    };
    // The boxes belong to the form of a viewer that may change many.
    let is_selectable = visitor.may_write();
    html! {
        div.table tabindex="0" role="region" aria-label="Timers" {
            table.stacked {
                thead { tr {
                    @if is_selectable { th.tick { input #select-all type="checkbox" aria-label="Select all on this page" hidden; } }
                    th.state { "Status" } th.name { "Timer" } th.minor { "Namespace" }
                    (head(&DUE, "minor"))
                    th.num.left { "Time\u{a0}left" } th.extra { "Destination" } th.num.spare { "Attempt" } th.extra { "Last error" }
                    (head(&CREATED, "spare"))
                } }
                tbody { @for row in rows {
                    @if is_selectable { (row.render(visitor, &filtered)) } @else { (row.without_tick(visitor, &filtered)) }
                } }
            }
        }
    }
}

/// The choice of the order where a table is too narrow for the columns that have it in their heads.
fn sorts(visitor: &Visitor, fields: &Fields) -> Markup {
    html! {
        span.sorts { span.segmented role="group" aria-label="Sort by" { @for column in [DUE, CREATED] {
            a href=(column.link(visitor, fields)) aria-current=[column.direction(fields).map(|_| "true")] {
                (column.name) @match column.direction(fields) { Some("ascending") => { " ↑" } Some(_) => { " ↓" } None => {} }
            }
        } } }
    }
}

fn nothing(visitor: &Visitor, fields: &Fields) -> Markup {
    html! {
        div.empty {
            @if fields.get("q").is_some() || fields.get("after").is_some() {
                h2 { "No timer matches" }
                p { a href=(visitor.link("/timers")) { "Remove the filter" } }
            } @else {
                h2 { "No timers yet" }
                p { "They appear here as soon as one is registered." }
                @if visitor.may_write() { a.button.main href=(visitor.link("/timers/new")) { "New timer" } }
            }
        }
    }
}

fn refused(invalid: &Invalid) -> Markup {
    html! {
        div.empty role="alert" {
            h2 { "The filter cannot be read" }
            p.field-error { (sentence(&invalid.to_string())) }
            p { "Conditions, all of which must hold:" }
            p { @for (_, example) in CONDITIONS { code { (example) } " " } }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Rights;

    use crate::rig::Rig;

    #[tokio::test]
    async fn the_list_shows_what_matches_and_leads_on() {
        let rig = Rig::new();
        for n in 0..60 {
            rig.timer(&format!("order-{n:02}"), if n % 2 == 0 { "billing" } else { "shop" }).await;
        }
        let page = rig.get("/console/timers").await;
        assert!(page.text.contains("<strong>60</strong> timers") && page.text.contains("order-59"), "{}", page.text);
        assert!(page.text.contains("api.shop.example:443"), "the destination is shown");
        let next = page.link("Next");
        let second = rig.get(&next).await;
        assert!(second.text.contains("order-00") && !second.text.contains("order-59") && !second.text.contains(">Next<"));
        let back = rig.get(&second.link("Previous")).await;
        assert!(back.text.contains("order-59") && !back.text.contains("order-00"), "{}", back.text);

        let shop = rig.get("/console/timers?q=ns:shop+key:order-1*").await;
        assert!(shop.text.contains("<strong>5</strong> timers") && !shop.text.contains("order-12"));
        let by_due = rig.get("/console/timers?sort=due&order=asc").await;
        assert!(by_due.text.contains("aria-sort=\"ascending\""));
    }

    #[tokio::test]
    async fn every_value_of_a_row_leads_to_those_with_the_same() {
        let rig = Rig::new();
        rig.timer("order-1", "billing").await;
        rig.fail_all("connect: \"refused\" by 10.0.0.7").await;
        let page = rig.get("/console/timers").await;
        let links: Vec<_> = page.text.split("/console/timers?q=").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        for words in [
            "status%3Afailed",
            "key%3Aorder-1",
            "ns%3Abilling",
            "due%3A2030-01-01T01%3A00%3A00Z..2030-01-01T02%3A00%3A00Z",
            "dest%3Aapi.shop.example%3A443",
            "error%3A%22connect%3A+%5C%22refused%5C%22+by+10.0.0.7%22",
            "created%3A2030-01-01T00%3A00%3A00Z..2030-01-01T01%3A00%3A00Z",
        ] {
            assert!(links.contains(&words), "{words}: {links:?}");
            let found = rig.get(&format!("/console/timers?q={words}")).await;
            assert!(found.text.contains("<strong>1</strong> timer<"), "{words}: {}", found.text);
        }
        assert!(page.text.contains("title=\"in 1 h · 2030-01-01T01:00:00.001Z\""), "{}", page.text);
        assert!(rig.get("/console/timers?q=error:accepted").await.text.contains("No timer matches"));
    }

    #[tokio::test]
    async fn a_filter_that_cannot_be_read_is_explained_and_kept() {
        let rig = Rig::new();
        let page = rig.get("/console/timers?q=status:done").await;
        assert_eq!(page.status, 400);
        assert!(
            page.text.contains("status must be one of pending") && page.text.contains("value=\"status:done\""),
            "{}",
            page.text
        );
        assert_eq!(rig.get("/console/timers?after=x").await.status, 400);
        assert!(rig.get("/console/timers").await.text.contains("No timers yet"));
        assert!(rig.get("/console/timers?q=ns:x").await.text.contains("No timer matches"));
    }

    #[tokio::test]
    async fn a_row_names_what_its_viewer_may_do_to_it() {
        let rig = Rig::new();
        rig.timer("k", "a").await;
        assert!(rig.get("/console/timers").await.text.contains("data-acts=\"fire pause cancel edit\""));
        let (_, reader) = rig.holder(&["a"], Rights::Read).await;
        let seen = rig.get_as(&reader, "/console/timers").await.text;
        assert!(!seen.contains("data-acts") && !seen.contains("type=\"checkbox\"") && !seen.contains("class=\"tick\""), "{seen}");
        rig.fail_all("answered 503").await;
        assert!(rig.get("/console/timers").await.text.contains("data-acts=\"retry\""));
    }

    #[tokio::test]
    async fn an_id_alone_leads_to_its_timer() {
        let rig = Rig::new();
        let id = rig.timer("k", "a").await;
        let led = rig.get(&format!("/console/timers?q={id}")).await;
        assert_eq!(
            (led.status.as_u16(), led.headers["location"].to_str().unwrap()),
            (303, format!("/console/timers/{id}").as_str())
        );
    }
}
