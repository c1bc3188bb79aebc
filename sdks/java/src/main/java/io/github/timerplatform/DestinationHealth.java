package io.github.timerplatform;

import java.util.Locale;

/** How a receiver is. */
public enum DestinationHealth {
    GOOD,
    SLOW,
    FAILING,
    SILENT;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
