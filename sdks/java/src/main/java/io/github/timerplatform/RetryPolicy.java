package io.github.timerplatform;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * How often and when a failed call is made again. What is null has the default of the service.
 *
 * @param maxRetries 3 unless given
 * @param initialInterval 30 s unless given
 * @param backoffMultiplier 2 unless given
 * @param maxInterval 10 min unless given
 * @param maxDuration no attempt starts later than this after the timer was due
 */
public record RetryPolicy(
        Integer maxRetries, Duration initialInterval, Double backoffMultiplier, Duration maxInterval, Duration maxDuration) {
    /** So many retries, with the intervals of the service. */
    public static RetryPolicy retries(int maxRetries) {
        return new RetryPolicy(maxRetries, null, null, null, null);
    }

    /** The pauses between attempts: the first, by how much each is longer than the one before, and the longest. */
    public RetryPolicy intervals(Duration initial, double multiplier, Duration max) {
        return new RetryPolicy(maxRetries, initial, multiplier, max, maxDuration);
    }

    public RetryPolicy maxDuration(Duration maxDuration) {
        return new RetryPolicy(maxRetries, initialInterval, backoffMultiplier, maxInterval, maxDuration);
    }

    Map<String, Object> members() {
        var members = new LinkedHashMap<String, Object>();
        members.put("max_retries", maxRetries);
        members.put("initial_interval", initialInterval);
        members.put("backoff_multiplier", backoffMultiplier);
        members.put("max_interval", maxInterval);
        members.put("max_duration", maxDuration);
        members.values().removeIf(value -> value == null);
        return members;
    }
}
