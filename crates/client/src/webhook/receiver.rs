use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Body;

use super::{Answer, Call, Secret, TOLERANCE, verify};
use crate::calls::now;

/// The largest call that is read: a payload has 1 MiB at most.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Takes the calls of a receiver from any server over `http`, such as axum and hyper: verified, and without repetitions.
///
/// ```
/// # use bytes::Bytes;
/// # use http_body_util::Full;
/// use client::webhook::{Answer, Receiver};
///
/// // A handler of axum, with `axum::body::Body` for `B`.
/// async fn cart<B>(receiver: &Receiver, request: http::Request<B>) -> http::Response<Full<Bytes>>
/// where
///     B: hyper::body::Body,
///     B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
/// {
///     match receiver.take(request).await {
///         Ok((call, body)) => {
///             println!("{} attempt {}: {body:?}", call.timer_id, call.attempt);
///             Answer::status(204).into()
///         }
///         Err(refused) => refused,
///     }
/// }
/// ```
pub struct Receiver {
    secrets: Vec<Secret>,
    tolerance: Duration,
    is_new: Option<Box<IsNew>>,
}

type IsNew = dyn Fn(&Call) -> bool + Send + Sync;

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("tolerance", &self.tolerance).finish_non_exhaustive()
    }
}

impl Receiver {
    /// Takes what is signed with one of these secrets: two while one replaces the other.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        Self { secrets: secrets.into_iter().collect(), tolerance: TOLERANCE, is_new: None }
    }

    /// How old or how far ahead a call may be.
    #[must_use]
    pub const fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Drops repetitions: a call for which this says `false` is answered with 200 and not given to the handler. `Call::id` is the
    /// same for every attempt of one due time.
    #[must_use]
    pub fn only_if(mut self, is_new: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.is_new = Some(Box::new(is_new));
        self
    }

    /// The call and its body as it arrived, or the answer to send: 401 for what is no call of the service, 413 for what is too large,
    /// and 200 for a repetition.
    pub async fn take<B>(&self, request: Request<B>) -> Result<(Call, Bytes), Response<Full<Bytes>>>
    where
        B: Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|_| Answer::status(413))?.to_bytes();
        let call = verify(&head.headers, &body, &self.secrets, self.tolerance, now()).map_err(|_| Answer::status(401))?;
        match &self.is_new {
            Some(is_new) if !is_new(&call) => Err(Answer::status(200).into()),
            _ => Ok((call, body)),
        }
    }
}
