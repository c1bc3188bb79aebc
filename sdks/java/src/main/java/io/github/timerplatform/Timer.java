package io.github.timerplatform;

import java.time.Instant;

/**
 * A timer as lists and changes show it.
 *
 * @param key the caller's own id, or null
 * @param group what the timer belongs to, or null
 * @param timeLeft whole seconds until it is due; 0 once that has passed
 * @param executedAt when its last delivery ended, or null
 * @param revision rises with every change by a client but a cancel: see {@link Timers#ifRevision}
 */
public record Timer(
        String id,
        String namespace,
        String key,
        String group,
        Status status,
        CallbackType callbackType,
        Instant executeAt,
        long timeLeft,
        Instant executedAt,
        Instant createdAt,
        Instant updatedAt,
        long revision)
        implements Ref {
    @Override
    public String path() {
        return Ref.id(id).path();
    }
}
