package timer

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// BulkAction is what a bulk change does to every timer that it concerns.
type BulkAction string

// Timers that match and that the action does not concern are skipped.
const (
	BulkCancel     BulkAction = "cancel"
	BulkFire       BulkAction = "fire"
	BulkRetry      BulkAction = "retry"
	BulkReschedule BulkAction = "reschedule"
	BulkPause      BulkAction = "pause"
	BulkResume     BulkAction = "resume"
	BulkExpire     BulkAction = "expire"
	BulkDelete     BulkAction = "delete"
)

// BulkChange changes every timer that matches.
type BulkChange struct {
	Action BulkAction
	Filter Filter
	// Set has the new due times, for [BulkReschedule] only.
	Set *Reschedule
	// ExpectedMax is how many may match: if more do, none is changed and it is an [ErrConflict].
	ExpectedMax int
}

// Reschedule has the new due times of a bulk change: exactly one of these.
type Reschedule struct {
	// ExecuteAt is the same instant for all of them.
	ExecuteAt time.Time
	// Shift is so much later, or earlier if it is negative, than each is due.
	Shift time.Duration
	// Spread distributes them evenly over a time from now.
	Spread time.Duration
}

func (r Reschedule) write(o *object) {
	o.time("execute_at", r.ExecuteAt)
	if r.Shift > 0 {
		o.string("shift", "+"+FormatDuration(r.Shift))
	}
	if r.Shift < 0 {
		o.string("shift", FormatDuration(r.Shift))
	}
	o.duration("spread", r.Spread)
}

type bulkRequest struct {
	BulkChange
	dryRun bool
}

func (b bulkRequest) write(o *object) {
	o.string("action", string(b.Action))
	o.member("filter", b.Filter)
	if b.Set != nil {
		o.member("set", b.Set)
	}
	if b.dryRun {
		o.json("dry_run", true)
	} else {
		o.json("expected_max", b.ExpectedMax)
	}
}

// BulkResult says what was changed. More than 1,000 timers are changed in the background, by an Operation.
type BulkResult struct {
	Changed   int64      `json:"changed"`
	Skipped   int64      `json:"skipped"`
	Operation *Operation `json:"operation"`
}

// BulkPreview is what a dry run met.
type BulkPreview struct {
	Matched           int64            `json:"matched"`
	MatchedIsEstimate bool             `json:"matched_is_estimate"`
	ByStatus          map[Status]int64 `json:"by_status"`
	Examples          []Timer          `json:"examples"`
}

// Bulk changes every timer that matches. It is sent once; a [Timers.PreviewBulk] before it tells what to expect.
func (s *Timers) Bulk(ctx context.Context, change BulkChange) (result BulkResult, err error) {
	body, err := objectOf(bulkRequest{BulkChange: change})
	if err != nil {
		return result, err
	}
	err = s.client.do(ctx, call{method: http.MethodPost, path: "/timers/bulk", body: body}, &result)
	return result, err
}

// PreviewBulk is a dry run: it counts what a bulk change would meet, and changes nothing.
func (s *Timers) PreviewBulk(ctx context.Context, change BulkChange) (preview BulkPreview, err error) {
	body, err := objectOf(bulkRequest{BulkChange: change, dryRun: true})
	if err != nil {
		return preview, err
	}
	err = s.client.do(ctx, call{method: http.MethodPost, path: "/timers/bulk", body: body}, &preview)
	return preview, err
}

// CancelMatching selects pending timers; at least one condition is needed.
type CancelMatching struct {
	Namespace string
	// Status says "pending" to mean all of them.
	Status    Status
	KeyPrefix string
	// Metadata must be an object with all of these members, written in the same way.
	Metadata any
	// ExpectedMax is how many may match, 1 to 10,000: if more do, none is canceled.
	ExpectedMax int
}

func (m CancelMatching) write(o *object) {
	o.string("namespace", m.Namespace)
	o.string("status", string(m.Status))
	o.string("key_prefix", m.KeyPrefix)
	o.json("metadata", m.Metadata)
	o.json("expected_max", m.ExpectedMax)
}

// CanceledMany says how many timers matched, and how many of them were canceled.
type CanceledMany struct {
	Matched  int64 `json:"matched"`
	Canceled int64 `json:"canceled"`
}

// CancelMatching cancels every pending timer that matches. It is sent once; sending it again is safe.
func (s *Timers) CancelMatching(ctx context.Context, matching CancelMatching) (canceled CanceledMany, err error) {
	body, err := objectOf(matching)
	if err != nil {
		return canceled, err
	}
	err = s.client.do(ctx, call{method: http.MethodPost, path: "/timers/cancel", body: body}, &canceled)
	return canceled, err
}

// Operations are bulk changes that go on in the background.
type Operations struct{ client *Client }

// OperationState says whether an operation goes on, and how it ended.
type OperationState string

// The states of an operation.
const (
	OperationRunning OperationState = "running"
	OperationDone    OperationState = "done"
	OperationStopped OperationState = "stopped"
	OperationFailed  OperationState = "failed"
)

// Operation is one bulk change in the background.
type Operation struct {
	ID     string     `json:"id"`
	Action BulkAction `json:"action"`
	// Filter as the service wrote it down, with what follows from the key and the time of the request.
	Filter     json.RawMessage `json:"filter"`
	State      OperationState  `json:"state"`
	Matched    int64           `json:"matched"`
	Changed    int64           `json:"changed"`
	Skipped    int64           `json:"skipped"`
	Errors     int64           `json:"errors"`
	Error      string          `json:"error"`
	StartedAt  time.Time       `json:"started_at"`
	FinishedAt time.Time       `json:"finished_at"`
	By         string          `json:"by"`
}

// List shows the latest 100 operations, the newest first.
func (s *Operations) List(ctx context.Context) ([]Operation, error) {
	var answer struct {
		Operations []Operation `json:"operations"`
	}
	err := s.client.do(ctx, get("/operations", nil), &answer)
	return answer.Operations, err
}

// Get shows how far an operation has come.
func (s *Operations) Get(ctx context.Context, id string) (operation Operation, err error) {
	err = s.client.do(ctx, get("/operations/"+url.PathEscape(id), nil), &operation)
	return operation, err
}

// Stop ends an operation; what it has changed stays changed.
func (s *Operations) Stop(ctx context.Context, id string) (operation Operation, err error) {
	request := call{method: http.MethodDelete, path: "/operations/" + url.PathEscape(id), idempotent: true}
	err = s.client.do(ctx, request, &operation)
	return operation, err
}

// Groups are timers that belong together.
type Groups struct{ client *Client }

// GroupCount says how many timers of a group there are.
type GroupCount struct {
	Namespace       string           `json:"namespace"`
	Group           string           `json:"group"`
	Total           int64            `json:"total"`
	TotalIsEstimate bool             `json:"total_is_estimate"`
	ByStatus        map[Status]int64 `json:"by_status"`
}

// Count counts the timers of a group by their status.
func (s *Groups) Count(ctx context.Context, namespace, group string) (count GroupCount, err error) {
	err = s.client.do(ctx, get(groupPath(namespace, group), nil), &count)
	return count, err
}

// Cancel cancels all timers of a group that have not ended.
func (s *Groups) Cancel(ctx context.Context, namespace, group string) (canceled CanceledMany, err error) {
	request := call{method: http.MethodDelete, path: groupPath(namespace, group), idempotent: true}
	err = s.client.do(ctx, request, &canceled)
	return canceled, err
}

func groupPath(namespace, group string) string {
	return "/groups/" + url.PathEscape(namespace) + "/" + url.PathEscape(group)
}
