//! How the OpenAPI document describes callbacks: what the endpoint of each kind says about its own members, and what all kinds have.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, Ref, RefOr, Schema,
        schema::{AdditionalProperties, Object, OneOfBuilder, RefBuilder, Type},
    },
};

use super::{
    Callback, CallbackKind,
    info::{Content, Schemas},
    kind::KindSet,
};
use crate::{AnyJson, Headers, choice};

impl CallbackKind {
    /// The name of a schema of this kind.
    fn named_schema(self, suffix: &str) -> String {
        let (initial, rest) = self.as_str().split_at(1);
        format!("{}{rest}{suffix}", initial.to_ascii_uppercase())
    }

    fn type_name(self) -> String {
        self.named_schema("Type")
    }

    fn callback_name(self) -> String {
        self.named_schema("Callback")
    }

    /// What the endpoint says, with the members that it does not know of.
    fn callback_schema(self) -> Object {
        let info = self.info();
        let endpoint = match (info.description.schema)() {
            RefOr::T(Schema::Object(object)) => object,
            // Endpoints are structs, whose schemas are objects.
            _ => Object::new(),
        };
        let mut callback = ObjectBuilder::new()
            .description(endpoint.description)
            .property("type", Ref::from_schema_name(self.type_name()))
            .required("type")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
        for (name, schema) in endpoint.properties {
            callback = callback.property(name, schema);
        }
        for name in endpoint.required {
            callback = callback.required(name);
        }
        if let Some(Content { headers, payload }) = &info.content {
            let headers = RefBuilder::new().ref_location_from_schema_name(Headers::name()).description(Some(*headers));
            let null = ObjectBuilder::new().schema_type(Type::Null);
            let payload = RefBuilder::new().ref_location_from_schema_name(AnyJson::name()).description(Some(*payload));
            callback = callback.property("headers", OneOfBuilder::new().item(headers).item(null)).property("payload", payload);
        }
        callback.build()
    }
}

/// One of these kinds.
fn one_of(kinds: KindSet, description: &str) -> RefOr<Schema> {
    let kinds = CallbackKind::ALL.into_iter().filter(|kind| kinds.contains(*kind));
    let refer = |one_of: OneOfBuilder, kind: CallbackKind| one_of.item(Ref::from_schema_name(kind.callback_name()));
    kinds.fold(OneOfBuilder::new(), refer).description(Some(description)).into()
}

/// What [`one_of`] refers to.
fn add_referred(kinds: KindSet, schemas: &mut Schemas) {
    for kind in CallbackKind::ALL.into_iter().filter(|kind| kinds.contains(*kind)) {
        schemas.push((kind.type_name(), choice([kind.as_str()]).into()));
        schemas.push((kind.callback_name(), kind.callback_schema().into()));
        (kind.info().description.references)(schemas);
    }
    schemas.push((Headers::name().into(), Headers::schema()));
    schemas.push((AnyJson::name().into(), AnyJson::schema()));
}

impl PartialSchema for CallbackKind {
    fn schema() -> RefOr<Schema> {
        choice(Self::NAMES).into()
    }
}

impl ToSchema for CallbackKind {
    fn name() -> std::borrow::Cow<'static, str> {
        "CallbackType".into()
    }
}

/// As clients may ask for it.
impl PartialSchema for Callback {
    fn schema() -> RefOr<Schema> {
        one_of(KindSet::REQUESTABLE, "Whom the timer calls.")
    }
}

impl ToSchema for Callback {
    fn schemas(schemas: &mut Schemas) {
        add_referred(KindSet::REQUESTABLE, schemas);
    }
}

/// A callback of any kind, as answers show it. It is only described: what is shown is a [`Callback`].
pub enum CallbackConfig {}

impl PartialSchema for CallbackConfig {
    fn schema() -> RefOr<Schema> {
        one_of(CallbackKind::ALL.into_iter().collect(), "Whom the timer calls, as it is kept.")
    }
}

impl ToSchema for CallbackConfig {
    fn schemas(schemas: &mut Schemas) {
        add_referred(CallbackKind::ALL.into_iter().collect(), schemas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_described_is_what_is_read() {
        for kind in CallbackKind::ALL {
            let info = kind.info();
            let content: &[&str] = if info.content.is_some() { &["headers", "payload"] } else { &[] };
            let read = [&["type"], info.fields, content].concat();
            let described = kind.callback_schema();
            assert_eq!(described.properties.keys().collect::<Vec<_>>(), read, "{kind}");
            assert!(described.description.is_some(), "{kind}");
            assert!(matches!(described.additional_properties.as_deref(), Some(AdditionalProperties::FreeForm(false))), "{kind}");
        }
    }

    #[test]
    fn only_what_clients_may_ask_for_is_described_for_requests() {
        let named = |schema: RefOr<Schema>| {
            let text = serde_json::to_string(&schema).unwrap();
            CallbackKind::ALL.map(|kind| text.contains(&format!("/{}\"", kind.callback_name())))
        };
        assert_eq!(named(Callback::schema()), CallbackKind::ALL.map(|kind| KindSet::REQUESTABLE.contains(kind)));
        assert_eq!(named(CallbackConfig::schema()), [true; CallbackKind::ALL.len()]);
    }
}
