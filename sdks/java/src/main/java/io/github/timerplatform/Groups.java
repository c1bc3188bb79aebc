package io.github.timerplatform;

import java.util.Map;

/** Timers that belong together. */
public final class Groups {
    private final Transport transport;

    Groups(Transport transport) {
        this.transport = transport;
    }

    /** How many timers of a group there are. */
    public record GroupCount(String namespace, String group, long total, boolean totalIsEstimate, Map<Status, Long> byStatus) {}

    /** Counts the timers of a group by their status. */
    public GroupCount count(String namespace, String group) {
        return transport.call(Request.get(path(namespace, group)), GroupCount.class);
    }

    /** Cancels all timers of a group that have not ended. */
    public Timers.Canceled cancel(String namespace, String group) {
        return transport.call(Request.delete(path(namespace, group)), Timers.Canceled.class);
    }

    private static String path(String namespace, String group) {
        return "/groups/" + Request.encoded(namespace) + "/" + Request.encoded(group);
    }
}
