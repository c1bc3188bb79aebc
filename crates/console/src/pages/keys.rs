//! `/console/keys`: the issued API keys. For the administrator.

use std::collections::HashMap;

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use domain::{Access, AccessKey, AccessKeyId, Invalid, Namespace, Namespaces, Rights, Timestamp, limits};
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};

use crate::{
    fields::{Fields, Form},
    filter_words::word,
    frame::{self, Section},
    problem::{Problem, sentence},
    text,
    visitor::Visitor,
};

pub(crate) async fn show(visitor: Visitor, fields: Fields) -> Result<Markup, Problem> {
    let notice =
        fields.get("done").map(|_| html! { p.notice role="status" { "The key was revoked. Its sessions end within a second." } });
    page(&visitor, notice.as_ref(), None).await
}

async fn page(visitor: &Visitor, notice: Option<&Markup>, refused: Option<&Invalid>) -> Result<Markup, Problem> {
    let (keys, uses) = (visitor.commands.keys().await?, visitor.commands.key_uses().await?);
    let body = html! {
        div.title { h1 { "Keys" } span.muted { "beside the administrator's own" } }
        @if let Some(notice) = notice { (notice) }
        @if visitor.may_write() { (form(visitor, refused)) }
        section.card { (table(visitor, &keys, &uses)) }
    };
    Ok(frame::page(visitor, Some(Section::Keys), "Keys", body))
}

fn form(visitor: &Visitor, refused: Option<&Invalid>) -> Markup {
    html! {
        section.card { header { h2 { "Issue a key" } } div.body {
            @if let Some(invalid) = refused { p.field-error role="alert" { (sentence(&invalid.to_string())) } }
            form.stack method="post" action=(visitor.link("/keys")) {
                div.pair {
                    label { "Name" input type="text" name="name" required maxlength=(limits::KEY_NAME_CHARS_MAX) autocomplete="off"; }
                    label { "Namespaces" input type="text" name="namespaces" placeholder="all, or such as billing, shop" autocomplete="off"; }
                    label { "Rights" select name="rights" { option value="read" { "read" } option value="write" { "read and write" } } }
                }
                div { button.main { "Issue key" } }
            }
        } }
    }
}

fn table(visitor: &Visitor, keys: &[AccessKey], uses: &HashMap<AccessKeyId, Timestamp>) -> Markup {
    html! {
        @if keys.is_empty() {
            div.empty { h2 { "No keys yet" } p { "Give each client a key of its own, for its namespaces only." } }
        } @else {
            div.table tabindex="0" role="region" aria-label="Keys" { table {
                thead { tr { th { "Name" } th.minor { "Namespaces" } th.minor { "Rights" } th.extra { "Created" } th.minor { "Last used" } th { "State" } th.extra { "Id" } th { span.unseen { "Actions" } } } }
                tbody { @for key in keys {
                    tr {
                        td.cut.fill title=(key.name) { (key.name) span.under.mono { (key.id) } }
                        td.cut.minor { (timers_of(visitor, &key.access.namespaces)) }
                        td.minor { (key.access.rights.as_str()) }
                        td.extra { (text::time(visitor, key.created_at)) }
                        td.minor { @match uses.get(&key.id) {
                            Some(at) => { (text::distance(visitor, *at)) }
                            None => { span.muted { "no use recorded" } }
                        } }
                        td { @match key.revoked_at {
                            Some(at) => { span.status.canceled { "revoked" } span.extra.muted { " " (text::time(visitor, at)) } }
                            None => { span.status.completed { "valid" } }
                        } }
                        td.mono.muted.extra { (key.id) }
                        td { @if key.is_valid() && visitor.may_write() { a.button.danger href=(visitor.link(&format!("/keys/{}/revoke", key.id))) data-dialog { "Revoke" } } }
                    }
                } }
            } }
        }
    }
}

/// The namespaces of a key, which lead to their timers.
fn timers_of(visitor: &Visitor, namespaces: &Namespaces) -> Markup {
    let words = match namespaces {
        Namespaces::All => String::new(),
        Namespaces::Only(names) => names.iter().map(|name| word("ns:", name.as_str())).collect::<Vec<_>>().join(" "),
    };
    html! { a.cell href=(visitor.link_to_timers(&words)) { (namespaces) } }
}

