package io.github.timerplatform;

import java.util.Locale;

/** Whether an operation goes on, and how it ended. */
public enum OperationState {
    RUNNING,
    DONE,
    STOPPED,
    FAILED;

    /** The name that the service has for it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
