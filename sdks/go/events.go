package timer

import (
	"bufio"
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"
)

// eventBytesMax is more than a timer without its payload can have.
const eventBytesMax = 1 << 20

// EventType says what happened to a timer.
type EventType string

// The types of events.
const (
	EventCreated  EventType = "created"
	EventChanged  EventType = "changed"
	EventAttempt  EventType = "attempt"
	EventFinished EventType = "finished"
	// A heartbeat, which is not shown.
	eventPosition EventType = "position"
)

// Event is something that happened to a timer. Type, At and the ID of the timer identify it.
type Event struct {
	Type EventType `json:"type"`
	// EventID is where to resume after this event: see [WatchQuery].
	EventID string    `json:"event_id"`
	At      time.Time `json:"at"`
	Timer   Timer     `json:"timer"`
	Attempt *Attempt  `json:"attempt"`
}

// WatchQuery says which events are wanted.
type WatchQuery struct {
	Filter
	// Types are all unless given.
	Types []EventType
	// After is the EventID of an event that was seen; without it the stream begins now.
	After string
}

// Watch follows what happens until ctx ends or the loop is left. A stream that breaks is resumed: nothing is missed, and
// the events of the last seconds before may come again. It ends after an error that resuming does not help against.
func (s *Timers) Watch(ctx context.Context, query WatchQuery) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for failures := 0; ; failures++ {
			before := query.After
			err := s.follow(ctx, &query, yield)
			if err == errLeft || ctx.Err() != nil {
				return
			}
			if failure, ok := err.(*Error); ok && !failure.temporary() {
				yield(Event{}, err)
				return
			}
			if query.After != before {
				failures = 0
			}
			if s.client.sleep(ctx, jitter(failures)) != nil {
				return
			}
		}
	}
}

var errLeft = &Error{kind: ErrUnexpected, Message: "the loop was left"}

// follow reads one stream to its end.
func (s *Timers) follow(ctx context.Context, query *WatchQuery, yield func(Event, error) bool) error {
	request := get("/events", query.Filter.query())
	request.accept = "application/x-ndjson"
	if len(query.Types) > 0 {
		request.query.Set("types", joined(query.Types))
	}
	if query.After != "" {
		request.query.Set("after", query.After)
	}
	body, err := s.client.open(ctx, request)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, eventBytesMax)
	for lines.Scan() {
		var event Event
		// A line that was cut off is sent again.
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			break
		}
		if event.Type != eventPosition && !yield(event, nil) {
			return errLeft
		}
		query.After = event.EventID
	}
	return unreachable(lines.Err())
}

func joined[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, ",")
}
