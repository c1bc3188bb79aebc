package io.github.timerplatform;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** What a create gives and an update changes. */
abstract sealed class TimerFields<T extends TimerFields<T>> extends Fields<T> permits NewTimer, TimerUpdate {
    TimerFields(Map<String, Object> members) {
        super(members);
    }

    /** What the timer belongs to: timers of a group are counted and canceled together. */
    public T group(String group) {
        return with("group", group);
    }

    /** Anything that {@link Json#of} writes; kept and returned exactly. */
    public T metadata(Object metadata) {
        return with("metadata", metadata == null ? null : Json.of(metadata));
    }

    /** Carried to the call and the logs. */
    public T correlationId(String correlationId) {
        return with("correlation_id", correlationId);
    }

    public T retryPolicy(RetryPolicy policy) {
        return with("retry_policy", policy == null ? null : policy.members());
    }

    public T delivery(Delivery delivery) {
        return with("delivery", delivery);
    }

    /** No attempt starts from this instant on: the timer expires instead. */
    public T expiresAt(Instant at) {
        return with("expires_at", at);
    }

    /** The same, counted from the due time, with which it moves. */
    public T expiresAfter(Duration span) {
        return with("expires_after", span);
    }

    /** How long after its first registration it may be postponed to at most. */
    public T postponeMax(Duration span) {
        return with("postpone_max", span);
    }

    /** Called once the timer has completed. */
    public T onSuccess(Callback callback) {
        return with("on_success", callback == null ? null : callback.members());
    }

    /** Called once the timer has failed or expired. */
    public T onFailure(Callback callback) {
        return with("on_failure", callback == null ? null : callback.members());
    }
}
