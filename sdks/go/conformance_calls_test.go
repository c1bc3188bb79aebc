package timer_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
	"github.com/timer-platform/timer-platform/sdks/go/webhook"
)

// calls turns the names and arguments of the conformance suite into calls of the client.
var calls = map[string]func(context.Context, *timer.Client, args) (any, error){
	"timers.create": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Create(ctx, a.newTimer())
	},
	"timers.create_many": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		var timers []timer.NewTimer
		for _, element := range a["timers"].([]any) {
			timers = append(timers, args(element.(map[string]any)).newTimer())
		}
		results, err := c.Timers.CreateMany(ctx, timers)
		return map[string]any{"results": batchShape(results)}, err
	},
	"timers.get": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Get(ctx, a.ref())
	},
	"timers.list": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		all := []timer.Timer{}
		for found, err := range c.Timers.List(ctx, a.listQuery()) {
			if err != nil {
				return nil, err
			}
			all = append(all, found)
		}
		return all, nil
	},
	"timers.page": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Page(ctx, a.listQuery())
	},
	"timers.count": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Count(ctx, a.filter())
	},
	"timers.export": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		export, err := c.Timers.Export(ctx, timer.ExportFormat(a.text("format")), a.filter())
		if err != nil {
			return nil, err
		}
		defer export.Close()
		text, err := io.ReadAll(export)
		return string(text), err
	},
	"timers.update": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Update(ctx, a.ref(), a.object("set").update(), a.options()...)
	},
	"timers.cancel": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Cancel(ctx, a.ref(), a.options()...)
	},
	"timers.fire": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Fire(ctx, a.ref(), a.options()...)
	},
	"timers.retry": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Retry(ctx, a.ref(), a.options()...)
	},
	"timers.ping": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Ping(ctx, a.ref(), a.duration("delay"), a.options()...)
	},
	"timers.pause": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Pause(ctx, a.ref(), a.text("note"), a.options()...)
	},
	"timers.resume": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.Resume(ctx, a.ref(), timer.Missed(a.text("missed")), a.options()...)
	},
	"timers.attempts": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		attempts, err := c.Timers.Attempts(ctx, a.ref())
		return map[string]any{"attempts": attempts}, err
	},
	"timers.cancel_matching": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Timers.CancelMatching(ctx, timer.CancelMatching{
			Namespace: a.text("namespace"), Status: timer.Status(a.text("status")), KeyPrefix: a.text("key_prefix"),
			Metadata: a["metadata"], ExpectedMax: a.number("expected_max"),
		})
	},
	"timers.bulk": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		change := timer.BulkChange{
			Action: timer.BulkAction(a.text("action")), Filter: a.object("filter").filter(), ExpectedMax: a.number("expected_max"),
		}
		if set := a.object("set"); set != nil {
			change.Set = &timer.Reschedule{ExecuteAt: set.instant("at"), Shift: set.duration("shift"), Spread: set.duration("spread")}
		}
		if a["dry_run"] == true {
			return c.Timers.PreviewBulk(ctx, change)
		}
		return c.Timers.Bulk(ctx, change)
	},
	"operations.list": func(ctx context.Context, c *timer.Client, _ args) (any, error) {
		operations, err := c.Operations.List(ctx)
		return map[string]any{"operations": operations}, err
	},
	"operations.get": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Operations.Get(ctx, a.text("id"))
	},
	"operations.stop": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Operations.Stop(ctx, a.text("id"))
	},
	"groups.get": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Groups.Count(ctx, a.text("namespace"), a.text("group"))
	},
	"groups.cancel": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Groups.Cancel(ctx, a.text("namespace"), a.text("group"))
	},
	"keys.create": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		key := timer.NewKey{Name: a.text("name"), Namespaces: a.texts("namespaces"), Rights: timer.Rights(a.text("rights"))}
		return c.Keys.Create(ctx, key)
	},
	"keys.list": func(ctx context.Context, c *timer.Client, _ args) (any, error) {
		keys, err := c.Keys.List(ctx)
		return map[string]any{"keys": keys}, err
	},
	"keys.revoke": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return nil, c.Keys.Revoke(ctx, a.text("id"))
	},
	"stats.due": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Stats.Due(ctx, a.statsQuery())
	},
	"stats.fired": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Stats.Fired(ctx, a.statsQuery())
	},
	"destinations": func(ctx context.Context, c *timer.Client, a args) (any, error) {
		return c.Stats.Destinations(ctx, a.texts("namespace")...)
	},
	"namespaces": func(ctx context.Context, c *timer.Client, _ args) (any, error) { return c.Stats.Namespaces(ctx) },
	"cluster":    func(ctx context.Context, c *timer.Client, _ args) (any, error) { return c.Cluster(ctx) },
	"whoami":     func(ctx context.Context, c *timer.Client, _ args) (any, error) { return c.WhoAmI(ctx) },
	"health":     func(ctx context.Context, c *timer.Client, _ args) (any, error) { return c.Health(ctx) },
	"ping":       func(ctx context.Context, c *timer.Client, _ args) (any, error) { return nil, c.Ping(ctx) },
}

