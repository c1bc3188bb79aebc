//! `POST /keys`: issues a key.

use std::borrow::Cow;

use axum::extract::State;
use domain::{Access, Given, Invalid, Namespace, Namespaces, Rights, limits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KeyView;
use crate::{
    Api,
    auth::Administering,
    body::JsonBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    request::{self, Elements},
    schema,
};

/// A key to be issued.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct CreateKey<'a> {
    /// What to call it, for those who look at the list.
    #[schema(value_type = String, required = true, min_length = 1, max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    #[serde(default)]
    name: Given<'a, Cow<'a, str>>,
    /// The namespaces that it opens; `null` for all of them.
    #[schema(value_type = Option<Vec<schema::NamespaceName>>, required = true, min_items = 1, max_items = 100)]
    #[serde(default)]
    namespaces: Given<'a, Elements<'a, { limits::KEY_NAMESPACES_MAX }>>,
    #[schema(value_type = Rights, required = true)]
    #[serde(default)]
    rights: Given<'a, Rights>,
}

/// A new key, with the text that opens what it opens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IssuedKey {
    #[serde(flatten)]
    issued: KeyView,
    /// What its holder sends as `X-API-Key`. It is shown this once: it cannot be looked up later.
    #[schema(example = "tk_01890a5dac96774bbcceb302099a8057_…")]
    key: String,
}

/// Issue a key
///
/// A key of its own for another client: it opens the namespaces that are named, to read or also to write. Timers of other namespaces
/// do not exist for its holder. Its text is in the answer and nowhere else.
#[utoipa::path(
    post, path = "/keys", tag = "keys", operation_id = "createKey", security(("ApiKey" = [])),
    request_body(content = CreateKey, description = "What the key is to open.",
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
    let request: CreateKey<'_> = request::read(text)?;
    let name = request.name.required("name")?.into_owned();
    let rights = request.rights.required("rights")?;
    Ok((name, Access { namespaces: parse_namespaces(&request)?, rights }))
}

fn parse_namespaces(request: &CreateKey<'_>) -> Result<Namespaces, Invalid> {
    if request.namespaces.is_null() {
        return Ok(Namespaces::All);
    }
    let elements = request.namespaces.read("namespaces")?;
    let Elements(elements) =
        elements.ok_or_else(|| Invalid::new("namespaces", "is required: name them, or say null for all of them"))?;
    let mut names: Vec<Namespace> = Vec::with_capacity(elements.len());
    for raw in elements {
        let text: String = serde_json::from_str(raw.get()).map_err(|_| Invalid::new("namespaces", "must be strings"))?;
        let name = Namespace::parse(&text).map_err(|invalid| invalid.named("namespaces"))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(Namespaces::Only(names))
}
