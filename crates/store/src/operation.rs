/// The calls of the contract, by name: for metrics and for plans of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Create,
    Get,
    List,
    Count,
    Update,
    Cancel,
    Ping,
    Due,
    Claim,
    Settle,
    ExpiredClaims,
    Purge,
    Acquire,
    Renew,
    Release,
}

impl Operation {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::List => "list",
            Self::Count => "count",
            Self::Update => "update",
            Self::Cancel => "cancel",
            Self::Ping => "ping",
            Self::Due => "due",
            Self::Claim => "claim",
            Self::Settle => "settle",
            Self::ExpiredClaims => "expired_claims",
            Self::Purge => "purge",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
        }
    }

    /// Whether it changes something: only then can its outcome be unknown.
    pub const fn writes(self) -> bool {
        match self {
            Self::Create
            | Self::Update
            | Self::Cancel
            | Self::Claim
            | Self::Settle
            | Self::Purge
            | Self::Acquire
            | Self::Renew
            | Self::Release => true,
            Self::Get | Self::List | Self::Count | Self::Ping | Self::Due | Self::ExpiredClaims => false,
        }
    }
}
