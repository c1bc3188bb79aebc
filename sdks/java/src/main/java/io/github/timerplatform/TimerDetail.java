package io.github.timerplatform;

import java.time.Duration;
import java.time.Instant;

/**
 * A timer with everything that is known about it. What it does not have is null.
 *
 * @param metadata exactly as it was given
 * @param attempt how many deliveries have been started for this due time
 */
public record TimerDetail(
        @JsonBinder.Flattened Timer timer,
        Callback callbackConfig,
        Json metadata,
        String correlationId,
        RetryPolicy retryPolicy,
        Delivery delivery,
        Instant expiresAt,
        Duration expiresAfter,
        Duration postponeMax,
        Callback onSuccess,
        Callback onFailure,
        int attempt,
        String lastError,
        Instant pausedAt,
        String pauseNote) {
    public TimerDetail {
        metadata = metadata == null || metadata.isNull() ? null : metadata;
    }
}
