//! What is known of each kind of callback without looking at one.

use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

/// A kind of callback. How its endpoints are read and written stands beside them.
pub(super) struct KindInfo {
    pub name: &'static str,
    /// The members of its JSON object that not every kind has. Several kinds may have members of the same name.
    pub fields: &'static [&'static str],
    /// Headers and a payload, where it has them.
    pub content: Option<Content>,
    /// Whether clients may ask for it.
    pub is_requestable: bool,
    /// Whether a call is a message that is published, and no request that its receiver answers. Traces tell the two apart.
    pub is_message: bool,
    pub backend: Option<Backend>,
    pub description: Description,
}

/// What is said about the headers and the payload of a kind.
pub(super) struct Content {
    pub headers: &'static str,
    pub payload: &'static str,
}

/// A server that all callbacks of a kind go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backend {
    pub name: &'static str,
    /// The setting that configures it.
    pub setting: &'static str,
}

pub(super) type Schemas = Vec<(String, RefOr<Schema>)>;

/// How an endpoint describes its members, and what these refer to.
pub(super) struct Description {
    pub schema: fn() -> RefOr<Schema>,
    pub references: fn(&mut Schemas),
}

impl Description {
    pub const fn of<E: ToSchema>() -> Self {
        Self { schema: E::schema, references: E::schemas }
    }
}
