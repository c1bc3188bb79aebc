package io.github.timerplatform;

import static io.github.timerplatform.ConformanceTest.list;
import static io.github.timerplatform.ConformanceTest.map;

import io.github.timerplatform.testing.TimerDev;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Arguments of a call of the conformance suite, with the names of the API. */
record Args(Map<String, Object> given) {
    boolean has(String name) {
        return given.get(name) != null;
    }

    String text(String name) {
        return (String) given.get(name);
    }

    List<String> texts(String name) {
        return given.get(name) instanceof String one ? List.of(one) : has(name) ? list(given.get(name)).stream().map(String.class::cast).toList() : List.of();
    }

    int number(String name) {
        return has(name) ? ((Number) given.get(name)).intValue() : 0;
    }

    Args object(String name) {
        return new Args(map(given.get(name)));
    }

    Duration duration(String name) {
        return has(name) ? Durations.parse(text(name)) : null;
    }

    Instant instant(String name) {
        return has(name) ? OffsetDateTime.parse(text(name)).toInstant() : null;
    }

    <E extends Enum<E>> E choice(String name, Class<E> type) {
        return has(name) ? Enum.valueOf(type, text(name).toUpperCase(Locale.ROOT)) : null;
    }

    Ref ref() {
        return has("key") ? Ref.key(text("namespace"), text("key")) : Ref.id(text("id"));
    }

    Callback callback() {
        if (given == null) {
            return null;
        }
        if (has("callback")) {
            return object("callback").callback();
        }
        var payload = given.containsKey("payload") ? Json.of(given.get("payload")) : null;
        if ("nats".equals(given.get("type"))) {
            return new Callback.Nats(text("topic"), text("key"), headers(), payload, Boolean.TRUE.equals(given.get("jetstream")));
        }
        return has("url") ? new Callback.Http(text("url"), headers(), payload, duration("timeout"), choice("protocol", Protocol.class)) : null;
    }

    private Map<String, String> headers() {
        var headers = new HashMap<String, String>();
        if (has("headers")) {
            map(given.get("headers")).forEach((name, value) -> headers.put(name, (String) value));
        }
        return headers;
    }

    NewTimer newTimer() {
        var timer = has("at") ? NewTimer.at(instant("at"), callback()) : NewTimer.in(duration("in"), callback());
        timer = has("id") ? timer.id(text("id")) : timer;
        timer = has("namespace") ? timer.namespace(text("namespace")) : timer;
        timer = has("key") ? timer.key(text("key")) : timer;
        timer = has("on_conflict") ? timer.onConflict(choice("on_conflict", OnConflict.class)) : timer;
        return common(timer);
    }

    TimerUpdate update() {
        var update = TimerUpdate.of();
        update = has("at") ? update.at(instant("at")) : update;
        update = has("in") ? update.in(duration("in")) : update;
        update = callback() != null ? update.callback(callback()) : update;
        return common(update);
    }

    private <T extends TimerFields<T>> T common(T fields) {
        var changed = fields;
        for (var name : given.keySet()) {
            changed = switch (name) {
                case "group" -> changed.group(text(name));
                case "metadata" -> changed.metadata(given.get(name));
                case "correlation_id" -> changed.correlationId(text(name));
                case "retry_policy" -> changed.retryPolicy(has(name) ? object(name).retryPolicy() : null);
                case "delivery" -> changed.delivery(choice(name, Delivery.class));
                case "expires_at" -> changed.expiresAt(instant(name));
                case "expires_after" -> changed.expiresAfter(duration(name));
                case "postpone_max" -> changed.postponeMax(duration(name));
                case "on_success" -> changed.onSuccess(object(name).callback());
                case "on_failure" -> changed.onFailure(object(name).callback());
                default -> changed;
            };
        }
        return changed;
    }

    private RetryPolicy retryPolicy() {
        var multiplier = given.get("backoff_multiplier");
        return new RetryPolicy(
                has("max_retries") ? number("max_retries") : null,
                duration("initial_interval"),
                multiplier == null ? null : ((Number) multiplier).doubleValue(),
                duration("max_interval"),
                duration("max_duration"));
    }

    Filter filter() {
        var filter = Filter.all();
        for (var name : given.keySet()) {
            filter = switch (name) {
                case "status" -> filter.status(texts(name).stream().map(text -> Status.valueOf(text.toUpperCase(Locale.ROOT))).toArray(Status[]::new));
                case "namespace" -> filter.namespace(texts(name).toArray(String[]::new));
                case "key" -> filter.key(text(name));
                case "key_prefix" -> filter.keyPrefix(text(name));
                case "group" -> filter.group(text(name));
                case "due_from" -> filter.dueFrom(instant(name));
                case "due_to" -> filter.dueTo(instant(name));
                case "created_from" -> filter.createdFrom(instant(name));
                case "created_to" -> filter.createdTo(instant(name));
                case "correlation_id" -> filter.correlationId(text(name));
                case "destination" -> filter.destination(text(name));
                case "error" -> filter.error(text(name));
                default -> filter;
            };
        }
        for (var condition : has("metadata") ? map(given.get("metadata")).entrySet() : Map.<String, Object>of().entrySet()) {
            filter = filter.metadata(condition.getKey(), (String) condition.getValue());
        }
        return filter;
    }

    ListQuery listQuery() {
        var query = ListQuery.of(filter());
        query = has("sort") ? query.sort(choice("sort", Sort.class)) : query;
        query = has("order") ? query.order(choice("order", Order.class)) : query;
        query = has("limit") ? query.limit(number("limit")) : query;
        query = has("offset") ? query.offset(number("offset")) : query;
        return has("cursor") ? query.cursor(text("cursor")) : query;
    }

    Stats.Period period() {
        var period = Stats.Period.usual();
        period = has("from") ? period.from(instant("from")) : period;
        period = has("to") ? period.to(instant("to")) : period;
        period = has("step") ? period.step(duration("step")) : period;
        return has("namespace") ? period.namespace(texts("namespace").toArray(String[]::new)) : period;
    }

    BulkChange bulkChange() {
        var filter = object("filter").filter();
        if (!has("set")) {
            return BulkChange.of(choice("action", BulkAction.class), filter, number("expected_max"));
        }
        var set = object("set");
        if (set.has("shift")) {
            return BulkChange.reschedule(BulkChange.Reschedule.shift(Durations.parse(set.text("shift").substring(1))), filter, number("expected_max"));
        }
        var times = set.has("at") ? BulkChange.Reschedule.at(set.instant("at")) : BulkChange.Reschedule.spread(set.duration("spread"));
        return BulkChange.reschedule(times, filter, number("expected_max"));
    }

    TimerDev.Answer answer() {
        var delay = has("delay") ? duration("delay") : Duration.ZERO;
        var body = has("body") ? text("body") : "";
        var status = has("status") ? number("status") : 200;
        return new TimerDev.Answer(text("path"), status, headers(), body, delay, number("times"), Boolean.TRUE.equals(given.get("hang")));
    }
}
