use serde::{Deserialize, Serialize};

use crate::{Invalid, Span, Timestamp};

/// From when on a timer is no longer wanted: no attempt starts at or after this instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "i64", into = "i64")]
pub enum Expiry {
    At(Timestamp),
    /// The expiry lies this time after the due time, and moves with it.
    After(Span),
}

impl Expiry {
    pub const fn instant(self, execute_at: Timestamp) -> Timestamp {
        match self {
            Self::At(instant) => instant,
            Self::After(span) => execute_at.saturating_add(span),
        }
    }

    /// The refusal of a due time that leaves no time for a call before the expiry.
    pub fn no_later_than_due() -> Invalid {
        Invalid::new("expires_at", "must be later than the due time")
    }

    /// Refuses an expiry that leaves no time for a call.
    pub fn check(self, execute_at: Timestamp) -> Result<(), Invalid> {
        match self {
            Self::At(instant) if instant <= execute_at => Err(Self::no_later_than_due()),
            Self::After(Span::ZERO) => Err(Invalid::new("expires_after", "must be longer than 0s")),
            Self::At(_) | Self::After(_) => Ok(()),
        }
    }
}

/// An instant is its microseconds, a span the complement of its own, which is negative even for none.
impl From<Expiry> for i64 {
    fn from(expiry: Expiry) -> Self {
        match expiry {
            Expiry::At(instant) => instant.as_micros(),
            Expiry::After(span) => !span.as_micros(),
        }
    }
}

impl From<i64> for Expiry {
    fn from(number: i64) -> Self {
        if number < 0 { Self::After(Span::from_micros_clamped(!number)) } else { Self::At(Timestamp::from_micros(number)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    #[test]
    fn an_expiry_leaves_time_for_a_call() {
        let later = DUE.saturating_add(Span::from_micros(1));
        for (expiry, complaint) in [
            (Expiry::At(later), None),
            (Expiry::At(DUE), Some("expires_at must be later than the due time")),
            (Expiry::At(Timestamp::from_micros(1)), Some("expires_at must be later than the due time")),
            (Expiry::After(Span::from_micros(1)), None),
            (Expiry::After(Span::ZERO), Some("expires_after must be longer than 0s")),
        ] {
            let refusal = expiry.check(DUE).err().map(|invalid| invalid.to_string());
            assert_eq!(refusal.as_deref(), complaint, "{expiry:?}");
        }
    }

    #[test]
    fn a_span_counts_from_the_due_time_and_an_instant_stands() {
        assert_eq!(Expiry::After(Span::from_secs(5)).instant(DUE), DUE.saturating_add(Span::from_secs(5)));
        assert_eq!(Expiry::At(DUE).instant(Timestamp::MAX), DUE);
        assert_eq!(Expiry::After(Span::from_secs(5)).instant(Timestamp::MAX), Timestamp::MAX);
    }

    #[test]
    fn an_expiry_reads_back_as_it_is_stored() {
        for expiry in [Expiry::At(DUE), Expiry::After(Span::from_secs(90)), Expiry::After(Span::ZERO)] {
            let text = serde_json::to_string(&expiry).unwrap();
            assert_eq!(serde_json::from_str::<Expiry>(&text).unwrap(), expiry, "{text}");
        }
    }
}
