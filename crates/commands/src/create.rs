use domain::{
    Asked, Callback, CallbackUrl, CorrelationId, Definition, Delivery, Headers, HttpCallback, Invalid, JsonText, Key, Namespace,
    NewTimer, OnConflict, Protocol, RetryPolicy, Status, Timer, TimerId, limits,
};
use store::{Created, StoreError, StoreResult};

use crate::{CommandError, Commands, Soonest, call, call::ReadBack};

/// A timer that somebody wants, in values that are already right by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTimerRequest {
    pub asked: Asked,
    pub soonest: Soonest,
    pub target: Target,
    pub namespace: Namespace,
    pub key: Option<Key>,
    pub on_conflict: OnConflict,
    pub metadata: Option<JsonText>,
    pub correlation_id: Option<CorrelationId>,
    pub retry_policy: Option<RetryPolicy>,
    pub delivery: Delivery,
}

/// Whom the timer calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    Callback(Callback),
    /// A plain POST to this address with the timer's id appended to its path.
    UrlWithId(CallbackUrl),
}

impl NewTimerRequest {
    /// One with nothing but a time and a target.
    pub fn new(asked: Asked, target: Target) -> Self {
        Self {
            asked,
            soonest: Soonest::default(),
            target,
            namespace: Namespace::default(),
            key: None,
            on_conflict: OnConflict::default(),
            metadata: None,
            correlation_id: None,
            retry_policy: None,
            delivery: Delivery::default(),
        }
    }
}

/// What a create came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Created(Timer),
    /// It was there already, and is unchanged.
    Existing(Timer),
    /// It was there already, and took the new content, the new time or a new life.
    Replaced(Timer),
}

impl Outcome {
    pub const fn timer(&self) -> &Timer {
        match self {
            Self::Created(timer) | Self::Existing(timer) | Self::Replaced(timer) => timer,
        }
    }
}

impl Commands {
    /// Registers a timer. When this answers, it is on disk.
    pub async fn create(&self, request: NewTimerRequest) -> Result<Outcome, CommandError> {
        let new = self.prepare(request)?;
        let outcome = match self.register(&new).await? {
            Created::Created(timer) => Outcome::Created(timer),
            Created::Replaced(timer) => Outcome::Replaced(timer),
            Created::Existing(timer) => return Ok(Outcome::Existing(timer)),
            Created::Conflict(timer) if timer.status == Status::Executing => return Err(CommandError::Busy(Box::new(timer))),
            Created::Conflict(timer) => return Err(CommandError::Conflict(Box::new(timer))),
        };
        let result = if matches!(outcome, Outcome::Created(_)) { "created" } else { "replaced" };
        metrics::counter!("timer_created_total", "result" => result).increment(1);
        self.scheduled(outcome.timer());
        Ok(outcome)
    }

    fn prepare(&self, request: NewTimerRequest) -> Result<NewTimer, Invalid> {
        let now = self.clock.now();
        let execute_at = request.asked.instant(now, &self.rules.horizon(request.soonest))?;
        let id = match &request.key {
            Some(key) => TimerId::keyed(&request.namespace, key),
            None => TimerId::random(now),
        };
        let callback = match request.target {
            Target::Callback(callback) => callback,
            Target::UrlWithId(url) => post_to(&url, id)?,
        };
        self.rules.check(&callback)?;
        let definition = Definition {
            id,
            namespace: request.namespace,
            key: request.key,
            asked: request.asked,
            callback,
            metadata: request.metadata,
            correlation_id: request.correlation_id,
            retry_policy: request.retry_policy,
            delivery: request.delivery,
        };
        Ok(NewTimer { definition, execute_at, on_conflict: request.on_conflict, created_at: now })
    }

    async fn register(&self, new: &NewTimer) -> StoreResult<Created> {
        let cause = match self.register_once(new).await {
            Err(cause @ StoreError::Unknown(_)) => cause,
            known => return known,
        };
        let mut read_back = ReadBack::of("create", cause);
        loop {
            if let Some(timer) = read_back.timer(self, new.definition.id).await?
                && is_made_by(&timer, new)
            {
                return Ok(if timer.created_at == new.created_at { Created::Created(timer) } else { Created::Replaced(timer) });
            }
            // What was asked has not happened, so that asking again cannot make it happen twice.
            match self.register_once(new).await {
                Ok(Created::Existing(timer)) if is_made_by(&timer, new) => return Ok(Created::Created(timer)),
                Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                known => return known,
            }
        }
    }

    async fn register_once(&self, new: &NewTimer) -> StoreResult<Created> {
        let answers = call::writing(self.store.create(vec![new.clone()])).await?;
        answers.into_iter().next().ok_or_else(|| StoreError::Corrupt("the store gave no answer to a create".to_owned()))
    }
}

/// Whether this timer is as it is because of that request. It may have moved on since, so that it may have been touched later.
fn is_made_by(timer: &Timer, new: &NewTimer) -> bool {
    let touched = timer.created_at == new.created_at || timer.updated_at >= new.created_at;
    let same_time = timer.definition.asked == new.definition.asked && timer.execute_at == new.execute_at;
    let same_content = new.on_conflict == OnConflict::Keep || timer.definition.fingerprint() == new.definition.fingerprint();
    touched && same_time && same_content
}

fn post_to(url: &CallbackUrl, id: TimerId) -> Result<Callback, Invalid> {
    // Parsed again: the id makes it longer.
    let url = CallbackUrl::parse(url.with_id(id).as_str())?;
    Ok(Callback::Http(HttpCallback {
        url,
        headers: Headers::default(),
        payload: None,
        timeout: limits::CALLBACK_TIMEOUT_DEFAULT,
        protocol: Protocol::default(),
    }))
}

#[cfg(test)]
mod tests;
