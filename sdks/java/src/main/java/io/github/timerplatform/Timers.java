package io.github.timerplatform;

import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Registers, reads and changes timers. */
public final class Timers {
    private static final int CREATED_AT_ONCE_MAX = 1000;

    private final Transport transport;
    private final Long revision;

    Timers(Transport transport, Long revision) {
        this.transport = transport;
        this.revision = revision;
    }

    /**
     * The same calls for a timer with this revision only: with another one a change is a {@link TimerException.Conflict}, and nothing
     * is done.
     */
    public Timers ifRevision(long revision) {
        return new Timers(transport, revision);
    }

    /** Registers a timer. Once it returns, the timer is on disk. Repeating it with the same id or key is safe. */
    public Timer create(NewTimer timer) {
        return transport.call(Request.post("/timers", timer.identified()).withIdempotencyKey(), Timer.class);
    }

    /**
     * What became of one timer of a batch: a timer, or why there is none.
     *
     * @param status that the create would have had alone: 201 for a new timer, 200 for one that was there
     */
    public record CreateResult(int status, Timer timer, TimerException error) {}

    private record BatchResult(int status, String message, String field, Timer timer) {
        CreateResult result() {
            if (timer != null) {
                return new CreateResult(status, timer, null);
            }
            return new CreateResult(status, null, TimerException.of(message, new TimerException.Details(status, 0, field, null, null), null));
        }
    }

    private record Batch(List<BatchResult> results) {}

    /** Registers timers in batches of 1,000. Each is answered for itself, in the same order. */
    public List<CreateResult> createMany(List<NewTimer> timers) {
        var results = new ArrayList<CreateResult>();
        for (var from = 0; from < timers.size(); from += CREATED_AT_ONCE_MAX) {
            var batch = timers.subList(from, Math.min(from + CREATED_AT_ONCE_MAX, timers.size()));
            var body = Map.of("timers", batch.stream().map(NewTimer::identified).toList());
            var answer = transport.call(Request.post("/timers/batch", body).withIdempotencyKey(), Batch.class);
            answer.results().forEach(result -> results.add(result.result()));
        }
        return results;
    }

    /** A timer with everything that is known about it. */
    public TimerDetail get(Ref timer) {
        return transport.call(Request.get(timer.path()), TimerDetail.class);
    }

    /** All timers that match, page by page while they are iterated over. */
    public TimerList list(ListQuery query) {
        return new TimerList(this, query);
    }

    public TimerList list(Filter filter) {
        return list(ListQuery.of(filter));
    }

    /** One page of the timers that match. */
    public TimerPage page(ListQuery query) {
        return transport.call(Request.get("/timers", query.query()), TimerPage.class);
    }

    /** How many timers match. */
    public record Count(long total, boolean totalIsEstimate) {}

    /** Counts the timers that match, exactly where that is quick. */
    public Count count(Filter filter) {
        return transport.call(Request.get("/timers/count", filter.query()), Count.class);
    }

    /** Streams all timers that match. The caller closes it. */
    public InputStream export(ExportFormat format, Filter filter) {
        return transport.open(Request.get("/timers." + format, filter.query()).accepting("*/*"));
    }

    /** Changes a pending or paused timer. Once it returns, the old version never fires. */
    public Timer update(Ref timer, TimerUpdate update) {
        return change(Request.put(timer.path(), update));
    }

    /** Cancels a pending or paused timer. Canceling it again is no error. */
    public Timer cancel(Ref timer) {
        return change(Request.delete(timer.path()));
    }

    /** Makes a pending timer due now. It is sent once, whatever happens. */
    public Timer fire(Ref timer) {
        return change(Request.post(timer.path() + "/fire", null));
    }

    /** Tries a failed or expired timer again. */
    public Timer retry(Ref timer) {
        return change(Request.post(timer.path() + "/retry", null));
    }

    /** Postpones a timer by its own delay. One that has ended begins anew. */
    public Timer ping(Ref timer) {
        return change(Request.post(timer.path() + "/ping", Map.of()));
    }

    /** Postpones a timer: it is due so long from now. */
    public Timer ping(Ref timer, Duration delay) {
        return change(Request.post(timer.path() + "/ping", Map.of("delay", delay)));
    }

    /** Takes a pending timer out of what is due. */
    public Timer pause(Ref timer) {
        return change(Request.post(timer.path() + "/pause", Map.of()));
    }

    /** The same with a note for people. */
    public Timer pause(Ref timer, String note) {
        return change(Request.post(timer.path() + "/pause", Map.of("note", note)));
    }

    /** Puts a paused timer back. One that was due meanwhile fires now. */
    public Timer resume(Ref timer) {
        return resume(timer, Missed.FIRE);
    }

    public Timer resume(Ref timer, Missed missed) {
        return change(Request.post(timer.path() + "/resume", Map.of("missed", missed)));
    }

    private record Attempts(List<Attempt> attempts) {}

    /** What is remembered of the deliveries of a timer, the oldest first. */
    public List<Attempt> attempts(Ref timer) {
        return transport.call(Request.get(timer.path() + "/attempts"), Attempts.class).attempts();
    }

    /**
     * Which pending timers are canceled: those for which everything holds that is not null, of which something must be.
     *
     * @param status {@link Status#PENDING} to mean all of them
     * @param metadata members that the metadata must have, written in the same way
     * @param expectedMax if more match, none is canceled
     */
    public record CancelMatching(String namespace, Status status, String keyPrefix, Object metadata, int expectedMax) {}

    /** How many timers matched, and how many of them were canceled. */
    public record Canceled(long matched, long canceled) {}

    /** Cancels every pending timer that matches. It is sent once; sending it again is safe. */
    public Canceled cancelMatching(CancelMatching matching) {
        var body = new LinkedHashMap<String, Object>();
        body.put("namespace", matching.namespace());
        body.put("status", matching.status());
        body.put("key_prefix", matching.keyPrefix());
        body.put("metadata", matching.metadata());
        body.put("expected_max", matching.expectedMax());
        body.values().removeIf(value -> value == null);
        return transport.call(Request.post("/timers/cancel", body), Canceled.class);
    }

    /** Changes every timer that matches. It is sent once; a {@link #previewBulk} before it tells what to expect. */
    public BulkChange.Result bulk(BulkChange change) {
        return transport.call(Request.post("/timers/bulk", change.body(false)), BulkChange.Result.class);
    }

    /** A dry run: counts what a bulk change would meet, and changes nothing. */
    public BulkChange.Preview previewBulk(BulkChange change) {
        return transport.call(Request.post("/timers/bulk", change.body(true)), BulkChange.Preview.class);
    }

    /** Follows what happens to the timers that match, from now on. The caller closes it. */
    public EventStream watch(Filter filter, EventType... types) {
        return new EventStream(transport, filter, List.of(types), null);
    }

    /** The same from behind the event with this id. */
    public EventStream watchAfter(String eventId, Filter filter, EventType... types) {
        return new EventStream(transport, filter, List.of(types), eventId);
    }

    private Timer change(Request request) {
        return transport.call(request.ifRevision(revision), Timer.class);
    }
}
