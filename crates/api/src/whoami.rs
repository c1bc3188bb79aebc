//! `GET /whoami`: what the key of the request opens.

use domain::{AccessKeyId, Caller, Namespace, Namespaces, Rights};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope},
    error::ApiError,
    schema,
};

const ADMINISTRATOR: &str = "administrator";

/// The key of the request, without what opens anything.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Caller)]
pub(crate) struct CallerView {
    /// Whether it is the key that the service was started with, which opens everything and issues keys.
    #[schema(example = false)]
    administrator: bool,
    /// Names an issued key; `null` for the administrator's.
    #[schema(required = true, format = "uuid", example = "01890a5d-ac96-774b-bcce-b302099a8057")]
    id: Option<String>,
    /// What the list of keys calls it; `administrator` for the administrator's.
    #[schema(example = "billing service")]
    name: String,
    #[schema(value_type = schema::Rights)]
    rights: &'static str,
    /// The namespaces that it opens; `null` for all of them.
    #[schema(value_type = Option<Vec<String>>, required = true, example = json!(["billing"]))]
    namespaces: Option<Vec<Namespace>>,
}

impl CallerView {
    fn of(caller: &Caller) -> Self {
        match caller {
            Caller::Administrator => Self {
                administrator: true,
                id: None,
                name: ADMINISTRATOR.to_owned(),
                rights: Rights::Write.as_str(),
                namespaces: None,
            },
            Caller::Holder(key) => Self {
                administrator: false,
                id: Some(key.id).as_ref().map(AccessKeyId::to_string),
                name: key.name.clone(),
                rights: key.access.rights.as_str(),
                namespaces: match &key.access.namespaces {
                    Namespaces::All => None,
                    Namespaces::Only(names) => Some(names.clone()),
                },
            },
        }
    }
}

/// Who am I
///
/// The key of this request: its name, what it may do, and the namespaces that it opens.
#[utoipa::path(
    get, path = "/whoami", tag = "service", operation_id = "whoami", security(("ApiKey" = [])),
    responses((status = 200, description = "The key: `success`.", body = Envelope<CallerView>))
)]
pub(crate) async fn whoami(Permitted(commands): Permitted) -> Result<Answer<CallerView>, ApiError> {
    Ok(Answer::ok("success", CallerView::of(&commands.caller)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::rig::Rig;

    #[tokio::test]
    async fn a_key_is_told_what_it_opens() {
        let rig = Rig::new();
        assert_eq!(
            rig.get("/whoami").await.json()["data"],
            json!({"administrator": true, "id": null, "name": "administrator", "rights": "write", "namespaces": null})
        );
        for (namespaces, rights) in [(json!(["a", "b"]), "read"), (json!(["a"]), "write"), (json!(null), "write")] {
            let key = rig.issued(&namespaces.to_string(), rights).await;
            let told = rig.call_with(&key, "GET", "/whoami", "").await;
            let id = told.data("id").as_str().unwrap().to_owned();
            assert!(key.contains(&id.replace('-', "")), "{id}");
            assert_eq!(
                told.json()["data"],
                json!({"administrator": false, "id": id, "name": "k", "rights": rights, "namespaces": namespaces})
            );
            assert!(!told.text.contains(&key));
        }
        assert_eq!(rig.call_with("wrong", "GET", "/whoami", "").await.refused(401, 4), "unauthorized");
    }
}
