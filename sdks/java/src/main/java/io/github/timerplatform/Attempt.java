package io.github.timerplatform;

import java.time.Instant;
import java.util.Map;

/**
 * One delivery of a timer.
 *
 * @param outcome a short name: delivered, timeout, status_5xx and the like
 * @param status of the answer; null if there was none
 * @param node the name of the node that made it; null if it is not known
 * @param answer how it began, where the service keeps it
 */
public record Attempt(int number, Instant startedAt, long tookMs, String outcome, Integer status, String detail, String node, ReceivedAnswer answer) {
    /** How the answer of a receiver began: its body as text, or as bytes if it is not UTF-8. */
    public record ReceivedAnswer(Map<String, String> headers, String body, byte[] bodyBase64) {}
}
