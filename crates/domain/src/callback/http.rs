//! Callbacks of the kind `http`: a POST to a URL.

use super::{
    Callback, CallbackUrl, Endpoint,
    fields::{Fields, Trust},
    kind::KindInfo,
    text::ObjectText,
};
use crate::{Invalid, Span, limits};

pub(super) const KIND: KindInfo =
    KindInfo { name: "http", fields: &["url", "timeout", "protocol"], has_content: true, is_requestable: true, backend: None };

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpEndpoint {
    pub url: CallbackUrl,
    pub timeout: Span,
    pub protocol: Protocol,
}

/// What an HTTP receiver's answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Any 2xx is success; the body of the answer is ignored.
    #[default]
    Webhook,
    /// The body of the answer says whether it worked and when to call again.
    Timer,
}

impl Protocol {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Timer => "timer",
        }
    }
}

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

    pub(super) fn write(&self, callback: &Callback, object: &mut ObjectText) {
        let Self { url, timeout, protocol } = self;
        object.string("url", url.as_str());
        object.content(callback);
        object.string("timeout", &timeout.to_string());
        object.string("protocol", protocol.as_str());
    }

    pub(super) fn read(fields: &Fields<'_>, trust: Trust) -> Result<Callback, Invalid> {
        let url = fields.required_string("url")?;
        let (headers, payload) = fields.content(trust)?;
        let timeout = match fields.string("timeout")? {
            Some(text) => Self::allowed_timeout(Span::parse("timeout", &text)?)?,
            None => limits::CALLBACK_TIMEOUT_DEFAULT,
        };
        let protocol = match fields.string("protocol")?.as_deref() {
            None | Some("webhook") => Protocol::Webhook,
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
