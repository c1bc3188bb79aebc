package io.github.timerplatform;

import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** Which timers are meant: those for which everything holds that is given. */
public final class Filter extends Fields<Filter> {
    private static final String METADATA = "metadata.";

    private Filter(Map<String, Object> members) {
        super(members);
    }

    /** Every timer that the key opens. */
    public static Filter all() {
        return new Filter(Map.of());
    }

    @Override
    Filter of(Map<String, Object> members) {
        return new Filter(members);
    }

    public Filter status(Status... statuses) {
        return with("status", Arrays.stream(statuses).map(Status::toString).collect(Collectors.joining(",")));
    }

    public Filter namespace(String... namespaces) {
        return with("namespace", String.join(",", namespaces));
    }

    public Filter key(String key) {
        return with("key", key);
    }

    public Filter keyPrefix(String prefix) {
        return with("key_prefix", prefix);
    }

    public Filter group(String group) {
        return with("group", group);
    }

    /** Due not earlier. */
    public Filter dueFrom(Instant from) {
        return with("due_from", from);
    }

    /** Due earlier. */
    public Filter dueTo(Instant to) {
        return with("due_to", to);
    }

    public Filter createdFrom(Instant from) {
        return with("created_from", from);
    }

    public Filter createdTo(Instant to) {
        return with("created_to", to);
    }

    public Filter correlationId(String correlationId) {
        return with("correlation_id", correlationId);
    }

    /** {@code host:port}, or a NATS subject. */
    public Filter destination(String destination) {
        return with("destination", destination);
    }

    /** A scalar of the metadata by its dotted path, as it is written. */
    public Filter metadata(String path, String value) {
        return with(METADATA + path, value);
    }

    /** A part of the last error. */
    public Filter error(String part) {
        return with("error", part);
    }

    Map<String, String> query() {
        var query = new LinkedHashMap<String, String>();
        members().forEach((name, value) -> query.put(name, value.toString()));
        return query;
    }

    /** The same as a JSON object, in which conditions about metadata are an object of their own. */
    Map<String, Object> object() {
        var object = new LinkedHashMap<String, Object>();
        var metadata = new LinkedHashMap<String, Object>();
        members().forEach((name, value) -> {
            if (name.startsWith(METADATA)) {
                metadata.put(name.substring(METADATA.length()), value);
            } else {
                object.put(name, value);
            }
        });
        if (!metadata.isEmpty()) {
            object.put("metadata", metadata);
        }
        return object;
    }
}
