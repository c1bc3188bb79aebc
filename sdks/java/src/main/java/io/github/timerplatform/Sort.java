package io.github.timerplatform;

import java.util.Locale;

/** By which time a list is sorted. */
public enum Sort {
    CREATED_AT,
    EXECUTE_AT;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
