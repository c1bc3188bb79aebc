package io.github.timerplatform.webhook;

import io.github.timerplatform.Json;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Map;

/**
 * A call of a timer. What it does not have is null.
 *
 * @param id the {@code webhook-id}: the same for every attempt of one due time, so that repetitions can be dropped
 * @param sentAt the {@code webhook-timestamp}, which has whole seconds
 * @param traceParent continues the trace of the call, with {@code traceState}
 * @param body exactly as it was received
 */
public record WebhookCall(
        String id,
        String timerId,
        String namespace,
        int attempt,
        Instant scheduledAt,
        Instant sentAt,
        String correlationId,
        String traceParent,
        String traceState,
        String body) {
    static WebhookCall of(Map<String, String> headers, byte[] body, Instant sentAt) {
        var attempt = headers.getOrDefault("x-timer-attempt", "");
        var scheduledAt = headers.get("x-timer-scheduled-at");
        return new WebhookCall(
                headers.get("webhook-id"),
                headers.get("x-timer-id"),
                headers.get("x-timer-namespace"),
                attempt.matches("[0-9]{1,9}") ? Integer.parseInt(attempt) : 0,
                scheduledAt == null ? null : OffsetDateTime.parse(scheduledAt).toInstant(),
                sentAt,
                headers.get("x-correlation-id"),
                headers.get("traceparent"),
                headers.get("tracestate"),
                new String(body, StandardCharsets.UTF_8));
    }

    /** How long after its due time the call was sent, never below 0. */
    public Duration lateness() {
        var late = scheduledAt == null ? Duration.ZERO : Duration.between(scheduledAt, sentAt);
        return late.isNegative() ? Duration.ZERO : late;
    }

    /** The payload: the body, or what stands there as payload in the timer protocol. Null if the body is empty. */
    public Json payload() {
        if (body.isEmpty()) {
            return null;
        }
        var json = Json.parse(body);
        if (body.stripLeading().startsWith("{")) {
            var members = json.members();
            if (timerId != null && Json.of(timerId).equals(members.get("timerId"))) {
                return members.get("payload");
            }
        }
        return json;
    }
}
