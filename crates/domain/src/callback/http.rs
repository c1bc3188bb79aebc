//! Callbacks of the kind `http`: a POST to a URL.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::{
    Callback, CallbackUrl, Endpoint,
    fields::{Fields, Trust},
    info::{Content, Description, KindInfo},
    text::{Members, ObjectText},
};
use crate::{Invalid, Span, choice, limits};

pub(super) const KIND: KindInfo = KindInfo {
    name: "http",
    fields: &["url", "timeout", "protocol"],
    content: Some(Content {
        headers: "Own headers of the call: at most 32, together at most 16 KiB. Names that the service or the connection sets\n\
            (`Host`, `Content-Length`, `X-Timer-…`, `Webhook-…` and the like) are refused.",
        payload: "The body of the call, exactly as given: at most 256 KiB, nested at most 64 deep.",
    }),
    is_requestable: true,
    is_message: false,
    backend: None,
    description: Description::of::<HttpEndpoint>(),
};

/// A POST to a URL.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
pub struct HttpEndpoint {
    /// `http` or `https`, without credentials.
    #[schema(
        value_type = String,
        format = "uri",
        max_length = 2048,
        pattern = "^[hH][tT][tT][pP][sS]?://[^/@]",
        example = "https://api.example.com/webhook"
    )]
    pub url: CallbackUrl,
    /// How long the receiver may take: 100ms to 5m, 30s unless given.
    #[schema(value_type = Option<String>, example = "30s")]
    pub timeout: Span,
    /// `webhook` (unless given): any 2xx is success, the body of the answer is ignored. `timer`: the answer is read as
    /// `{"ok": bool, "nextExecuteAt": …}`.
    #[schema(value_type = Option<Protocol>)]
    pub protocol: Protocol,
}

/// What an HTTP receiver's answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Any 2xx is success; the body of the answer is ignored.
    // For ever: stores leave the default out.
    #[default]
    Webhook,
    /// The body of the answer says whether it worked and when to call again.
    Timer,
}

impl Protocol {
    pub const ALL: [Self; 2] = [Self::Webhook, Self::Timer];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Timer => "timer",
        }
    }
}

impl PartialSchema for Protocol {
    fn schema() -> RefOr<Schema> {
        choice(Self::ALL.map(Self::as_str)).into()
    }
}

impl ToSchema for Protocol {}

impl HttpEndpoint {
    /// A plain POST with the default timeout.
    pub const fn new(url: CallbackUrl) -> Self {
        Self { url, timeout: limits::CALLBACK_TIMEOUT_DEFAULT, protocol: Protocol::Webhook }
    }

    /// How long a receiver may take, if a client may grant it that long.
    pub fn allowed_timeout(timeout: Span) -> Result<Span, Invalid> {
        if !(limits::CALLBACK_TIMEOUT_MIN..=limits::CALLBACK_TIMEOUT_MAX).contains(&timeout) {
            let rule = format!("must lie between {} and {}", limits::CALLBACK_TIMEOUT_MIN, limits::CALLBACK_TIMEOUT_MAX);
            return Err(Invalid::new("timeout", rule));
        }
        Ok(timeout)
    }

    pub(super) fn write(&self, callback: &Callback, members: Members, object: &mut ObjectText) {
        let Self { url, timeout, protocol } = self;
        object.string("url", url.as_str());
        object.content(callback);
        if members.include(timeout, &limits::CALLBACK_TIMEOUT_DEFAULT) {
            object.string("timeout", &timeout.to_string());
        }
        if members.include(protocol, &Protocol::default()) {
            object.string("protocol", protocol.as_str());
        }
    }

    pub(super) fn read(fields: &Fields<'_>, trust: Trust) -> Result<Callback, Invalid> {
        let url = fields.required_string("url")?;
        let (headers, payload) = fields.content(trust)?;
        let timeout = match fields.string("timeout")? {
            Some(text) => Self::allowed_timeout(Span::parse("timeout", &text)?)?,
            None => limits::CALLBACK_TIMEOUT_DEFAULT,
        };
        let protocol = match fields.string("protocol")?.as_deref() {
            None => Protocol::default(),
            Some("webhook") => Protocol::Webhook,
            Some("timer") => Protocol::Timer,
            Some(_) => return Err(Invalid::new("protocol", "must be webhook or timer")),
        };
        let url = match trust {
            Trust::None => CallbackUrl::parse(&url)?,
            Trust::Stored => CallbackUrl::trusted(url.into_owned()),
        };
        Ok(Callback { endpoint: Endpoint::Http(Self { url, timeout, protocol }), headers, payload })
    }
}
