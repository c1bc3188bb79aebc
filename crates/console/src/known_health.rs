//! How the service is, as the dot in the bar says it: in the words of `/healthz`.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use maud::{Markup, html};

use crate::{problem::sentence, visitor::Visitor};

/// For how long an answer of the database is good enough, and how long a page waits for the next one.
const FRESH: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_millis(20);

/// The id of the dot: every live page is sent it again when it has changed.
pub(crate) const DOT: &str = "health";

/// Whether the database answered when it was last asked.
#[derive(Default)]
pub(crate) struct KnownHealth(Mutex<Known>);

#[derive(Default, Clone, Copy)]
struct Known {
    is_away: bool,
    /// On the monotonic clock.
    asked_at: Option<Duration>,
}

impl KnownHealth {
    fn state(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the database is away. No page waits for one that hangs: it shows what was known before.
pub(crate) async fn is_database_away(visitor: &Visitor) -> bool {
    let now = visitor.commands.clock.monotonic();
    let known = {
        let mut known = visitor.shared.known_health.state();
        if known.asked_at.is_some_and(|asked_at| now.saturating_sub(asked_at) < FRESH) {
            return known.is_away;
        }
        // Pages that come meanwhile do not ask again.
        known.asked_at = Some(now);
        *known
    };
    let asking = visitor.clone();
    let asked = tokio::spawn(async move {
        let is_away = !asking.commands.health().await.database;
        asking.shared.known_health.state().is_away = is_away;
        is_away
    });
    tokio::time::timeout(WAIT_MAX, asked).await.ok().and_then(Result::ok).unwrap_or(known.is_away)
}

/// The dot and the sentence: green, amber where a part of this node is not well, red where the database does not answer.
pub(crate) fn dot(visitor: &Visitor, is_database_away: bool) -> Markup {
    let mut unwell = visitor.shared.config.health.iter().filter_map(|probe| {
        let reading = (probe.read)();
        (!reading.is_well).then(|| (probe.name.replace('_', " "), reading.value))
    });
    let (class, told, title) = match (is_database_away, unwell.next()) {
        (true, _) => ("bad", "database connection failed".to_owned(), "The database does not answer".to_owned()),
        (false, None) => ("good", "healthy".to_owned(), "This node is well, and the database answers".to_owned()),
        (false, Some((name, value))) => {
            let others: String = unwell.map(|(name, value)| format!("; {name}: {value}")).collect();
            ("warn", format!("{name} is not well"), format!("{name}: {value}{others}"))
        }
    };
    html! { span id=(DOT) class={ "health " (class) } title=(title) { (sentence(&told).trim_end_matches('.')) } }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::Span;
    use store::Operation;
    use store_testing::Fault;

    use crate::{
        ConsoleConfig, HealthProbe, HealthReading,
        rig::{Rig, config},
    };

    #[tokio::test]
    async fn the_dot_is_green_amber_or_red() {
        let rig = Rig::new();
        assert!(rig.get("/console/about").await.text.contains("class=\"health good\""), "it is well");
        rig.faulty.plan(Operation::Ping, Fault::NotDone);
        rig.clock.advance(Span::from_secs(2));
        let page = rig.get("/console/preferences").await.text;
        assert!(page.contains("class=\"health bad\"") && page.contains("Database connection failed"), "{page}");
        rig.clock.advance(Span::from_secs(2));
        assert!(rig.get("/console/preferences").await.text.contains("class=\"health good\""), "it answers again");

        let read = Arc::new(|| HealthReading { value: "12.5".to_owned(), is_well: false });
        let health = vec![HealthProbe { name: "lag_seconds", read }];
        let unwell = Rig::configured(ConsoleConfig { health, ..config() });
        let page = unwell.get("/console/preferences").await.text;
        assert!(page.contains("class=\"health warn\" title=\"lag seconds: 12.5\">Lag seconds is not well<"), "{page}");
    }
}
