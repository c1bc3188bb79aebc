use domain::{
    Callback, CallbackUrl, CorrelationId, Definition, Delivery, Endpoint, Expiry, Group, HttpEndpoint, Invalid, JsonText, Key,
    Namespace, NewTimer, OnConflict, Options, RequestedTime, Resolution, RetryPolicy, Status, Timer, TimerId, Times, Timestamp,
    resolve,
};
use store::{Created, StoreError, StoreResult};

use crate::{CommandError, Commands, EarliestAllowed, call, call::ReadBack};

/// A timer that a client asks for, in values that are already right by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTimerRequest {
    pub asked: RequestedTime,
    pub earliest_allowed: EarliestAllowed,
    pub target: Target,
    pub namespace: Namespace,
    pub key: Option<Key>,
    pub group: Option<Group>,
    /// The id that the client chose; not together with a key.
    pub id: Option<TimerId>,
    pub on_conflict: OnConflict,
    pub metadata: Option<JsonText>,
    pub correlation_id: Option<CorrelationId>,
    pub retry_policy: Option<RetryPolicy>,
    pub delivery: Delivery,
    pub options: Options,
}

/// The receiver of the timer's call.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    Callback(Callback),
    /// A plain POST to this URL with the timer's id appended to its path.
    UrlWithId(CallbackUrl),
    /// The event that is published for a timer of the command consumer.
    Event,
}

impl NewTimerRequest {
    /// A request with nothing but a time and a target.
    pub fn new(asked: RequestedTime, target: Target) -> Self {
        Self {
            asked,
            earliest_allowed: EarliestAllowed::default(),
            target,
            namespace: Namespace::default(),
            key: None,
            group: None,
            id: None,
            on_conflict: OnConflict::default(),
            metadata: None,
            correlation_id: None,
            retry_policy: None,
            delivery: Delivery::default(),
            options: Options::default(),
        }
    }
}

/// The result of a create.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Created(Timer),
    /// The timer existed already, and is unchanged.
    Existing(Timer),
    /// The timer existed already, and took the new content, the new time or a new life.
    Replaced(Timer),
}

impl Outcome {
    pub const fn timer(&self) -> &Timer {
        match self {
            Self::Created(timer) | Self::Existing(timer) | Self::Replaced(timer) => timer,
        }
    }
}

/// A request that was checked as far as possible without the store.
pub(crate) enum Prepared {
    New(NewTimer),
    TooLate(TooLate),
}

/// A request whose time has passed. It may repeat an earlier request that was in time.
pub(crate) struct TooLate {
    definition: Definition,
    on_conflict: OnConflict,
    refusal: Invalid,
}

impl Commands {
    /// Registers a timer. Once this returns, the timer is on disk.
    pub async fn create(&self, request: NewTimerRequest) -> Result<Outcome, CommandError> {
        let new = match self.prepare(request)? {
            Prepared::New(new) => new,
            // Rare paths are boxed, because the size of a future is moved about with every request.
            Prepared::TooLate(late) => return Box::pin(self.repeated(late)).await,
        };
        let created = self.register(&new).await?;
        self.answer(created)
    }

    /// When a timer would be due, if it may be registered: checks what can be checked without the store, and registers nothing.
    pub fn preview(&self, request: NewTimerRequest) -> Result<Timestamp, CommandError> {
        match self.prepare(request)? {
            Prepared::New(new) => Ok(new.execute_at),
            Prepared::TooLate(late) => Err(late.refusal.into()),
        }
    }

    pub(crate) fn prepare(&self, request: NewTimerRequest) -> Result<Prepared, CommandError> {
        self.check_may_write()?;
        self.check_open(&request.namespace)?;
        let now = self.clock.now();
        let (earliest_allowed, on_conflict) = (request.earliest_allowed, request.on_conflict);
        let can_be_repeated = request.key.is_some() || request.id.is_some();
        let definition = self.define(request, now)?;
        let execute_at = self.rules.instant(&definition.asked, earliest_allowed, now).and_then(|execute_at| {
            definition.options.expiry.map_or(Ok(()), |expiry| expiry.check(execute_at))?;
            Ok(execute_at)
        });
        Ok(match execute_at {
            Ok(execute_at) => Prepared::New(NewTimer { definition, execute_at, on_conflict, created_at: now }),
            Err(refusal) if !can_be_repeated => return Err(refusal.into()),
            Err(refusal) => Prepared::TooLate(TooLate { definition, on_conflict, refusal }),
        })
    }

    pub(crate) fn answer(&self, created: Created) -> Result<Outcome, CommandError> {
        let outcome = match created {
            Created::Created(timer) => Outcome::Created(timer),
            Created::Replaced(timer) => Outcome::Replaced(timer),
            Created::Existing(timer) => return Ok(Outcome::Existing(timer)),
            Created::Conflict(timer) if timer.definition.key.is_none() => return Err(CommandError::IdTaken),
            Created::Conflict(timer) if timer.status == Status::Executing => {
                return Err(CommandError::InDelivery(Box::new(timer)));
            }
            Created::Conflict(timer) => return Err(CommandError::Conflict(Box::new(timer))),
            Created::PastExpiry(_) => return Err(Expiry::no_later_than_due().into()),
        };
        // With labels that are known when this is compiled, no key has to be made to find the metric.
        if let Outcome::Created(timer) = &outcome {
            (self.stats.live.created)(&timer.definition.namespace, timer.created_at);
            metrics::counter!("timer_created_total", "result" => "created").increment(1);
        } else {
            metrics::counter!("timer_created_total", "result" => "replaced").increment(1);
        }
        self.scheduled(outcome.timer());
        Ok(outcome)
    }