// args of a call, with the names of the API.
type args map[string]any

func (a args) text(name string) string {
	text, _ := a[name].(string)
	return text
}

func (a args) texts(name string) []string {
	if text := a.text(name); text != "" {
		return []string{text}
	}
	var texts []string
	list, _ := a[name].([]any)
	for _, element := range list {
		texts = append(texts, element.(string))
	}
	return texts
}

func (a args) number(name string) int {
	number, _ := a[name].(float64)
	return int(number)
}

func (a args) object(name string) args {
	object, _ := a[name].(map[string]any)
	return object
}

func (a args) duration(name string) time.Duration {
	if a.text(name) == "" {
		return 0
	}
	parsed, err := time.ParseDuration(a.text(name))
	if err != nil {
		panic(err)
	}
	return parsed
}

func (a args) instant(name string) time.Time {
	parsed, _ := time.Parse(time.RFC3339Nano, a.text(name))
	return parsed
}

func (a args) ref() timer.Ref {
	if key := a.text("key"); key != "" {
		return timer.Key{Namespace: a.text("namespace"), Key: key}
	}
	return timer.ID(a.text("id"))
}

func (a args) options() []timer.ChangeOption {
	if a["revision"] == nil {
		return nil
	}
	return []timer.ChangeOption{timer.IfRevision(a.number("revision"))}
}

func (a args) texted(name string) map[string]string {
	texts := map[string]string{}
	for key, value := range a.object(name) {
		texts[key] = value.(string)
	}
	return texts
}

func (a args) callback() timer.Callback {
	switch {
	case a == nil:
		return nil
	case a.object("callback") != nil:
		return a.object("callback").callback()
	case a.text("type") == "nats":
		return timer.NATS{
			Topic: a.text("topic"), Key: a.text("key"), JetStream: a["jetstream"] == true,
			Headers: a.texted("headers"), Payload: a["payload"],
		}
	case a.text("url") == "":
		return nil
	}
	return timer.HTTP{
		URL: a.text("url"), Headers: a.texted("headers"), Payload: a["payload"],
		Timeout: a.duration("timeout"), Protocol: timer.Protocol(a.text("protocol")),
	}
}

func (a args) update() timer.Update {
	update := timer.Update{
		Callback: a.callback(), ExecuteAt: a.instant("at"), Delay: a.duration("in"), Group: a.text("group"),
		Metadata: a["metadata"], CorrelationID: a.text("correlation_id"), RetryPolicy: a.retryPolicy(),
		Delivery: timer.Delivery(a.text("delivery")), ExpiresAt: a.instant("expires_at"), ExpiresAfter: a.duration("expires_after"),
		PostponeMax: a.duration("postpone_max"), OnSuccess: a.object("on_success").callback(), OnFailure: a.object("on_failure").callback(),
	}
	for name, value := range a {
		if value == nil {
			update.Clear = append(update.Clear, timer.Clearable(strings.Replace(name, "expires_after", "expires_at", 1)))
		}
	}
	return update
}

func (a args) newTimer() timer.NewTimer {
	u := a.update()
	return timer.NewTimer{
		ID: timer.ID(a.text("id")), Namespace: a.text("namespace"), Key: a.text("key"), OnConflict: timer.OnConflict(a.text("on_conflict")),
		Callback: u.Callback, ExecuteAt: u.ExecuteAt, Delay: u.Delay, Group: u.Group, Metadata: u.Metadata,
		CorrelationID: u.CorrelationID, RetryPolicy: u.RetryPolicy, Delivery: u.Delivery, ExpiresAt: u.ExpiresAt,
		ExpiresAfter: u.ExpiresAfter, PostponeMax: u.PostponeMax, OnSuccess: u.OnSuccess, OnFailure: u.OnFailure,
	}
}

