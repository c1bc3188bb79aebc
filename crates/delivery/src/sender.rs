//! The contract of senders, and the registry that finds the sender of a callback by its kind.

use std::{any::Any, sync::Arc};

use async_trait::async_trait;
use domain::{Callback, CallbackKind, Invalid, KindSet, Namespace, Timer};

use crate::{answer::Answer, call::Call};

/// Sends the callbacks of one kind. It is never given a callback of another kind.
///
/// How many calls are in flight is decided before: each of them has its permit when it gets here.
#[async_trait]
pub trait Sender: Send + Sync {
    fn kind(&self) -> CallbackKind;

    /// Refuses a callback that would never be sent, as far as that can be told at once and without asking a server. It is called when a
    /// timer is registered; [`Sender::send`] checks again, because the rules may be younger than the timer.
    fn check(&self, namespace: &Namespace, callback: &Callback) -> Result<(), Invalid>;

    /// Waits until the call can go out, and checks out what it needs: for HTTP a connection, or the permit to open one. None of this
    /// time is the receiver's, so no timeout counts it. Before the call is made its claim is checked once more, so that what is waited
    /// for here must not be waited for in `send`. Dropping what is returned gives it back.
    async fn prepare(&self, timer: &Timer) -> Prepared;

    /// Makes one call and never more than one, and ends within the time that its receiver has. Where nothing was prepared it prepares
    /// the call itself. Dropping the future abandons the call: whether the receiver got it is then unknown.
    async fn send(&self, call: &Call<'_>, prepared: Prepared) -> Answer;
}

/// What a sender has checked out for one call. Only that sender knows what it is.
#[derive(Default)]
pub struct Prepared(Option<Box<dyn Any + Send>>);

impl Prepared {
    pub fn new(checkout: impl Any + Send) -> Self {
        Self(Some(Box::new(checkout)))
    }

    /// What was prepared, if it was by the sender that asks.
    pub fn take<Checkout: Any>(self) -> Option<Checkout> {
        self.0?.downcast().ok().map(|checkout| *checkout)
    }
}

/// The senders that there are, at most one of each kind.
#[derive(Default)]
pub(crate) struct Senders([Option<Arc<dyn Sender>>; CallbackKind::ALL.len()]);

impl Senders {
    /// Adds a sender, in place of an earlier one of its kind.
    pub fn register(&mut self, sender: Arc<dyn Sender>) {
        let kind = sender.kind();
        self.0[kind as usize] = Some(sender);
    }

    pub fn of(&self, kind: CallbackKind) -> Option<&dyn Sender> {
        self.0[kind as usize].as_deref()
    }

    pub fn kinds(&self) -> KindSet {
        self.0.iter().flatten().map(|sender| sender.kind()).collect()
    }
}
