package io.github.timerplatform;

import java.util.Locale;

/** What happened to a timer. */
public enum EventType {
    CREATED,
    CHANGED,
    ATTEMPT,
    FINISHED;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