func (a args) retryPolicy() *timer.RetryPolicy {
	given := a.object("retry_policy")
	if given == nil {
		return nil
	}
	multiplier, _ := given["backoff_multiplier"].(float64)
	return &timer.RetryPolicy{
		MaxRetries: given.number("max_retries"), InitialInterval: given.duration("initial_interval"),
		BackoffMultiplier: multiplier, MaxInterval: given.duration("max_interval"), MaxDuration: given.duration("max_duration"),
	}
}

func (a args) filter() timer.Filter {
	filter := timer.Filter{
		Namespace: a.texts("namespace"), Key: a.text("key"), KeyPrefix: a.text("key_prefix"), Group: a.text("group"),
		DueFrom: a.instant("due_from"), DueTo: a.instant("due_to"), CreatedFrom: a.instant("created_from"),
		CreatedTo: a.instant("created_to"), CorrelationID: a.text("correlation_id"), Destination: a.text("destination"),
		Metadata: a.texted("metadata"), Error: a.text("error"),
	}
	for _, status := range a.texts("status") {
		filter.Status = append(filter.Status, timer.Status(status))
	}
	return filter
}

func (a args) listQuery() timer.ListQuery {
	return timer.ListQuery{
		Filter: a.filter(), Sort: timer.Sort(a.text("sort")), Order: timer.Order(a.text("order")),
		Limit: a.number("limit"), Offset: a.number("offset"), Cursor: a.text("cursor"),
	}
}

func (a args) statsQuery() timer.StatsQuery {
	return timer.StatsQuery{
		From: a.instant("from"), To: a.instant("to"), Step: a.duration("step"), Namespace: a.texts("namespace"),
	}
}

// shape turns a result into that of the API: what is not there is absent.
func shape(result any) any {
	text, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	var shaped any
	_ = json.Unmarshal(text, &shaped)
	return present(shaped)
}

func present(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if value[name] = present(member); member == "" || member == "0001-01-01T00:00:00Z" {
				delete(value, name)
			}
		}
	case []any:
		for i, element := range value {
			value[i] = present(element)
		}
	}
	return value
}

func batchShape(results []timer.CreateResult) []any {
	shaped := make([]any, len(results))
	for i, result := range results {
		one := map[string]any{"status": result.Status}
		var failure *timer.Error
		if errors.As(result.Err, &failure) {
			one["message"], one["field"] = failure.Message, failure.Field
		} else {
			one["timer"] = result.Timer
		}
		shaped[i] = one
	}
	return shaped
}

var kinds = map[string]error{
	"invalid": timer.ErrInvalid, "not_found": timer.ErrNotFound, "unauthorized": timer.ErrUnauthorized,
	"too_many": timer.ErrTooMany, "conflict": timer.ErrConflict, "unavailable": timer.ErrUnavailable,
	"unreachable": timer.ErrUnreachable, "unexpected": timer.ErrUnexpected,
}

func errorShape(err error) any {
	shaped := map[string]any{}
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			shaped["kind"] = name
		}
	}
	var failure *timer.Error
	if errors.As(err, &failure) {
		shaped["message"], shaped["field"], shaped["request_id"] = failure.Message, failure.Field, failure.RequestID
		for name, number := range map[string]int64{
			"status": int64(failure.Status), "code": int64(failure.Code), "retry_after_ms": failure.RetryAfter.Milliseconds(),
		} {
			if number != 0 {
				shaped[name] = number
			}
		}
	}
	return shape(shaped)
}

func callShape(call *webhook.Call) any {
	if call == nil {
		return nil
	}
	return shape(map[string]any{
		"id": call.ID, "timer_id": call.TimerID, "namespace": call.Namespace, "attempt": call.Attempt,
		"scheduled_at": call.ScheduledAt, "sent_at": call.SentAt, "lateness_ms": call.Lateness().Milliseconds(),
		"correlation_id": call.CorrelationID, "traceparent": call.TraceParent,
	})
}
