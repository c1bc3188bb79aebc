//! What the OpenAPI document describes and no value of the domain does. The domain describes its own values.
//!
//! Types without values: they stand for what they describe, and are never made.

use domain::{AnyJson, CallbackKind, Protocol, Status, choice, limits};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type},
    },
};

use crate::limits::FILTER_NAMESPACES_MAX;

macro_rules! described {
    ($($(#[$meta:meta])* $name:ident: $schema:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema.into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

described! {
    /// Always `null`. Described as any value, because hardly a generator of clients knows the type `null`.
    Nothing: ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Always `null`."));
    NamespaceName: ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("The name of a namespace."))
        .min_length(Some(1))
        .max_length(Some(limits::NAMESPACE_CHARS_MAX))
        .pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]*$"));
    TimerKey: ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("The key of a timer."))
        .min_length(Some(1))
        .max_length(Some(limits::KEY_CHARS_MAX))
        .pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]*$"))
        .examples([serde_json::json!("order-456")]);
    IfMatch: ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("A revision in double quotes, or `*`."))
        .pattern(Some(r#"^(\*|"(0|[1-9][0-9]{0,8})")$"#))
        .examples([serde_json::json!("\"7\"")]);
    Sort: choice(["created_at", "execute_at"]);
    Order: choice(["asc", "desc"]);
    PendingStatus: choice(["pending"]);
    TimerEventType: choice(["created", "changed", "attempt", "finished"]).description(Some("What happened to a timer."));
    Missed: choice(["fire", "expire"]);
    BulkActionName: choice(commands::BulkWork::NAMES);
    OperationStateName: choice(commands::OperationState::ALL.map(commands::OperationState::as_str));
    /// How many timers are in each status.
    CountsByStatus: ObjectBuilder::new()
        .description(Some("How many timers are in each status."))
        .additional_properties(Some(ObjectBuilder::new().schema_type(Type::Integer)))
        .examples([serde_json::json!({"pending": 3})]);
    /// Statuses of which a timer must have one.
    StatusNames: statuses();
    /// Namespaces of which a timer must be in one.
    NamespaceNames: namespaces();
    /// What must be in the metadata of a timer.
    MetadataConditions: metadata_conditions();
    /// Members of an object, with any values.
    Members: ObjectBuilder::new()
        .description(Some("Members of an object, with any values; at least one."))
        .additional_properties(Some(AnyJson::schema()))
        .min_properties(Some(1))
        .examples([serde_json::json!({"owner": "ada"})]);
    /// How a timer speaks to its receiver in the dialect `v1`: by which protocol over HTTP, or else its kind.
    V1Protocol: protocols();
}

pub(crate) const IF_MATCH: &str = "The revision that the timer must have, in double quotes as in the `ETag` of an answer: with another \
    one nothing is changed, and the answer is a 412. `*` stands for any. Attempts, an end and a cancel leave the revision as it is.";

/// One text, or several: separated by commas in a text of this pattern, or as the elements of an array.
fn one_or_several(pattern: &str, array: ArrayBuilder) -> OneOfBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern));
    OneOfBuilder::new().item(text).item(array.min_items(Some(1)))
}

fn statuses() -> OneOfBuilder {
    let names = Status::ALL.map(Status::as_str);
    let one = format!("({})", names.join("|"));
    one_or_several(&format!("^{one}(,{one})*$"), ArrayBuilder::new().items(choice(names)))
}

fn namespaces() -> OneOfBuilder {
    let one = format!(r"[^\x00-\x1f\x7f-\x9f,]{{1,{}}}", limits::NAMESPACE_CHARS_MAX);
    let several = ArrayBuilder::new().items(NamespaceName::schema()).max_items(Some(FILTER_NAMESPACES_MAX));
    one_or_several(&format!("^{one}(,{one}){{0,{}}}$", FILTER_NAMESPACES_MAX - 1), several)
}

fn metadata_conditions() -> ObjectBuilder {
    let path = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^[A-Za-z0-9_-]{1,30}(\.[A-Za-z0-9_-]{1,30}){0,5}$"))
        .build();
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(limits::SEARCHED_CHARS_MAX))
        .pattern(Some(r"^[^\x00]*$"))
        .build();
    ObjectBuilder::new()
        .description(Some("Dotted paths in the metadata, and the text that the scalar at each must have."))
        .property_names(Some(Schema::from(path)))
        .additional_properties(Some(Schema::from(text)))
        .max_properties(Some(limits::METADATA_CONDITIONS_MAX))
        .examples([serde_json::json!({"customer.id": "42"})])
}

fn protocols() -> ObjectBuilder {
    let others = CallbackKind::ALL.into_iter().filter(|kind| *kind != CallbackKind::Http).map(CallbackKind::as_str);
    let names = [Protocol::Timer, Protocol::Webhook].map(Protocol::as_str).into_iter().chain(others);
    choice(names).description(Some(
        "`timer`: the POST carries `timerId`, `namespace`, `executeAt`, `attempt` and `payload`, and the answer is read as `{\"ok\": bool, \"nextExecuteAt\": …}`. \
         Every timer of this dialect is one. `webhook`, `nats` and `event` are timers of other dialects: a plain POST, a NATS message, an event of the broker.",
    ))
}
