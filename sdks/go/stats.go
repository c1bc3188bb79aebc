package timer

import (
	"context"
	"net/url"
	"strings"
	"time"
)

// Stats say what is due, what was fired, how receivers are and what namespaces have.
type Stats struct{ client *Client }

// StatsQuery is a period in buckets: sixty of a minute unless given.
type StatsQuery struct {
	From      time.Time
	To        time.Time
	Step      time.Duration
	Namespace []string
}

func (q StatsQuery) query() url.Values {
	values := url.Values{}
	for name, text := range map[string]string{
		"from": instantOrNone(q.From), "to": instantOrNone(q.To), "namespace": strings.Join(q.Namespace, ","),
	} {
		if text != "" {
			values.Set(name, text)
		}
	}
	if q.Step != 0 {
		values.Set("step", FormatDuration(q.Step))
	}
	return values
}

// DueStats is what is pending, by the time at which it is due.
type DueStats struct {
	From              time.Time   `json:"from"`
	To                time.Time   `json:"to"`
	StepSeconds       int64       `json:"step_seconds"`
	Buckets           []DueBucket `json:"buckets"`
	PendingIsEstimate bool        `json:"pending_is_estimate"`
	Complete          bool        `json:"complete"`
}

// DueBucket is a span of time.
type DueBucket struct {
	At      time.Time `json:"at"`
	Pending int64     `json:"pending"`
}

// Due counts pending timers by the time at which they are due.
func (s *Stats) Due(ctx context.Context, query StatsQuery) (stats DueStats, err error) {
	err = s.client.do(ctx, get("/stats/due", query.query()), &stats)
	return stats, err
}

// FiredStats is what happened, by the time at which it did.
type FiredStats struct {
	From        time.Time     `json:"from"`
	To          time.Time     `json:"to"`
	StepSeconds int64         `json:"step_seconds"`
	Buckets     []FiredBucket `json:"buckets"`
}

// FiredBucket is a span of time. Latenesses are nil where nothing was fired.
type FiredBucket struct {
	At            time.Time `json:"at"`
	Created       int64     `json:"created"`
	Fired         int64     `json:"fired"`
	Completed     int64     `json:"completed"`
	Failed        int64     `json:"failed"`
	Retried       int64     `json:"retried"`
	LatenessP50MS *float64  `json:"lateness_p50_ms"`
	LatenessP99MS *float64  `json:"lateness_p99_ms"`
	LatenessMaxMS *float64  `json:"lateness_max_ms"`
}

// Fired counts calls by the time at which they ended, and says how late they were.
func (s *Stats) Fired(ctx context.Context, query StatsQuery) (stats FiredStats, err error) {
	err = s.client.do(ctx, get("/stats/fired", query.query()), &stats)
	return stats, err
}

// Destinations are the receivers that were called of late; Complete says whether these are all.
type Destinations struct {
	Destinations []Destination `json:"destinations"`
	Complete     bool          `json:"complete"`
}

// Destination is a receiver, as all nodes saw it.
type Destination struct {
	Destination string `json:"destination"`
	// Health is "good", "slow", "failing" or "silent".
	Health         string   `json:"health"`
	InFlight       int      `json:"in_flight"`
	OK1m           int      `json:"ok_1m"`
	Failed1m       int      `json:"failed_1m"`
	OK10m          int      `json:"ok_10m"`
	Failed10m      int      `json:"failed_10m"`
	P50MS          *float64 `json:"p50_ms"`
	P99MS          *float64 `json:"p99_ms"`
	FailuresInARow int      `json:"failures_in_a_row"`
	LastError      string   `json:"last_error"`
	PendingRetries int      `json:"pending_retries"`
}

// Destinations shows how receivers are; of all namespaces that the key opens unless some are named.
func (s *Stats) Destinations(ctx context.Context, namespaces ...string) (destinations Destinations, err error) {
	err = s.client.do(ctx, get("/destinations", StatsQuery{Namespace: namespaces}.query()), &destinations)
	return destinations, err
}

// Namespaces with what they have.
type Namespaces struct {
	Namespaces        []Namespace `json:"namespaces"`
	PendingIsEstimate bool        `json:"pending_is_estimate"`
	FailedIsEstimate  bool        `json:"failed_is_estimate"`
	Complete          bool        `json:"complete"`
}

// Namespace is the scope of keys, and a tenant.
type Namespace struct {
	Name             string       `json:"name"`
	Pending          int64        `json:"pending"`
	Failed           int64        `json:"failed"`
	OldestOverdue    time.Time    `json:"oldest_overdue"`
	HasRetryPolicy   bool         `json:"has_retry_policy"`
	RetryPolicy      *RetryPolicy `json:"retry_policy"`
	HasSigningSecret bool         `json:"has_signing_secret"`
	HasSubjects      bool         `json:"has_subjects"`
}

// Namespaces shows the namespaces that the key opens.
func (s *Stats) Namespaces(ctx context.Context) (namespaces Namespaces, err error) {
	err = s.client.do(ctx, get("/namespaces", nil), &namespaces)
	return namespaces, err
}
