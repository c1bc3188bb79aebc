package io.github.timerplatform;

import java.util.Locale;

/** One table, one array, or one object a line. */
public enum ExportFormat {
    CSV,
    JSON,
    NDJSON;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
