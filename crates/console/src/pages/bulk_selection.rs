//! `/console/operations/new?scope=selected&id=…`: a change of the timers that were selected in a list.

use axum::response::{IntoResponse, Redirect, Response};
use commands::BulkAnswer;
use domain::{Invalid, TimerId};
use maud::{Markup, html};

use crate::{
    actions::{Action, carry_out},
    fields::Fields,
    pages::bulk_work::{done, is_final, parameters, work_of},
    problem::Problem,
    text,
    visitor::Visitor,
};

/// How many timers a selection may have.
const SELECTED_MAX: usize = 200;

/// What happens to them, and the form that does it.
pub(super) fn confirm(
    visitor: &Visitor,
    (name, title, consequence): (&str, &str, &str),
    ids: &[&str],
) -> Result<Markup, Problem> {
    if ids.len() > SELECTED_MAX {
        return Err(Invalid::new("the selection", format!("must not have more than {SELECTED_MAX} timers")).into());
    }
    Ok(html! {
        div.title { h1 { (title) " timers" } span.muted { (text::counted(ids.len() as u64, "timer", "timers")) " selected" } }
        section.card.narrow { div.body.stack {
            @if ids.is_empty() {
                p { "No timer is selected." }
            } @else {
                p { (consequence) }
            }
            form.stack method="post" action=(visitor.link("/operations/new")) {
                input type="hidden" name="do" value=(name);
                @for id in ids { input type="hidden" name="id" value=(id); }
                @if !ids.is_empty() { (parameters(name, "")) }
                div.actions {
                    a.button href=(visitor.link("/timers")) { "Back" }
                    @if !ids.is_empty() { button class=(if is_final(name) { "danger" } else { "main" }) { (title) " " (ids.len()) } }
                }
            }
        } }
    })
}

/// One by one where a timer can say why it is not changed; otherwise all of them in one commit.
pub(super) async fn change(visitor: &Visitor, name: &str, title: &str, form: &Fields) -> Result<Response, Problem> {
    let ids = form.all("id").take(SELECTED_MAX).map(|text| TimerId::parse("id", text)).collect::<Result<Vec<_>, _>>()?;
    let back = visitor.link("/timers");
    let Some(action) = Action::parse(name).filter(|_| form.get("over").is_none()) else {
        return Ok(match visitor.commands.bulk_selected(&work_of(name, form)?, &ids).await? {
            BulkAnswer::Done { changed, skipped } => done(visitor, title, changed, skipped, &[], &back).into_response(),
            BulkAnswer::Started(operation) => {
                Redirect::to(&visitor.link(&format!("/operations/{}", operation.id.0))).into_response()
            }
        });
    };
    let (mut changed, mut refused) = (0, Vec::new());
    for id in ids {
        match carry_out(visitor, action, id, None, form.get("note"), None).await {
            Ok(_) => changed += 1,
            Err(error) => refused.push((id, error.to_string())),
        }
    }
    Ok(done(visitor, title, changed, 0, &refused, &back).into_response())
}

#[cfg(test)]
mod tests {
    use domain::{Rights, Span};

    use crate::rig::Rig;

    #[tokio::test]
    async fn a_selection_is_changed_one_by_one() {
        let rig = Rig::new();
        let (one, other) = (rig.timer("a", "a").await, rig.timer("b", "a").await);
        rig.commands.cancel(other, None).await.unwrap();
        let page = rig.get(&format!("/console/operations/new?do=fire&scope=selected&id={one}&id={other}")).await;
        assert!(page.text.contains("2 timers selected"), "{}", page.text);
        let done = rig.post("/console/operations/new", &format!("do=fire&id={one}&id={other}")).await;
        assert!(
            done.text.contains("<strong>1 timer</strong> changed")
                && done.text.contains("Cannot fire timer with status 'canceled'"),
            "{}",
            done.text
        );
    }

    #[tokio::test]
    async fn a_selection_is_rescheduled() {
        let rig = Rig::new();
        let (one, other) = (rig.timer("a", "a").await, rig.timer("b", "a").await);
        let page = rig.get(&format!("/console/operations/new?do=reschedule&scope=selected&id={one}")).await;
        assert!(page.text.contains("shift each by") && page.text.contains("Reschedule 1<"), "{}", page.text);
        let before = rig.commands.get(one).await.unwrap().execute_at;
        let done = rig.post("/console/operations/new", &format!("do=reschedule&id={one}&how=shift&shift=%2B1h")).await;
        assert!(done.status == 200 && done.text.contains("<strong>1 timer</strong> changed"), "{}", done.text);
        assert_eq!(rig.commands.get(one).await.unwrap().execute_at.since(before), Span::from_secs(3600));
        assert_eq!(rig.commands.get(other).await.unwrap().revision, 1);
        let wrong = rig.post("/console/operations/new", &format!("do=reschedule&id={one}&how=shift&shift=soon")).await;
        assert_eq!(wrong.status, 400);
        let (_, stranger) = rig.holder(&["b", "c"], Rights::Write).await;
        let none =
            rig.post_as(&stranger, "/console/operations/new", &format!("do=reschedule&id={one}&how=shift&shift=%2B1h")).await;
        assert!(none.text.contains("<strong>0 timers</strong> changed"), "{}", none.text);
    }
}
