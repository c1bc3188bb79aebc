package io.github.timerplatform.webhook;

import io.github.timerplatform.Json;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * An answer to a call.
 *
 * @param body null for none
 */
public record WebhookAnswer(int status, Map<String, String> headers, String body) {
    /** Completes a timer. */
    public static WebhookAnswer ok() {
        return new WebhookAnswer(200, Map.of(), null);
    }

    /** Fails an attempt, and asks for the next one in so long, as far as the retry policy of the timer has it. */
    public static WebhookAnswer retryAfter(Duration wait) {
        return new WebhookAnswer(503, Map.of("Retry-After", Long.toString(wait.plusMillis(999).toSeconds())), null);
    }

    /** Completes a timer that speaks the timer protocol. */
    public static WebhookAnswer done() {
        return protocol(true, null);
    }

    /** Completes this run of a timer that speaks the timer protocol, and lets it run again at that time. */
    public static WebhookAnswer doneAndAgain(Instant at) {
        return protocol(true, at);
    }

    /** Postpones a timer that speaks the timer protocol. */
    public static WebhookAnswer again(Instant at) {
        return protocol(false, at);
    }

    /** Fails an attempt of a timer that speaks the timer protocol; its retry policy goes on. */
    public static WebhookAnswer failed() {
        return protocol(false, null);
    }

    private static WebhookAnswer protocol(boolean ok, Instant next) {
        var said = new LinkedHashMap<String, Object>();
        said.put("ok", ok);
        if (next != null) {
            said.put("nextExecuteAt", next);
        }
        return new WebhookAnswer(200, Map.of("Content-Type", "application/json"), Json.of(said).text());
    }
}
