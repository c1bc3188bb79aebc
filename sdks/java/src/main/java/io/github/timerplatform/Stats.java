package io.github.timerplatform;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What is due, what was fired, how receivers are and what namespaces have. */
public final class Stats {
    private final Transport transport;

    Stats(Transport transport) {
        this.transport = transport;
    }

    /** A period in buckets: sixty of a minute unless given otherwise. */
    public static final class Period extends Fields<Period> {
        private Period(Map<String, Object> members) {
            super(members);
        }

        public static Period usual() {
            return new Period(Map.of());
        }

        @Override
        Period of(Map<String, Object> members) {
            return new Period(members);
        }

        public Period from(Instant from) {
            return with("from", from);
        }

        public Period to(Instant to) {
            return with("to", to);
        }

        public Period step(Duration step) {
            return with("step", Durations.format(step));
        }

        public Period namespace(String... namespaces) {
            return with("namespace", String.join(",", namespaces));
        }

        private Map<String, String> query() {
            var query = new LinkedHashMap<String, String>();
            members().forEach((name, value) -> query.put(name, value.toString()));
            return query;
        }
    }

    public record DueBucket(Instant at, long pending) {}

    /** What is pending, by the time at which it is due. */
    public record Due(
            Instant from, Instant to, long stepSeconds, List<DueBucket> buckets, boolean pendingIsEstimate, boolean complete) {}

    public Due due(Period period) {
        return transport.call(Request.get("/stats/due", period.query()), Due.class);
    }

    /** A span of time. Latenesses are null where nothing was fired. */
    public record FiredBucket(
            Instant at,
            long created,
            long fired,
            long completed,
            long failed,
            long retried,
            Double latenessP50Ms,
            Double latenessP99Ms,
            Double latenessMaxMs) {}

    /** What happened, by the time at which it did. */
    public record Fired(Instant from, Instant to, long stepSeconds, List<FiredBucket> buckets) {}

    public Fired fired(Period period) {
        return transport.call(Request.get("/stats/fired", period.query()), Fired.class);
    }

    /** A receiver, as all nodes saw it. */
    public record Destination(
            String destination,
            DestinationHealth health,
            int inFlight,
            int ok1m,
            int failed1m,
            int ok10m,
            int failed10m,
            Double p50Ms,
            Double p99Ms,
            int failuresInARow,
            String lastError,
            int pendingRetries) {}

    /** The receivers that were called of late. */
    public record Destinations(List<Destination> destinations, boolean complete) {}

    /** How receivers are; of all namespaces that the key opens unless some are named. */
    public Destinations destinations(String... namespaces) {
        var period = namespaces.length == 0 ? Period.usual() : Period.usual().namespace(namespaces);
        return transport.call(Request.get("/destinations", period.query()), Destinations.class);
    }

    /** The scope of keys, and a tenant. */
    public record Namespace(
            String name,
            long pending,
            long failed,
            Instant oldestOverdue,
            boolean hasRetryPolicy,
            RetryPolicy retryPolicy,
            boolean hasSigningSecret,
            boolean hasSubjects) {}

    /** Namespaces with what they have. */
    public record Namespaces(List<Namespace> namespaces, boolean pendingIsEstimate, boolean failedIsEstimate, boolean complete) {}

    public Namespaces namespaces() {
        return transport.call(Request.get("/namespaces"), Namespaces.class);
    }
}
