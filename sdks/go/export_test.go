package timer

// What the vectors of the conformance suite ask about.
var (
	ReadRetryAfter = retryAfter
	ReadAnswer     = read
	ObjectOf       = objectOf
)
