package io.github.timerplatform;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** A timer to be created: when, and what it calls. */
public final class NewTimer extends TimerFields<NewTimer> {
    private NewTimer(Map<String, Object> members) {
        super(members);
    }

    /** Due so long from now. */
    public static NewTimer in(Duration delay, Callback callback) {
        return new NewTimer(Map.of("delay", Durations.format(delay))).with("callback", callback.members());
    }

    /** Due at this instant. */
    public static NewTimer at(Instant at, Callback callback) {
        return new NewTimer(Map.of("execute_at", at)).with("callback", callback.members());
    }

    @Override
    NewTimer of(Map<String, Object> members) {
        return new NewTimer(members);
    }

    /**
     * An id of your own making, a UUID of version 7. Without an id and a key the client makes one, so that it can repeat the request.
     */
    public NewTimer id(String id) {
        return with("id", id);
    }

    /** The scope in which keys are unique; {@code default} unless given. */
    public NewTimer namespace(String namespace) {
        return with("namespace", namespace);
    }

    /** Your own id of the timer: the same namespace and key are always the same timer. */
    public NewTimer key(String key) {
        return with("key", key);
    }

    /** With a key only. */
    public NewTimer onConflict(OnConflict onConflict) {
        return with("on_conflict", onConflict);
    }

    NewTimer identified() {
        return members().get("id") == null && members().get("key") == null ? id(Ids.next()) : this;
    }
}
