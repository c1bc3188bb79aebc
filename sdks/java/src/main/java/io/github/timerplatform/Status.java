package io.github.timerplatform;

import java.util.Locale;

/** The status of a timer. */
public enum Status {
    PENDING,
    EXECUTING,
    COMPLETED,
    FAILED,
    CANCELED,
    PAUSED,
    EXPIRED;

    /** Whether a timer stays so unless a client changes it. */
    public boolean hasEnded() {
        return this == COMPLETED || this == FAILED || this == CANCELED || this == EXPIRED;
    }

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
