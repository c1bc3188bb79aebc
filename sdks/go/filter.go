package timer

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Filter says which timers are meant: those for which everything holds that is given. The zero value means all.
type Filter struct {
	Status        []Status
	Namespace     []string
	Key           string
	KeyPrefix     string
	Group         string
	DueFrom       time.Time
	DueTo         time.Time
	CreatedFrom   time.Time
	CreatedTo     time.Time
	CorrelationID string
	// Destination is host:port, or a NATS subject.
	Destination string
	// Metadata has dotted paths and the scalars there, as they are written: {"customer.id": "42"}.
	Metadata map[string]string
	// Error is a part of the last error.
	Error string
}

// ListQuery asks for timers. Cursors lead to all of them, an Offset to the first 10,000.
type ListQuery struct {
	Filter
	// Sort is created_at unless given, or execute_at.
	Sort Sort
	// Order is desc unless given.
	Order Order
	// Limit is how many timers one page has, 1 to 200.
	Limit  int
	Offset int
	// Cursor is NextCursor of an earlier page.
	Cursor string
}

// Sort is a time by which lists are sorted.
type Sort string

// Order of a list.
type Order string

// By when timers were created or are due, the earliest or the latest first.
const (
	ByCreatedAt Sort  = "created_at"
	ByExecuteAt Sort  = "execute_at"
	Ascending   Order = "asc"
	Descending  Order = "desc"
)

// members lists what is given, in the order and with the names of the service.
func (f Filter) members() [][2]string {
	statuses := make([]string, len(f.Status))
	for i, status := range f.Status {
		statuses[i] = string(status)
	}
	all := [][2]string{
		{"status", strings.Join(statuses, ",")}, {"namespace", strings.Join(f.Namespace, ",")},
		{"key", f.Key}, {"key_prefix", f.KeyPrefix}, {"group", f.Group},
		{"due_from", instantOrNone(f.DueFrom)}, {"due_to", instantOrNone(f.DueTo)},
		{"created_from", instantOrNone(f.CreatedFrom)}, {"created_to", instantOrNone(f.CreatedTo)},
		{"correlation_id", f.CorrelationID}, {"destination", f.Destination}, {"error", f.Error},
	}
	var given [][2]string
	for _, member := range all {
		if member[1] != "" {
			given = append(given, member)
		}
	}
	return given
}

func (f Filter) query() url.Values {
	values := url.Values{}
	for _, member := range f.members() {
		values.Set(member[0], member[1])
	}
	for path, text := range f.Metadata {
		values.Set("metadata."+path, text)
	}
	return values
}

func (f Filter) write(o *object) {
	for _, member := range f.members() {
		o.string(member[0], member[1])
	}
	if len(f.Metadata) > 0 {
		o.json("metadata", f.Metadata)
	}
}

func (q ListQuery) query() url.Values {
	values := q.Filter.query()
	for name, text := range map[string]string{"sort": string(q.Sort), "order": string(q.Order), "cursor": q.Cursor} {
		if text != "" {
			values.Set(name, text)
		}
	}
	for name, number := range map[string]int{"limit": q.Limit, "offset": q.Offset} {
		if number != 0 {
			values.Set(name, strconv.Itoa(number))
		}
	}
	return values
}

func instantOrNone(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return instant(at)
}
