package timer

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// createdAtOnceMax is how many timers the service takes in one request.
const createdAtOnceMax = 1000

// Timers registers, reads and changes timers.
type Timers struct{ client *Client }

// ChangeOption is a condition of a change.
type ChangeOption func(http.Header)

// IfRevision lets a change happen only if the timer has this revision; otherwise it is an [ErrConflict] and nothing is done.
func IfRevision(revision int) ChangeOption {
	return func(header http.Header) { header.Set("If-Match", strconv.Quote(strconv.Itoa(revision))) }
}

// Create registers a timer. Once it returns, the timer is on disk. Repeating it with the same ID or Key is safe.
func (s *Timers) Create(ctx context.Context, timer NewTimer) (created Timer, err error) {
	body, err := objectOf(timer.identified())
	if err != nil {
		return created, err
	}
	err = s.client.do(ctx, call{method: http.MethodPost, path: "/timers", body: body, idempotent: true}, &created)
	return created, err
}

// CreateResult is what became of one timer of a batch: a Timer, or why there is none.
type CreateResult struct {
	// Status that the create would have had alone: 201 for a new timer, 200 for one that was there.
	Status int
	Timer  Timer
	Err    error
}

// CreateMany registers timers in batches of 1,000. Each is answered for itself, in the same order. If a whole request
// fails, the results so far come with its error.
func (s *Timers) CreateMany(ctx context.Context, timers []NewTimer) ([]CreateResult, error) {
	var results []CreateResult
	for len(timers) > 0 {
		batch := timers[:min(len(timers), createdAtOnceMax)]
		timers = timers[len(batch):]
		created, err := s.createBatch(ctx, batch)
		results = append(results, created...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

func (s *Timers) createBatch(ctx context.Context, timers []NewTimer) ([]CreateResult, error) {
	body := []byte(`{"timers":[`)
	for i, timer := range timers {
		text, err := objectOf(timer.identified())
		if err != nil {
			return nil, fmt.Errorf("timer %d of the batch: %w", i, err)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
	}
	var answer struct {
		Results []struct {
			Status  int    `json:"status"`
			Message string `json:"message"`
			Field   string `json:"field"`
			Timer   *Timer `json:"timer"`
		} `json:"results"`
	}
	request := call{method: http.MethodPost, path: "/timers/batch", body: append(body, "]}"...), idempotent: true}
	if err := s.client.do(ctx, request, &answer); err != nil {
		return nil, err
	}
	results := make([]CreateResult, len(answer.Results))
	for i, result := range answer.Results {
		results[i].Status = result.Status
		if result.Timer != nil {
			results[i].Timer = *result.Timer
			continue
		}
		code := codeOf(result.Status)
		results[i].Err = &Error{
			Status: result.Status, Code: code, Message: result.Message, Field: result.Field, kind: kindOf(result.Status, code),
		}
	}
	return results, nil
}

// Get shows a timer with everything that is known about it.
func (s *Timers) Get(ctx context.Context, ref Ref) (timer TimerDetail, err error) {
	err = s.client.do(ctx, get(ref.path(), nil), &timer)
	if string(timer.Metadata) == "null" {
		timer.Metadata = nil
	}
	return timer, err
}

// Page of a list.
type Page struct {
	Timers          []Timer `json:"timers"`
	Total           int64   `json:"total"`
	TotalIsEstimate bool    `json:"total_is_estimate"`
	Limit           int     `json:"limit"`
	Offset          int64   `json:"offset"`
	// NextCursor is empty on the last page.
	NextCursor string `json:"next_cursor"`
	// Scanned is how many timers were looked at. The page is not Complete if the time for one answer ran out: then it has
	// a NextCursor, and may be empty.
	Scanned  int64 `json:"scanned"`
	Complete bool  `json:"complete"`
}

// Page reads one page of the timers that match.
func (s *Timers) Page(ctx context.Context, query ListQuery) (page Page, err error) {
	err = s.client.do(ctx, get("/timers", query.query()), &page)
	return page, err
}

// List iterates over all timers that match, page by page. It ends after an error.
func (s *Timers) List(ctx context.Context, query ListQuery) iter.Seq2[Timer, error] {
	return func(yield func(Timer, error) bool) {
		for {
			page, err := s.Page(ctx, query)
			if err != nil {
				yield(Timer{}, err)
				return
			}
			for _, timer := range page.Timers {
				if !yield(timer, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			query.Cursor, query.Offset = page.NextCursor, 0
		}
	}
}

// Count of the timers that match.
type Count struct {
	Total           int64 `json:"total"`
	TotalIsEstimate bool  `json:"total_is_estimate"`
}

// Count counts the timers that match, exactly where that is quick.
func (s *Timers) Count(ctx context.Context, filter Filter) (count Count, err error) {
	err = s.client.do(ctx, get("/timers/count", filter.query()), &count)
	return count, err
}

// ExportFormat of [Timers.Export].
type ExportFormat string

// One table, one array, or one object a line.
const (
	CSV    ExportFormat = "csv"
	JSON   ExportFormat = "json"
	NDJSON ExportFormat = "ndjson"
)

// Export streams all timers that match. The caller closes it; the timeout of the client does not limit it, ctx does.
func (s *Timers) Export(ctx context.Context, format ExportFormat, filter Filter) (io.ReadCloser, error) {
	request := get("/timers."+string(format), filter.query())
	request.accept = "*/*"
	return s.client.open(ctx, request)
}

// Update changes a pending or paused timer. Once it returns, the old version never fires.
func (s *Timers) Update(ctx context.Context, ref Ref, update Update, options ...ChangeOption) (Timer, error) {
	return s.change(ctx, call{method: http.MethodPut, path: ref.path(), idempotent: true}, update, options)
}

// Cancel cancels a pending or paused timer. Canceling it again is no error.
func (s *Timers) Cancel(ctx context.Context, ref Ref, options ...ChangeOption) (Timer, error) {
	return s.change(ctx, call{method: http.MethodDelete, path: ref.path(), idempotent: true}, nil, options)
}

// Fire makes a pending timer due now. It is sent once, whatever happens.
func (s *Timers) Fire(ctx context.Context, ref Ref, options ...ChangeOption) (Timer, error) {
	return s.change(ctx, post(ref, "/fire"), nil, options)
}

// Retry tries a failed or expired timer again.
func (s *Timers) Retry(ctx context.Context, ref Ref, options ...ChangeOption) (Timer, error) {
	return s.change(ctx, post(ref, "/retry"), nil, options)
}

// Ping postpones a timer by its own delay, or by the one given unless that is 0. A timer that has ended begins anew.
func (s *Timers) Ping(ctx context.Context, ref Ref, delay time.Duration, options ...ChangeOption) (Timer, error) {
	return s.change(ctx, post(ref, "/ping"), Update{Delay: delay}, options)
}

// Pause takes a pending timer out of what is due. The note is for people, and may be empty.
func (s *Timers) Pause(ctx context.Context, ref Ref, note string, options ...ChangeOption) (Timer, error) {
	return s.change(ctx, post(ref, "/pause"), text{"note", note}, options)
}

// Missed says what becomes of a timer that was due while it was paused.
type Missed string

// It fires now, which is the default, or it expires.
const (
	FireMissed   Missed = "fire"
	ExpireMissed Missed = "expire"
)

// Resume puts a paused timer back.
func (s *Timers) Resume(ctx context.Context, ref Ref, missed Missed, options ...ChangeOption) (Timer, error) {
	return s.change(ctx, post(ref, "/resume"), text{"missed", string(missed)}, options)
}

// Attempts lists what is remembered of the deliveries of a timer, the oldest first.
func (s *Timers) Attempts(ctx context.Context, ref Ref) ([]Attempt, error) {
	var answer struct {
		Attempts []Attempt `json:"attempts"`
	}
	err := s.client.do(ctx, get(ref.path()+"/attempts", nil), &answer)
	return answer.Attempts, err
}

func (s *Timers) change(ctx context.Context, request call, body writer, options []ChangeOption) (changed Timer, err error) {
	if body != nil {
		if request.body, err = objectOf(body); err != nil {
			return changed, err
		}
	}
	request.header = http.Header{}
	for _, option := range options {
		option(request.header)
	}
	// With a revision, the first attempt itself could be what is in the way of the second.
	request.idempotent = request.idempotent && len(options) == 0
	err = s.client.do(ctx, request, &changed)
	return changed, err
}

func post(ref Ref, verb string) call { return call{method: http.MethodPost, path: ref.path() + verb} }

// text is a body with one member, which is left out if it is empty.
type text struct{ name, value string }

func (t text) write(o *object) { o.string(t.name, t.value) }
