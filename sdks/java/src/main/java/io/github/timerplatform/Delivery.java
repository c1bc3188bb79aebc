package io.github.timerplatform;

import java.util.Locale;

/** What happens to a call of which a crash leaves open whether it was made: it is made again, or the timer fails. */
public enum Delivery {
    AT_LEAST_ONCE,
    AT_MOST_ONCE;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
