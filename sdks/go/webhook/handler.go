package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// bodyBytesMax is more than the largest payload with what the timer protocol adds.
const bodyBytesMax = 1 << 20

// Seen remembers calls that were answered, by their webhook-id. A real one keeps them in the database of the receiver, in
// the transaction that does the work.
type Seen interface {
	// Has says whether the call was answered with success before.
	Has(ctx context.Context, id string) (bool, error)
	// Add records that it was.
	Add(ctx context.Context, id string) error
}

// NewMemory is a Seen that remembers the last calls of this process, at most so many.
func NewMemory(idsMax int) Seen { return &memory{idsMax: idsMax, seen: map[string]struct{}{}} }

type memory struct {
	mutex  sync.Mutex
	idsMax int
	seen   map[string]struct{}
	order  []string
}

func (m *memory) Has(_ context.Context, id string) (bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	_, seen := m.seen[id]
	return seen, nil
}

func (m *memory) Add(_ context.Context, id string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, seen := m.seen[id]; seen {
		return nil
	}
	m.seen[id] = struct{}{}
	m.order = append(m.order, id)
	if len(m.order) > m.idsMax {
		delete(m.seen, m.order[0])
		m.order = m.order[1:]
	}
	return nil
}

type contextKey struct{}

// FromContext returns the call that [Verifier.Middleware] has verified.
func FromContext(ctx context.Context) (*Call, bool) {
	call, ok := ctx.Value(contextKey{}).(*Call)
	return call, ok
}

// Middleware passes on verified calls only, and answers every other one with 401. The handler can read the body again, and the [Call] is in
// the context of the request. With Seen, a call that was answered with 2xx before gets a 200 and is not passed on.
func (v *Verifier) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		call, err := v.Verify(r.Header, body)
		if err != nil {
			http.Error(w, "the call is not genuine", http.StatusUnauthorized)
			return
		}
		ctx := context.WithValue(r.Context(), contextKey{}, call)
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(bytes.NewReader(body))
		v.once(w, r, call, next)
	})
}

func (v *Verifier) once(w http.ResponseWriter, r *http.Request, call *Call, next http.Handler) {
	if v.Seen == nil {
		next.ServeHTTP(w, r)
		return
	}
	seen, err := v.Seen.Has(r.Context(), call.ID)
	if err != nil {
		RetryAfter(time.Second).write(w)
		return
	}
	if seen {
		OK().write(w)
		return
	}
	watched := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	next.ServeHTTP(watched, r)
	if watched.status/100 == 2 {
		// If this fails the call may come again, as it may whenever a process dies at this point.
		_ = v.Seen.Add(context.WithoutCancel(r.Context()), call.ID)
	}
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Handler verifies calls and answers them with what handle returns.
func (v *Verifier) Handler(handle func(context.Context, *Call) Answer) http.Handler {
	return v.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, _ := FromContext(r.Context())
		handle(r.Context(), call).write(w)
	}))
}

// Answer to a call.
type Answer struct {
	Status     int
	RetryAfter time.Duration
	body       []byte
}

// OK completes a timer.
func OK() Answer { return Answer{Status: http.StatusOK} }

// RetryAfter fails an attempt, and asks for the next one in so long, as far as the retry policy of the timer has it.
func RetryAfter(wait time.Duration) Answer {
	return Answer{Status: http.StatusServiceUnavailable, RetryAfter: wait}
}

// Done completes a timer that speaks the timer protocol.
func Done() Answer { return protocol(true, time.Time{}) }

// DoneAgain completes this run of a timer that speaks the timer protocol, and lets it run again at that time.
func DoneAgain(at time.Time) Answer { return protocol(true, at) }

// Again postpones a timer that speaks the timer protocol.
func Again(at time.Time) Answer { return protocol(false, at) }

// Failed fails an attempt of a timer that speaks the timer protocol; its retry policy goes on.
func Failed() Answer { return protocol(false, time.Time{}) }

func protocol(ok bool, next time.Time) Answer {
	said := struct {
		OK   bool      `json:"ok"`
		Next time.Time `json:"nextExecuteAt,omitzero"`
	}{ok, next.UTC()}
	body, _ := json.Marshal(said) // a flag and an instant
	return Answer{Status: http.StatusOK, body: body}
}

func (a Answer) write(w http.ResponseWriter) {
	if a.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((a.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if a.body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.body)
}
