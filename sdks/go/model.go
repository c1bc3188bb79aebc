package timer

import (
	"encoding/json"
	"time"
)

// Status of a timer.
type Status string

// Completed, failed, canceled and expired timers have ended.
const (
	Pending   Status = "pending"
	Executing Status = "executing"
	Completed Status = "completed"
	Failed    Status = "failed"
	Canceled  Status = "canceled"
	Paused    Status = "paused"
	Expired   Status = "expired"
)

// Ended says whether the status is one in which a timer stays unless a client changes it.
func (s Status) Ended() bool {
	return s == Completed || s == Failed || s == Canceled || s == Expired
}

// Delivery says what happens to a call of which a crash leaves open whether it was made.
type Delivery string

// AtLeastOnce makes the call again, AtMostOnce lets the timer fail.
const (
	AtLeastOnce Delivery = "at_least_once"
	AtMostOnce  Delivery = "at_most_once"
)

// OnConflict says what a create does whose key is taken by a timer with other content.
type OnConflict string

// See the documentation of the service for what each does to timers that have ended.
const (
	Reject   OnConflict = "reject"
	Replace  OnConflict = "replace"
	Keep     OnConflict = "keep"
	Postpone OnConflict = "postpone"
	Earliest OnConflict = "earliest"
	Latest   OnConflict = "latest"
)

// Protocol says what the answer of an HTTP receiver means.
type Protocol string

// WebhookProtocol takes any 2xx for success. TimerProtocol reads the answer: see package webhook.
const (
	WebhookProtocol Protocol = "webhook"
	TimerProtocol   Protocol = "timer"
)

// CallbackType is the kind of a callback.
type CallbackType string

// EventCallback is that of timers which came through the NATS command consumer.
const (
	HTTPCallback  CallbackType = "http"
	NATSCallback  CallbackType = "nats"
	EventCallback CallbackType = "event"
)

// Timer as lists and changes show it. What it does not have is the zero value.
type Timer struct {
	ID              ID           `json:"id"`
	Namespace       string       `json:"namespace"`
	Key             string       `json:"key,omitempty"`
	Group           string       `json:"group,omitempty"`
	Status          Status       `json:"status"`
	CallbackType    CallbackType `json:"callback_type"`
	ExecuteAt       time.Time    `json:"execute_at"`
	TimeLeftSeconds int64        `json:"time_left"`
	ExecutedAt      time.Time    `json:"executed_at,omitzero"`
	CreatedAt       time.Time    `json:"created_at"`
	UpdatedAt       time.Time    `json:"updated_at"`
	// Revision rises with every change by a client but a cancel: see [IfRevision].
	Revision int `json:"revision"`
}

// TimerDetail is a timer with everything that is known about it.
type TimerDetail struct {
	Timer
	Callback CallbackConfig `json:"callback_config"`
	// Metadata exactly as it was given.
	Metadata      json.RawMessage `json:"metadata,omitempty"`
	CorrelationID string          `json:"correlation_id,omitempty"`
	RetryPolicy   *RetryPolicy    `json:"retry_policy,omitempty"`
	Delivery      Delivery        `json:"delivery"`
	ExpiresAt     time.Time       `json:"expires_at,omitzero"`
	ExpiresAfter  Duration        `json:"expires_after,omitzero"`
	PostponeMax   Duration        `json:"postpone_max,omitzero"`
	OnSuccess     *CallbackConfig `json:"on_success,omitempty"`
	OnFailure     *CallbackConfig `json:"on_failure,omitempty"`
	// Attempt counts the deliveries that have been started for this due time.
	Attempt   int       `json:"attempt"`
	LastError string    `json:"last_error,omitempty"`
	PausedAt  time.Time `json:"paused_at,omitzero"`
	PauseNote string    `json:"pause_note,omitempty"`
}

// CallbackConfig is the callback of a timer that exists. It is a [Callback], so that a further timer can take it over.
type CallbackConfig struct {
	Type    CallbackType      `json:"type"`
	Headers map[string]string `json:"headers,omitempty"`
	// Payload exactly as it was given.
	Payload json.RawMessage `json:"payload,omitempty"`

	URL      string   `json:"url,omitempty"`
	Timeout  Duration `json:"timeout,omitzero"`
	Protocol Protocol `json:"protocol,omitempty"`

	Topic     string `json:"topic,omitempty"`
	Key       string `json:"key,omitempty"`
	JetStream bool   `json:"jetstream,omitempty"`
}

// Attempt is one delivery of a timer.
type Attempt struct {
	Number    int       `json:"number"`
	StartedAt time.Time `json:"started_at"`
	TookMS    int64     `json:"took_ms"`
	// Outcome is a short name: delivered, timeout, status_5xx and the like.
	Outcome string `json:"outcome"`
	// Status of the answer; 0 if there was none.
	Status int    `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Node is the name of the node that made it; empty if it is not known.
	Node   string          `json:"node,omitempty"`
	Answer *ReceivedAnswer `json:"answer,omitempty"`
}

// ReceivedAnswer is how the answer of a receiver began, where the service keeps it.
type ReceivedAnswer struct {
	Headers    map[string]string `json:"headers,omitempty"`
	Body       string            `json:"body,omitempty"`
	BodyBase64 []byte            `json:"body_base64,omitempty"`
}

// RetryPolicy says how often and when a failed call is made again. What is 0 has the default of the service.
type RetryPolicy struct {
	// MaxRetries is 3 unless given; [NoRetries] for none.
	MaxRetries        int
	InitialInterval   time.Duration
	BackoffMultiplier float64
	MaxInterval       time.Duration
	MaxDuration       time.Duration
}

// NoRetries as MaxRetries of a [RetryPolicy] makes a call once, whatever the policy of its namespace is.
const NoRetries = -1

func (p RetryPolicy) write(o *object) {
	if p.MaxRetries != 0 {
		o.json("max_retries", max(p.MaxRetries, 0))
	}
	o.duration("initial_interval", p.InitialInterval)
	if p.BackoffMultiplier != 0 {
		o.json("backoff_multiplier", p.BackoffMultiplier)
	}
	o.duration("max_interval", p.MaxInterval)
	o.duration("max_duration", p.MaxDuration)
}

// MarshalJSON writes what is given.
func (p RetryPolicy) MarshalJSON() ([]byte, error) { return objectOf(p) }

// UnmarshalJSON reads the policy of a timer.
func (p *RetryPolicy) UnmarshalJSON(text []byte) error {
	var read struct {
		MaxRetries        int      `json:"max_retries"`
		InitialInterval   Duration `json:"initial_interval"`
		BackoffMultiplier float64  `json:"backoff_multiplier"`
		MaxInterval       Duration `json:"max_interval"`
		MaxDuration       Duration `json:"max_duration"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	if read.MaxRetries == 0 {
		read.MaxRetries = NoRetries
	}
	*p = RetryPolicy{
		MaxRetries:        read.MaxRetries,
		InitialInterval:   time.Duration(read.InitialInterval),
		BackoffMultiplier: read.BackoffMultiplier,
		MaxInterval:       time.Duration(read.MaxInterval),
		MaxDuration:       time.Duration(read.MaxDuration),
	}
	return nil
}
