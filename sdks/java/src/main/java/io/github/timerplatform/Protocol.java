package io.github.timerplatform;

import java.util.Locale;

/** What the answer of an HTTP receiver means: any 2xx is success, or its body says when to call again. */
public enum Protocol {
    WEBHOOK,
    TIMER;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
