use std::{error::Error, sync::Arc, time::Duration};

use commands::{CommandError, Commands, NewTimerRequest, Outcome};
use domain::{Backoff, Invalid};
use futures_util::future::join_all;
use tokio::{
    sync::Semaphore,
    task::{JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Broker, BrokerError, Received, ScheduleTimer, Verdict,
    backoff::{PAUSES, again_after},
    messages::in_words_of_the_command,
};

/// The most commands that one group commit holds.
const BATCH_COMMANDS_MAX: usize = 512;
/// The batch size while the store is unavailable. Commands that fail are redelivered late, so most stay untouched in the
/// broker.
const PROBE_COMMANDS_MAX: usize = 32;
/// The bytes of dead letters that may be in flight. Commands beyond this budget are redelivered a little later.
const DEAD_LETTERS_BYTES_MAX: usize = 32 << 20;
/// The fixed cost of a dead letter, counted in addition to its body.
const DEAD_LETTER_BYTES: usize = 8 << 10;
/// How long a graceful shutdown of the consumer waits for the broker.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// Takes commands from the broker and registers their timers, many in one group commit.
pub struct CommandConsumer {
    broker: Arc<dyn Broker>,
    commands: Commands,
    store_failures: Backoff,
    broker_failures: Backoff,
    /// What was last said about it in the log.
    broker_error: Option<BrokerError>,
    /// Commands that can never work, on their way aside. The loop does not wait for them, so that they delay no other command.
    dead_letters: JoinSet<()>,
    dead_letter_permits: Arc<Semaphore>,
}

/// The results of a batch, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handled {
    pub scheduled: usize,
    pub moved: usize,
    pub unchanged: usize,
    /// Given back to the broker, which redelivers them.
    pub later: usize,
    /// Commands that can never work: dead-lettered, or about to be.
    pub dead: usize,
    /// Whether the store was unavailable for at least one command.
    pub is_store_away: bool,
}

impl CommandConsumer {
    pub fn new(broker: Arc<dyn Broker>, commands: Commands) -> Self {
        Self {
            broker,
            commands,
            store_failures: PAUSES,
            broker_failures: PAUSES,
            broker_error: None,
            dead_letters: JoinSet::new(),
            dead_letter_permits: Arc::new(Semaphore::new(DEAD_LETTERS_BYTES_MAX)),
        }
    }

