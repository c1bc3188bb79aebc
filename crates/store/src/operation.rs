/// The calls of the contract, by name: for metrics and for plans of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Create,
    Get,
    List,
    Count,
    Update,
    Cancel,
    CancelAll,
    Reopen,
    Matching,
    Attempts,
    Ping,
    Probe,
    Due,
    Claim,
    Settle,
    ExpiredClaims,
    Purge,
    AddKey,
    Keys,
    RevokeKey,
    Heartbeat,
    Acquire,
    Release,
    Leave,
    Cluster,
    Nudge,
    Nudged,
}

impl Operation {
    /// How many there are.
    pub const COUNT: usize = Self::Nudged as usize + 1;

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::List => "list",
            Self::Count => "count",
            Self::Update => "update",
            Self::Cancel => "cancel",
            Self::CancelAll => "cancel_all",
            Self::Reopen => "reopen",
            Self::Matching => "matching",
            Self::Attempts => "attempts",
            Self::Ping => "ping",
            Self::Probe => "probe",
            Self::Due => "due",
            Self::Claim => "claim",
            Self::Settle => "settle",
            Self::ExpiredClaims => "expired_claims",
            Self::Purge => "purge",
            Self::AddKey => "add_key",
            Self::Keys => "keys",
            Self::RevokeKey => "revoke_key",
            Self::Heartbeat => "heartbeat",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::Leave => "leave",
            Self::Cluster => "cluster",
            Self::Nudge => "nudge",
            Self::Nudged => "nudged",
        }
    }

    /// Whether it changes something: only then can its outcome be unknown.
    pub const fn writes(self) -> bool {
        match self {
            Self::Create
            | Self::Update
            | Self::Cancel
            | Self::CancelAll
            | Self::Reopen
            | Self::AddKey
            | Self::RevokeKey
            | Self::Claim
            | Self::Settle
            | Self::Purge
            | Self::Heartbeat
            | Self::Acquire
            | Self::Release
            | Self::Leave
            | Self::Nudge => true,
            Self::Get
            | Self::List
            | Self::Count
            | Self::Matching
            | Self::Attempts
            | Self::Keys
            | Self::Ping
            | Self::Probe
            | Self::Due
            | Self::ExpiredClaims
            | Self::Cluster
            | Self::Nudged => false,
        }
    }
}
