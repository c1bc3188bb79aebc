package io.github.timerplatform;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/**
 * A change of a pending or paused timer. What is not given stays as it is; {@code null} clears the group, metadata, correlation id,
 * retry policy, expiry, limit of postponing or a follow-up.
 */
public final class TimerUpdate extends TimerFields<TimerUpdate> {
    private TimerUpdate(Map<String, Object> members) {
        super(members);
    }

    /** An update that changes nothing yet. */
    public static TimerUpdate of() {
        return new TimerUpdate(Map.of());
    }

    @Override
    TimerUpdate of(Map<String, Object> members) {
        return new TimerUpdate(members);
    }

    /** Due at this instant instead. */
    public TimerUpdate at(Instant at) {
        return with("execute_at", at);
    }

    /** Due so long from now instead. */
    public TimerUpdate in(Duration delay) {
        return with("delay", Durations.format(delay));
    }

    /** The new callback, whole. */
    public TimerUpdate callback(Callback callback) {
        return with("callback", callback.members());
    }
}