    /// Runs until `stop` is canceled. No error ends it, and a panic anywhere in it is a panic of this future. On shutdown the
    /// batch at hand is finished, and commands that were fetched beyond it are given back.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let max = if self.store_failures.is_failing() { PROBE_COMMANDS_MAX } else { BATCH_COMMANDS_MAX };
            let received = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(dead_lettered) = self.dead_letters.join_next() => {
                    pass_on_panic(dead_lettered);
                    continue;
                }
                received = self.broker.receive(max) => received,
            };
            let pause = match received {
                Ok(batch) if batch.is_empty() => {
                    self.broker_answered();
                    None
                }
                Ok(batch) => {
                    self.broker_answered();
                    let handled = self.handle(batch).await;
                    self.pause_for_store(&handled)
                }
                Err(error) => Some(self.pause_for_broker(error)),
            };
            if let Some(pause) = pause {
                // A canceled pause needs no check: the token stays canceled and ends the loop.
                stop.run_until_cancelled(tokio::time::sleep(pause)).await;
            }
        }
        match tokio::time::timeout(STOP_TIME_MAX, self.stop()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "commands could not be given back: the broker delivers them again by itself")
            }
            Err(_) => tracing::warn!("commands could not be given back within {STOP_TIME_MAX:?}: the broker delivers them again"),
        }
    }

    async fn stop(&mut self) -> Result<(), BrokerError> {
        while let Some(dead_lettered) = self.dead_letters.join_next().await {
            pass_on_panic(dead_lettered);
        }
        self.broker.give_back().await
    }

    /// Registers the timers of a batch in one group commit, and tells the broker the verdict on each command.
    pub async fn handle(&mut self, batch: Vec<Box<dyn Received>>) -> Handled {
        metrics::counter!("timer_commands_received_total").increment(batch.len() as u64);
        let mut handled = Handled::default();
        let mut parsed = Vec::with_capacity(batch.len());
        let mut requests = Vec::with_capacity(batch.len());
        let mut refused = Vec::new();
        for received in batch {
            if received.is_callback() {
                refused.push((received, Invalid::new("message", "must not be a callback of this service")));
                continue;
            }
            match ScheduleTimer::parse(received.body()) {
                Ok(command) => {
                    let mut request = command.into_request();
                    request.options.trace = received.trace().map(Arc::new);
                    parsed.push(received);
                    requests.push(request);
                }
                Err(refusal) => refused.push((received, refusal)),
            }
        }
        let answers = self.register(requests).await;
        let mut settling = Vec::with_capacity(parsed.len());
        for (received, answer) in parsed.into_iter().zip(answers) {
            let verdict = match answer {
                // It is as it was. No event would ever answer the command: what is there calls a receiver of its own.
                Ok(outcome) if !outcome.timer().definition.callback.is_event() => {
                    refused.push((received, of_another_kind()));
                    continue;
                }
                Err(CommandError::Conflict(_)) => {
                    refused.push((received, of_another_kind()));
                    continue;
                }
                Ok(outcome) => handled.done(&outcome),
                Err(CommandError::Invalid(refusal)) => {
                    refused.push((received, in_words_of_the_command(refusal)));
                    continue;
                }
                Err(error) => handled.failed(&error, received.deliveries()),
            };
            settling.push(received.settle(verdict));
        }
        settled(join_all(settling).await);
        handled.record();
        self.dead_letter(refused, &mut handled);
        handled
    }

    /// Registers all requests in one commit. When the store fails on a row that it cannot name, each request gets a commit of
    /// its own: one damaged row must not hold up the other commands of its batch.
    async fn register(&self, requests: Vec<NewTimerRequest>) -> Vec<Result<Outcome, CommandError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        metrics::histogram!("timer_command_batch_size").record(requests.len() as f64);
        let answers = self.commands.create_all(requests.clone()).await;
        let is_internal = |answer: &Result<_, _>| matches!(answer, Err(CommandError::Internal(_)));
        if requests.len() == 1 || !answers.iter().any(is_internal) {
            return answers;
        }
        let mut each = Vec::with_capacity(requests.len());
        let mut is_store_well = true;
        for (request, answer) in requests.into_iter().zip(answers) {
            // When the store becomes unavailable meanwhile, the remaining requests are not tried one by one.
            let answer = if is_internal(&answer) && is_store_well { self.commands.create(request).await } else { answer };
            is_store_well &= !matches!(answer, Err(CommandError::Unavailable(_) | CommandError::Unknown(_)));
            each.push(answer);
        }
        each
    }

    /// Dead-letters commands that can never work, without waiting for the broker.
    fn dead_letter(&mut self, refused: Vec<(Box<dyn Received>, Invalid)>, handled: &mut Handled) {
        let Some((_, reason)) = refused.first() else { return };
        tracing::warn!(commands = refused.len(), %reason, "commands are dead-lettered; the reason is that of the first");
        handled.dead += refused.len();
        for (received, reason) in refused {
            let bytes = (received.body().len() + DEAD_LETTER_BYTES).min(DEAD_LETTERS_BYTES_MAX);
            let permit =
                u32::try_from(bytes).ok().and_then(|bytes| self.dead_letter_permits.clone().try_acquire_many_owned(bytes).ok());
            let verdict = match &permit {
                Some(_) => Verdict::Never { reason: reason.to_string() },
                None => Verdict::Later { after: again_after(received.deliveries()) },
            };
            self.dead_letters.spawn(async move {
                let settled = received.settle(verdict).await;
                let result = if settled.is_ok() && permit.is_some() { "dead" } else { "later" };
                metrics::counter!("timer_commands_total", "result" => result).increment(1);
                if let Err(error) = settled {
                    tracing::warn!(%error, "a command that can never work could not be dead-lettered: it is redelivered");
                }
            });
        }
    }

    fn broker_answered(&mut self) {
        self.broker_failures.went_well();
        if self.broker_error.take().is_some() {
            tracing::info!("commands are received again");
        }
    }

    fn pause_for_broker(&mut self, error: BrokerError) -> Duration {
        metrics::counter!("timer_task_errors_total", "task" => "commands").increment(1);
        if self.broker_error.as_ref() != Some(&error) {
            tracing::warn!(%error, "no commands can be received: trying again until they can");
            self.broker_error = Some(error);
        }
        self.broker_failures.failed()
    }

    fn pause_for_store(&mut self, handled: &Handled) -> Option<Duration> {
        if handled.is_store_away {
            return Some(self.store_failures.failed());
        }
        if self.store_failures.went_well() {
            tracing::info!("commands are carried out again");
        }
        None
    }
}

impl Handled {
    const fn done(&mut self, outcome: &Outcome) -> Verdict {
        match outcome {
            Outcome::Created(_) => self.scheduled += 1,
            Outcome::Replaced(_) => self.moved += 1,
            Outcome::Existing(_) => self.unchanged += 1,
        }
        Verdict::Done
    }

    fn failed(&mut self, error: &CommandError, deliveries: u32) -> Verdict {
        if self.later == 0 {
            let cause = error.source().map(ToString::to_string);
            tracing::warn!(%error, cause, "commands could not be carried out and are redelivered; the error is that of the first");
        }
        self.later += 1;
        // A row that the store cannot read says nothing about the availability of the store.
        self.is_store_away |= matches!(error, CommandError::Unavailable(_) | CommandError::Unknown(_));
        Verdict::Later { after: again_after(deliveries) }
    }

    /// Dead letters are not counted here, but once the broker has stored them.
    fn record(&self) {
        for (result, count) in
            [("scheduled", self.scheduled), ("moved", self.moved), ("unchanged", self.unchanged), ("later", self.later)]
        {
            metrics::counter!("timer_commands_total", "result" => result).increment(count as u64);
        }
    }
}

fn of_another_kind() -> Invalid {
    Invalid::new("serviceCallId", "must not be the key of a timer of another kind")
}

/// Logs the verdicts that were lost. A lost verdict only costs a redelivery.
fn settled(results: Vec<Result<(), BrokerError>>) {
    let lost = results.iter().filter(|result| result.is_err()).count();
    if let Some(Err(error)) = results.into_iter().find(Result::is_err) {
        tracing::warn!(commands = lost, %error, "verdicts on commands may not have reached the broker, which then redelivers them");
    }
}

fn pass_on_panic(ended: Result<(), JoinError>) {
    if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests;
