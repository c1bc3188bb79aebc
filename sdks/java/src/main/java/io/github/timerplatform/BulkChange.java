package io.github.timerplatform;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A change of every timer that matches.
 *
 * @param set the new due times, for {@link BulkAction#RESCHEDULE} only
 * @param expectedMax if more match, none is changed and it is a {@link TimerException.Conflict}
 */
public record BulkChange(BulkAction action, Filter filter, Reschedule set, long expectedMax) {
    public static BulkChange of(BulkAction action, Filter filter, long expectedMax) {
        return new BulkChange(action, filter, null, expectedMax);
    }

    public static BulkChange reschedule(Reschedule set, Filter filter, long expectedMax) {
        return new BulkChange(BulkAction.RESCHEDULE, filter, set, expectedMax);
    }

    /** New due times. */
    public record Reschedule(String name, Object value) {
        /** The same instant for all of them. */
        public static Reschedule at(Instant at) {
            return new Reschedule("execute_at", at);
        }

        /** So much later than each is due, or earlier if it is negative. */
        public static Reschedule shift(Duration shift) {
            return new Reschedule("shift", (shift.isNegative() ? "-" : "+") + Durations.format(shift.abs()));
        }

        /** Evenly over a time from now. */
        public static Reschedule spread(Duration over) {
            return new Reschedule("spread", over);
        }
    }

    /**
     * What was changed.
     *
     * @param operation changes more than 1,000 timers in the background; null for fewer
     */
    public record Result(long changed, long skipped, Operations.Operation operation) {}

    /** What a dry run met, with the first timers as examples. */
    public record Preview(long matched, boolean matchedIsEstimate, Map<Status, Long> byStatus, List<Timer> examples) {}

    Map<String, Object> body(boolean dryRun) {
        var body = new LinkedHashMap<String, Object>();
        body.put("action", action);
        body.put("filter", filter.object());
        if (set != null) {
            body.put("set", Map.of(set.name(), set.value()));
        }
        if (dryRun) {
            body.put("dry_run", true);
        } else {
            body.put("expected_max", expectedMax);
        }
        return body;
    }
}
