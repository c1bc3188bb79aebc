//! Time zones by name, so that pages are right without script, too. The zones are part of the program: what is installed on the
//! machine does not matter.

use std::sync::LazyLock;

use domain::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A zone that the server knows. That of a browser, `local`, is known to its script alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone(TimeZone);

impl Zone {
    /// The zone of this name, if there is one: `Europe/Berlin`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        ZONES.get(name).ok().map(Self)
    }

    /// Every name that there is.
    pub(crate) fn names() -> impl Iterator<Item = String> {
        ZONES.available().map(|name| name.to_string())
    }

    /// The instant at which a clock on a wall there shows this date and time, `2026-01-31T11:30`. Of two such instants it is the earlier;
    /// a time that is skipped in spring is as much later as was skipped.
    pub(crate) fn instant(&self, wall: &str) -> Option<Timestamp> {
        let wall: jiff::civil::DateTime = wall.parse().ok()?;
        let instant = self.0.to_ambiguous_timestamp(wall).compatible().ok()?;
        Timestamp::parse("instant", &instant.to_string()).ok()
    }

    /// What a clock on a wall there shows, as if it were UTC.
    pub(crate) fn wall_clock(&self, at: Timestamp) -> Timestamp {
        let Ok(instant) = jiff::Timestamp::from_microsecond(at.as_micros()) else { return at };
        Timestamp::from_micros(at.as_micros() + i64::from(self.0.to_offset(instant).seconds()) * 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_on_a_wall_follows_the_summer_time_of_its_zone() {
        for (name, at, wall) in [
            ("Europe/Berlin", "2026-01-31T10:30:00Z", "2026-01-31T11:30:00Z"),
            ("Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:59:59Z"),
            ("Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00Z"),
            ("Asia/Kathmandu", "2026-06-01T00:00:00Z", "2026-06-01T05:45:00Z"),
            ("America/New_York", "2026-12-31T23:30:00.25Z", "2026-12-31T18:30:00.25Z"),
            ("Pacific/Kiritimati", "2026-12-31T23:30:00Z", "2027-01-01T13:30:00Z"),
        ] {
            let at = Timestamp::parse("at", at).unwrap();
            assert_eq!(Zone::named(name).unwrap().wall_clock(at), Timestamp::parse("wall", wall).unwrap(), "{name} {at}");
        }
        for extreme in [Timestamp::MIN, Timestamp::MAX] {
            Zone::named("Asia/Tokyo").unwrap().wall_clock(extreme);
        }
    }

    #[test]
    fn a_time_on_a_wall_is_one_instant() {
        for (name, wall, instant) in [
            ("UTC", "2026-01-31T10:30", Some("2026-01-31T10:30:00Z")),
            ("Europe/Berlin", "2026-01-31T11:30:05.25", Some("2026-01-31T10:30:05.25Z")),
            ("Europe/Berlin", "2026-03-29T02:30", Some("2026-03-29T01:30:00Z")),
            ("Europe/Berlin", "2026-10-25T02:30", Some("2026-10-25T00:30:00Z")),
            ("Europe/Berlin", "2026-13-01T00:00", None),
            ("Europe/Berlin", "soon", None),
        ] {
            let instant = instant.map(|text| Timestamp::parse("instant", text).unwrap());
            assert_eq!(Zone::named(name).unwrap().instant(wall), instant, "{name} {wall}");
        }
    }

    #[test]
    fn only_zones_that_exist_have_a_name() {
        assert!(Zone::named("Europe/Atlantis").is_none() && Zone::named("local").is_none());
        assert!(Zone::names().any(|name| name == "Europe/Berlin"));
    }
}
