//! `POST /keys`: issues a key.

use axum::extract::State;
use domain::{Access, Invalid, Namespace, Namespaces, Rights, limits};
use serde::Serialize;
use utoipa::ToSchema;

use super::KeyView;
use crate::{
    Api,
    auth::Administering,
    body::JsonBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    object::Object,
    schema,
};

pub(crate) const FIELDS: [&str; 3] = ["name", "namespaces", "rights"];

/// A new key, with the text that opens what it opens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IssuedKey {
    #[serde(flatten)]
    issued: KeyView,
    /// What its holder sends as `X-API-Key`. It is shown this once: nobody can look it up later.
    #[schema(example = "tk_01890a5dac96774bbcceb302099a8057_…")]
    key: String,
}

/// Issue a key
///
/// A key of its own for somebody else: it opens the namespaces that are named, to read or also to write. Timers of other namespaces
/// do not exist for its holder. Its text is in the answer and nowhere else.
#[utoipa::path(
    post, path = "/keys", tag = "keys", operation_id = "createKey", security(("ApiKey" = [])),
    request_body(content = schema::CreateKey, description = "What the key is to open.",
        example = json!({"name": "billing service", "namespaces": ["billing"], "rights": "write"})),
    responses(
        (status = 201, description = "The key: `key created successfully`.", body = Envelope<IssuedKey>, links(
            ("revoke" = (operation_id = "revokeKey", parameters(("id" = "$response.body#/data/id")))),
        )),
        (status = 400, description = "A field breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 403, description = "`this takes the administrator's key`.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn create(
    State(api): State<Api>,
    Administering(commands): Administering,
    body: JsonBody,
) -> Result<Answer<IssuedKey>, ApiError> {
    let (name, access) = parse(&body.text)?;
    let (issued, key) = commands.create_key(&name, access, rand::random()).await?;
    api.keyring.forget().await;
    Ok(Answer::created("key created successfully", IssuedKey { issued: issued.into(), key }))
}

fn parse(text: &str) -> Result<(String, Access), ApiError> {
    let object = Object::parse(text, &FIELDS)?;
    let required = |name: &str| Invalid::new(name, "is required");
    let name = object.string("name")?.ok_or_else(|| required("name"))?;
    let rights = object.string("rights")?.ok_or_else(|| required("rights"))?;
    let rights = Rights::parse(&rights).ok_or_else(|| Invalid::new("rights", "must be read or write"))?;
    Ok((name.into_owned(), Access { namespaces: parse_namespaces(&object)?, rights }))
}

fn parse_namespaces(object: &Object<'_>) -> Result<Namespaces, Invalid> {
    if object.is_null("namespaces") {
        return Ok(Namespaces::All);
    }
    let elements = object.elements("namespaces", limits::KEY_NAMESPACES_MAX)?;
    let elements = elements.ok_or_else(|| Invalid::new("namespaces", "is required: name them, or say null for all of them"))?;
    let mut names: Vec<Namespace> = Vec::with_capacity(elements.len());
    for raw in elements {
        let text: String = serde_json::from_str(raw.get()).map_err(|_| Invalid::new("namespaces", "must be strings"))?;
        let name = Namespace::parse(&text).map_err(|Invalid { rule, .. }| Invalid::new("namespaces", rule))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(Namespaces::Only(names))
}
