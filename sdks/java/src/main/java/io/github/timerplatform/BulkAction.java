package io.github.timerplatform;

import java.util.Locale;

/** What a bulk change does to every timer that it concerns. */
public enum BulkAction {
    CANCEL,
    FIRE,
    RETRY,
    RESCHEDULE,
    PAUSE,
    RESUME,
    EXPIRE,
    DELETE;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
