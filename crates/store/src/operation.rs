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
    Metadata,
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

    /// All of them, in their order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Create,
        Self::Get,
        Self::List,
        Self::Count,
        Self::Update,
        Self::Cancel,
        Self::CancelAll,
        Self::Reopen,
        Self::Matching,
        Self::Metadata,
        Self::Attempts,
        Self::Ping,
        Self::Probe,
        Self::Due,
        Self::Claim,
        Self::Settle,
        Self::ExpiredClaims,
        Self::Purge,
        Self::AddKey,
        Self::Keys,
        Self::RevokeKey,
        Self::Heartbeat,
        Self::Acquire,
        Self::Release,
        Self::Leave,
        Self::Cluster,
        Self::Nudge,
        Self::Nudged,
    ];

    /// Their names.
    pub const NAMES: [&'static str; Self::COUNT] = {
        let mut names = [""; Self::COUNT];
        let mut n = 0;
        while n < Self::COUNT {
            names[n] = Self::ALL[n].as_str();
            n += 1;
        }
        names
    };

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
            Self::Metadata => "metadata",
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
            | Self::Metadata
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
