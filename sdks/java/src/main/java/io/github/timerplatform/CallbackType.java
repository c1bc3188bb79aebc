package io.github.timerplatform;

import java.util.Locale;

/** The kind of a callback; {@code EVENT} is that of timers which came through the NATS command consumer. */
public enum CallbackType {
    HTTP,
    NATS,
    EVENT;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
