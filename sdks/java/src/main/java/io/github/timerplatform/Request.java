package io.github.timerplatform;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A request.
 *
 * @param revision that the timer must have
 * @param idempotent whether it is retried: a second request does no harm if the answer to the first was lost
 */
record Request(String method, String target, String body, String accept, Long revision, boolean idempotent) {
    static Request get(String path) {
        return new Request("GET", path, null, "application/json", null, true);
    }

    static Request get(String path, Map<String, String> query) {
        var text = query.entrySet().stream()
                .map(entry -> encoded(entry.getKey()) + "=" + encoded(entry.getValue()))
                .collect(Collectors.joining("&"));
        return get(text.isEmpty() ? path : path + "?" + text);
    }

    static Request delete(String path) {
        return new Request("DELETE", path, null, "application/json", null, true);
    }

    static Request put(String path, Object body) {
        return new Request("PUT", path, JsonWriter.write(body), "application/json", null, true);
    }

    /** A POST that is sent once. */
    static Request post(String path, Object body) {
        return new Request("POST", path, body == null ? null : JsonWriter.write(body), "application/json", null, false);
    }

    /** The same POST with an id or a key in its body, so that it may be retried. */
    Request withIdempotencyKey() {
        return new Request(method, target, body, accept, revision, true);
    }

    Request accepting(String type) {
        return new Request(method, target, body, type, revision, idempotent);
    }

    /** With a revision, the first attempt itself could be what is in the way of the second. */
    Request ifRevision(Long revision) {
        return new Request(method, target, body, accept, revision, idempotent && revision == null);
    }

    /** A part of a path or of a query. */
    static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }
}
