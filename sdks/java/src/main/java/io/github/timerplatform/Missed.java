package io.github.timerplatform;

import java.util.Locale;

/** What becomes of a timer that was due while it was paused. */
public enum Missed {
    FIRE,
    EXPIRE;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
