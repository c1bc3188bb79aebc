package io.github.timerplatform;

import java.util.Locale;

/** What a create does whose key is taken by a timer with other content. */
public enum OnConflict {
    REJECT,
    REPLACE,
    KEEP,
    POSTPONE,
    EARLIEST,
    LATEST;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
