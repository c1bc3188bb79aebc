package io.github.timerplatform;

import java.util.Locale;

/** The earliest or the latest first. */
public enum Order {
    ASC,
    DESC;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
