package timer

import (
	"slices"
	"time"
)

// Callback is what a due timer calls: [HTTP], [NATS], or the [CallbackConfig] of another timer.
type Callback interface{ write(*object) }

// HTTP is a POST to a URL.
type HTTP struct {
	URL     string
	Headers map[string]string
	// Payload is the body of the call. A [json.RawMessage] is delivered byte for byte; anything else is marshaled.
	Payload any
	// Timeout is how long the receiver may take; 30 s unless given.
	Timeout  time.Duration
	Protocol Protocol
}

// NATS is a message on a subject.
type NATS struct {
	Topic string
	// Key travels as the header X-Timer-Key.
	Key     string
	Headers map[string]string
	// Payload is the body of the message, as that of [HTTP].
	Payload any
	// JetStream says that a stream must have stored the message before it counts as delivered.
	JetStream bool
}

func (h HTTP) write(o *object) {
	o.string("type", string(HTTPCallback))
	o.string("url", h.URL)
	content(o, h.Headers, h.Payload)
	o.duration("timeout", h.Timeout)
	o.string("protocol", string(h.Protocol))
}

func (n NATS) write(o *object) {
	o.string("type", string(NATSCallback))
	o.string("topic", n.Topic)
	o.string("key", n.Key)
	content(o, n.Headers, n.Payload)
	if n.JetStream {
		o.json("jetstream", true)
	}
}

func (c CallbackConfig) write(o *object) {
	var payload any
	if c.Payload != nil {
		payload = c.Payload
	}
	if c.Type == NATSCallback {
		NATS{Topic: c.Topic, Key: c.Key, Headers: c.Headers, Payload: payload, JetStream: c.JetStream}.write(o)
		return
	}
	HTTP{URL: c.URL, Headers: c.Headers, Payload: payload, Timeout: time.Duration(c.Timeout), Protocol: c.Protocol}.write(o)
}

func content(o *object, headers map[string]string, payload any) {
	if len(headers) > 0 {
		o.json("headers", headers)
	}
	o.json("payload", payload)
}

// NewTimer is a timer to be created: a Callback, and ExecuteAt or Delay. The rest may be left out.
type NewTimer struct {
	Callback  Callback
	ExecuteAt time.Time
	Delay     time.Duration

	// ID of your own making, a UUID of version 7. Without an ID and a Key the client makes one, so that it can repeat the request.
	ID ID
	// Namespace is the scope in which keys are unique; "default" unless given.
	Namespace string
	// Key is your own id of the timer: the same namespace and key are always the same timer.
	Key string
	// OnConflict, with a Key only.
	OnConflict OnConflict
	// Group of timers that are counted and canceled together.
	Group string
	// Metadata is any JSON; a [json.RawMessage] is kept byte for byte.
	Metadata      any
	CorrelationID string
	RetryPolicy   *RetryPolicy
	Delivery      Delivery
	// ExpiresAt or ExpiresAfter, counted from the due time: no attempt starts from then on.
	ExpiresAt    time.Time
	ExpiresAfter time.Duration
	// PostponeMax limits how far a timer can be postponed, counted from its first registration.
	PostponeMax time.Duration
	// OnSuccess and OnFailure are called once the timer has ended.
	OnSuccess Callback
	OnFailure Callback
}

func (n NewTimer) write(o *object) {
	o.string("id", string(n.ID))
	o.string("namespace", n.Namespace)
	o.string("key", n.Key)
	o.string("on_conflict", string(n.OnConflict))
	Update{
		Callback: n.Callback, ExecuteAt: n.ExecuteAt, Delay: n.Delay, Group: n.Group, Metadata: n.Metadata,
		CorrelationID: n.CorrelationID, RetryPolicy: n.RetryPolicy, Delivery: n.Delivery, ExpiresAt: n.ExpiresAt,
		ExpiresAfter: n.ExpiresAfter, PostponeMax: n.PostponeMax, OnSuccess: n.OnSuccess, OnFailure: n.OnFailure,
	}.write(o)
}

// identified returns the timer with an id or a key.
func (n NewTimer) identified() NewTimer {
	if n.ID == "" && n.Key == "" {
		n.ID = NewID()
	}
	return n
}

// Update is a change of a pending or paused timer; what is not given stays as it is.
type Update struct {
	Callback      Callback
	ExecuteAt     time.Time
	Delay         time.Duration
	Group         string
	Metadata      any
	CorrelationID string
	RetryPolicy   *RetryPolicy
	Delivery      Delivery
	ExpiresAt     time.Time
	ExpiresAfter  time.Duration
	PostponeMax   time.Duration
	OnSuccess     Callback
	OnFailure     Callback
	// Clear names what the timer is not to have any more.
	Clear []Clearable
}

// Clearable is a field that an [Update] can take away.
type Clearable string

// What a timer can be without.
const (
	ClearGroup         Clearable = "group"
	ClearMetadata      Clearable = "metadata"
	ClearCorrelationID Clearable = "correlation_id"
	ClearRetryPolicy   Clearable = "retry_policy"
	ClearExpiry        Clearable = "expires_at"
	ClearPostponeMax   Clearable = "postpone_max"
	ClearOnSuccess     Clearable = "on_success"
	ClearOnFailure     Clearable = "on_failure"
)

func (u Update) write(o *object) {
	o.time("execute_at", u.ExecuteAt)
	o.duration("delay", u.Delay)
	callback(o, "callback", u.Callback)
	o.string("group", u.Group)
	o.json("metadata", u.Metadata)
	o.string("correlation_id", u.CorrelationID)
	if u.RetryPolicy != nil {
		o.member("retry_policy", u.RetryPolicy)
	}
	o.string("delivery", string(u.Delivery))
	o.time("expires_at", u.ExpiresAt)
	o.duration("expires_after", u.ExpiresAfter)
	o.duration("postpone_max", u.PostponeMax)
	callback(o, "on_success", u.OnSuccess)
	callback(o, "on_failure", u.OnFailure)
	for _, field := range slices.Compact(slices.Sorted(slices.Values(u.Clear))) {
		o.raw(string(field), []byte("null"))
	}
}

func callback(o *object, name string, given Callback) {
	if given != nil {
		o.member(name, given)
	}
}