    fn define(&self, request: NewTimerRequest, now: Timestamp) -> Result<Definition, Invalid> {
        let id = match &request.key {
            Some(key) => TimerId::keyed(&request.namespace, key),
            None => request.id.unwrap_or_else(|| self.new_id(now)),
        };
        let is_event = request.target == Target::Event;
        let callback = match request.target {
            Target::Callback(callback) => callback,
            Target::UrlWithId(url) => post_to(&url, id)?,
            Target::Event => Callback::EVENT,
        };
        if !is_event {
            self.rules.check(&request.namespace, &callback)?;
        }
        self.rules.check_follow_ups(&request.namespace, &request.options)?;
        Ok(Definition {
            id,
            namespace: request.namespace,
            key: request.key,
            asked: request.asked,
            callback,
            metadata: request.metadata,
            correlation_id: request.correlation_id,
            retry_policy: request.retry_policy,
            delivery: request.delivery,
            group: request.group,
            options: request.options,
        })
    }

    /// An id for a timer that has neither a key nor an id of its client's: in the shard that the store prefers, if it does.
    fn new_id(&self, now: Timestamp) -> TimerId {
        let timers = &self.stores.timers;
        timers.shard_for_new().map_or_else(|| TimerId::random(now), |shard| TimerId::random_in(now, shard, timers.shards()))
    }

    /// What becomes of a request whose time has passed: only where its key or id is taken can it be anything but refused for that. A
    /// client that lost the answer to a create asks again, perhaps after the timer was due, and must be told of the timer that there is.
    pub(crate) async fn repeated(&self, late: TooLate) -> Result<Outcome, CommandError> {
        let TooLate { definition, on_conflict, refusal } = late;
        let Some(timer) = call::reading(self.stores.timers.get(definition.id)).await? else { return Err(refusal.into()) };
        if timer.definition.namespace != definition.namespace {
            return Err(CommandError::IdTaken);
        }
        let wanted = match definition.asked {
            RequestedTime::At(instant) => instant,
            RequestedTime::After(delay) => self.clock.now().saturating_add(delay),
        };
        let times = Times::of(&timer, wanted);
        match resolve(on_conflict, timer.status, timer.definition.content(), definition.content(), times) {
            Resolution::Existing => self.answer(Created::Existing(timer)),
            Resolution::Conflict => self.answer(Created::Conflict(timer)),
            // These would need the time that has passed.
            Resolution::Overwrite | Resolution::Move(_) | Resolution::PastExpiry | Resolution::Revive => Err(refusal.into()),
        }
    }

    async fn register(&self, new: &NewTimer) -> StoreResult<Created> {
        match self.register_once(new).await {
            Err(cause @ StoreError::Unknown(_)) => Box::pin(self.confirm(new, cause)).await,
            known => known,
        }
    }

    /// Finds the outcome of a create whose answer was lost, and repeats the create if it did not happen.
    pub(crate) async fn confirm(&self, new: &NewTimer, cause: StoreError) -> StoreResult<Created> {
        let mut read_back = ReadBack::of("create", cause);
        loop {
            if let Some(timer) = read_back.timer(self, new.definition.id).await?
                && is_made_by(&timer, new)
            {
                return Ok(made(timer));
            }
            // The create did not happen, so repeating it cannot make it happen twice.
            match self.register_once(new).await {
                Ok(Created::Existing(timer)) if is_made_by(&timer, new) => return Ok(made(timer)),
                Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => read_back.pause().await?,
                known => return known,
            }
        }
    }

    async fn register_once(&self, new: &NewTimer) -> StoreResult<Created> {
        let answers = call::writing(self.stores.timers.create(vec![new.clone()])).await?;
        let created = answers.into_iter().next();
        let missing = || StoreError::Corrupt("the store gave no answer to a create".into());
        created.map(|created| within_namespace(created, new)).ok_or_else(missing)
    }
}

/// An id that a client chose may be that of a timer of another namespace. Of that one the client learns nothing but that it is there.
pub(crate) fn within_namespace(created: Created, new: &NewTimer) -> Created {
    match created {
        Created::Existing(timer) if timer.definition.namespace != new.definition.namespace => Created::Conflict(timer),
        other => other,
    }
}

/// The result of a create that was confirmed by reading back. A timer that replaced another has a higher revision.
const fn made(timer: Timer) -> Created {
    if timer.revision == 1 { Created::Created(timer) } else { Created::Replaced(timer) }
}

/// Whether this request made the timer what it is. The timer may have been delivered since, and so been touched later.
fn is_made_by(timer: &Timer, new: &NewTimer) -> bool {
    // A create that rejects makes a timer or leaves it alone, so that a later touch was another request's.
    let is_touched = new.on_conflict != OnConflict::Reject && timer.updated_at >= new.created_at;
    let is_of_then = timer.created_at == new.created_at || is_touched;
    let same_time = timer.definition.asked == new.definition.asked && timer.execute_at == new.execute_at;
    let same_content = new.on_conflict.only_moves() || timer.definition.fingerprint() == new.definition.fingerprint();
    let same_namespace = timer.definition.namespace == new.definition.namespace;
    is_of_then && same_time && same_namespace && same_content
}

fn post_to(url: &CallbackUrl, id: TimerId) -> Result<Callback, Invalid> {
    // Parsed again, because the id makes it longer.
    let url = CallbackUrl::parse(url.with_id(id).as_str())?;
    Ok(Callback::new(Endpoint::Http(HttpEndpoint::new(url))))
}

#[cfg(test)]
mod tests;