/// `POST /console/keys`: the answer shows the key, this once.
pub(crate) async fn create(visitor: Visitor, Form(form): Form) -> Result<Response, Problem> {
    visitor.commands.check_administrator()?;
    let access = match access_of(&form) {
        Ok(access) => access,
        Err(invalid) => return Ok((StatusCode::BAD_REQUEST, page(&visitor, None, Some(&invalid)).await?).into_response()),
    };
    let name = form.get("name").unwrap_or_default();
    if let Err(invalid) = AccessKey::parse_name(name) {
        return Ok((StatusCode::BAD_REQUEST, page(&visitor, None, Some(&invalid)).await?).into_response());
    }
    let (key, text) = visitor.commands.create_key(name, access, rand::random()).await?;
    visitor.shared.keyring.forget().await;
    let notice = html! {
        div.notice role="status" {
            div.stack {
                p { strong { "This is the key of " (key.name) ". It is shown this once: copy it now." } }
                div.copied { button.quiet type="button" hidden data-copy=(text) { "Copy" } pre #issued-key tabindex="0" { (text) } }
            }
        }
    };
    Ok((StatusCode::CREATED, page(&visitor, Some(&notice), None).await?).into_response())
}

fn access_of(form: &Fields) -> Result<Access, Invalid> {
    let rights = form.get("rights").and_then(Rights::parse).ok_or_else(|| Invalid::new("rights", "must be read or write"))?;
    let names = form.get("namespaces").unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let names = names.map(Namespace::parse).collect::<Result<Vec<_>, _>>()?;
    if names.len() > limits::KEY_NAMESPACES_MAX {
        return Err(Invalid::new("namespaces", format!("must not be more than {}", limits::KEY_NAMESPACES_MAX)));
    }
    Ok(Access { namespaces: if names.is_empty() { Namespaces::All } else { Namespaces::Only(names) }, rights })
}

/// `GET /console/keys/{id}/revoke`: what would happen.
pub(crate) async fn confirm(visitor: Visitor, Path(id): Path<String>, headers: HeaderMap) -> Result<Markup, Problem> {
    visitor.check_may_write()?;
    let id = AccessKeyId::parse(&id).map_err(|_| Problem::NoSuchPage)?;
    let keys = visitor.commands.keys().await?;
    let key = keys.iter().find(|key| key.id == id).ok_or(Problem::NoSuchPage)?;
    let form = |heading: &Markup| {
        html! {
            form #confirm .stack method="post" action=(visitor.link(&format!("/keys/{id}/revoke"))) aria-labelledby="confirm-title" {
                (heading)
                p { strong { (key.name) } span.muted { ", " (key.access.namespaces) } }
                p { "A client that uses it is refused within a second, here and on every other node. This cannot be undone." }
                div.actions { a.button data-close href=(visitor.link("/keys")) { "Back" } button.danger { "Revoke key" } }
            }
        }
    };
    if headers.contains_key("x-fragment") {
        return Ok(form(&html! { h2 #confirm-title { "Revoke this key?" } }));
    }
    let body = html! { section.card.narrow { div.body { (form(&html! { h1 #confirm-title { "Revoke this key?" } })) } } };
    Ok(frame::page(&visitor, Some(Section::Keys), "Revoke", body))
}

/// `POST /console/keys/{id}/revoke`.
pub(crate) async fn revoke(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Problem> {
    let id = AccessKeyId::parse(&id).map_err(|_| Problem::NoSuchPage)?;
    visitor.commands.revoke_key(id).await?;
    visitor.shared.keyring.forget().await;
    Ok(Redirect::to(&visitor.link("/keys?done=revoke")).into_response())
}

#[cfg(test)]
mod tests {
    use domain::{Rights, Span};

    use crate::rig::Rig;

    #[tokio::test]
    async fn a_key_is_issued_shown_once_and_revoked() {
        let rig = Rig::new();
        assert!(rig.get("/console/keys").await.text.contains("No keys yet"));
        let issued = rig.post("/console/keys", "name=night+shift&namespaces=a,+b&rights=read").await;
        assert_eq!(issued.status, 201, "{}", issued.text);
        let key = issued.text.split("id=\"issued-key\" tabindex=\"0\">").nth(1).and_then(|rest| rest.split('<').next()).unwrap();
        assert!(key.starts_with("tk_"), "{key}");
        let listed = rig.get("/console/keys").await;
        assert!(listed.text.contains("no use recorded"), "{}", listed.text);
        assert!(listed.text.contains("night shift") && listed.text.contains("a, b") && !listed.text.contains(key));
        let cookie = rig.log_in(key).await.cookie();
        assert_eq!(rig.get_as(&cookie, "/console").await.status, 200);

        let id = rig.commands.keys().await.unwrap()[0].id;
        assert!(rig.get(&format!("/console/keys/{id}/revoke")).await.text.contains("Revoke this key?"));
        assert_eq!(rig.post(&format!("/console/keys/{id}/revoke"), "").await.status, 303);
        rig.clock.advance(Span::from_secs(1));
        assert_eq!(rig.get_as(&cookie, "/console").await.status, 303, "the session has ended");
        for form in ["name=&rights=read", "name=x&rights=all"] {
            assert_eq!(rig.post("/console/keys", form).await.status, 400, "{form}");
        }
    }

    #[tokio::test]
    async fn keys_are_for_the_administrator() {
        let rig = Rig::new();
        let (id, cookie) = rig.holder(&["a"], Rights::Write).await;
        for path in ["/console/keys", "/console/cluster"] {
            assert_eq!(rig.get_as(&cookie, path).await.status, 403, "{path}");
        }
        assert_eq!(rig.post_as(&cookie, "/console/keys", "name=x&rights=write").await.status, 403);
        assert_eq!(rig.post_as(&cookie, &format!("/console/keys/{id}/revoke"), "").await.status, 403);
        assert!(!rig.get_as(&cookie, "/console").await.text.contains(">Keys<"));
    }
}
