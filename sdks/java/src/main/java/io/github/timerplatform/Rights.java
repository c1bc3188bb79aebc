package io.github.timerplatform;

import java.util.Locale;

/** What a key may do: read, or also change. */
public enum Rights {
    READ,
    WRITE;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
