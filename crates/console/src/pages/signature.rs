//! `/console/timers/{id}/verify`: whether a signature that a receiver has got is that of a call of this timer. Nothing that is pasted
//! here is kept, logged or shown again.

use axum::extract::Path;
use domain::{Attempt, Endpoint, Invalid, JsonText, Protocol, Timer};
use maud::{Markup, html};

use crate::{
    config::{Payloads, SignedCall},
    fields::{Fields, Form},
    frame::{self, Section},
    named_timer,
    problem::{Problem, sentence},
    text,
    visitor::Visitor,
};

/// Of a longer body only the beginning is shown.
const SIGNED_CHARS_SHOWN: usize = 4 * 1024;

pub(crate) async fn show(visitor: Visitor, Path(id): Path<String>) -> Result<Markup, Problem> {
    let timer = named_timer::read(&visitor, &id).await?;
    let attempts = visitor.commands.attempts(timer.id()).await?;
    Ok(page(&visitor, &timer, &attempts, &Fields::default(), None))
}

/// The secret is used and forgotten.
pub(crate) async fn verify(visitor: Visitor, Path(id): Path<String>, Form(fields): Form) -> Result<Markup, Problem> {
    let timer = named_timer::read(&visitor, &id).await?;
    let webhook_id = timer.webhook_id();
    let payload = timer.definition.callback.payload.as_ref().map_or("", JsonText::as_str);
    let field = |name: &str| fields.get(name).map(str::trim).unwrap_or_default();
    let call = SignedCall {
        secret: field("secret"),
        webhook_id: &webhook_id,
        timestamp: field("timestamp"),
        // A body counts to the last blank.
        body: fields.get("body").unwrap_or(payload),
        signature: field("signature"),
    };
    let answer = (visitor.shared.config.verify)(&call);
    let attempts = visitor.commands.attempts(timer.id()).await?;
    Ok(page(&visitor, &timer, &attempts, &fields, Some(&answer)))
}

fn page(
    visitor: &Visitor,
    timer: &Timer,
    attempts: &[Attempt],
    fields: &Fields,
    answer: Option<&Result<bool, Invalid>>,
) -> Markup {
    let body = html! {
        div.title { h1 { "Signature of " a.mono href=(visitor.link(&format!("/timers/{}", timer.id()))) { (named_timer::name_of(timer)) } } }
        @match answer {
            Some(Ok(true)) => { p.notice role="status" { "The signature is right: it was made with this secret for this id, time and body." } }
            Some(Ok(false)) => { p.notice.bad role="alert" { "The signature is not that of this call: the secret, the time, the id or the body is another one." } }
            Some(Err(invalid)) => { p.notice.bad role="alert" { (sentence(&invalid.to_string())) } }
            None => {}
        }
        section.card.form { div.body { (form(visitor, timer, attempts, fields)) } }
    };
    frame::page(visitor, Some(Section::Timers), "Signature", body)
}

/// What the signature is over: of the call that the fields describe, or of the last one.
fn signed_text(visitor: &Visitor, timer: &Timer, timestamp: &str, fields: &Fields, has_body_of_its_own: bool) -> String {
    let payload = timer.definition.callback.payload.as_ref().map_or("", JsonText::as_str);
    let body = match fields.get("body") {
        Some(body) => body,
        None if has_body_of_its_own || visitor.payloads() == Payloads::Off => "{body}",
        None => payload,
    };
    let timestamp = if timestamp.is_empty() { "{webhook-timestamp}" } else { timestamp };
    format!("{}.{timestamp}.{}", timer.webhook_id(), text::cut(body, SIGNED_CHARS_SHOWN))
}

/// What the signature is over, and the fields for what a receiver has got.
pub(crate) fn form(visitor: &Visitor, timer: &Timer, attempts: &[Attempt], fields: &Fields) -> Markup {
    let last = attempts.last().map(|last| last.started_at.as_micros().div_euclid(1_000_000).to_string()).unwrap_or_default();
    let timestamp = fields.get("timestamp").unwrap_or(&last);
    let value = |name: &str| fields.get(name).unwrap_or_default();
    let has_body_of_its_own =
        matches!(&timer.definition.callback.endpoint, Endpoint::Http(http) if http.protocol == Protocol::Timer);
    html! {
        form.stack method="post" action=(visitor.link(&format!("/timers/{}/verify", timer.id()))) autocomplete="off" {
            dl.facts {
                dt { "webhook-id" } dd.mono { (timer.webhook_id()) }
                dt { "Signed text" } dd { pre tabindex="0" { (signed_text(visitor, timer, timestamp, fields, has_body_of_its_own)) } }
                dt { "Signed with" } dd { "HMAC-SHA-256 over " code { "webhook-id.webhook-timestamp.body" } @if !last.is_empty() && *timestamp == last { ", here of the last call" } }
            }
            div.pair {
                label { "webhook-timestamp" input type="text" name="timestamp" value=(timestamp) inputmode="numeric" placeholder="1893456000" required; }
                label { "webhook-signature" input type="text" name="signature" value=(value("signature")) placeholder="v1,…" spellcheck="false" required; }
                label { "Secret" input type="password" name="secret" placeholder="whsec_…" autocomplete="off" required; }
            }
            label { "Body"
                span.hint {
                    @if has_body_of_its_own { "As it was received: the timer protocol has a body of its own." }
                    @else { "As it was received; left empty, it is the payload of this timer." }
                }
                textarea name="body" rows="2" spellcheck="false" required[has_body_of_its_own] { "\n" (value("body")) }
            }
            div.actions { span.hint { "Computed here; nothing of it is kept." } button { "Verify" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Rights;

    use crate::rig::Rig;

    #[tokio::test]
    async fn a_signature_is_verified_and_the_secret_is_not_shown_again() {
        let rig = Rig::new();
        let id = rig.timer("k", "a").await;
        let path = format!("/console/timers/{id}/verify");
        assert!(rig.get(&path).await.text.contains(".{webhook-timestamp}.</pre>"));
        for (secret, told) in [("whsec_right", "The signature is right"), ("whsec_wrong", "is not that of this call")] {
            let page = rig.post(&path, &format!("secret={secret}&timestamp=1893456000&signature=v1%2Cabc")).await;
            assert!(page.status == 200 && page.text.contains(told), "{}", page.text);
            assert!(!page.text.contains(secret) && page.text.contains("v1,abc"));
        }
        let (_, reader) = rig.holder(&["a"], Rights::Read).await;
        assert_eq!(rig.post_as(&reader, &path, "secret=x&timestamp=1&signature=v1").await.status, 200, "it changes nothing");
        let (_, stranger) = rig.holder(&["b", "c"], Rights::Write).await;
        assert_eq!(rig.post_as(&stranger, &path, "secret=x&timestamp=1&signature=v1").await.status, 404);
    }
}
