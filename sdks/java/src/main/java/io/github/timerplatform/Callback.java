package io.github.timerplatform;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** What a due timer calls. */
public sealed interface Callback {
    /** A POST to a URL. */
    static Http http(String url) {
        return new Http(url, Map.of(), null, null, null);
    }

    /** A message on a NATS subject. */
    static Nats nats(String topic) {
        return new Nats(topic, null, Map.of(), null, false);
    }

    /** Its members with the names of the service. */
    Map<String, Object> members();

    /**
     * A POST to a URL.
     *
     * @param payload the body of the call, byte for byte; null for none
     * @param timeout how long the receiver may take; null for 30 s
     * @param protocol null for {@link Protocol#WEBHOOK}
     */
    record Http(String url, Map<String, String> headers, Json payload, Duration timeout, Protocol protocol) implements Callback {
        public Http {
            headers = headers == null ? Map.of() : Map.copyOf(headers);
        }

        public Http header(String name, String value) {
            return new Http(url, added(headers, name, value), payload, timeout, protocol);
        }

        /** Anything that {@link Json#of} writes. */
        public Http payload(Object payload) {
            return new Http(url, headers, Json.of(payload), timeout, protocol);
        }

        public Http timeout(Duration timeout) {
            return new Http(url, headers, payload, timeout, protocol);
        }

        public Http protocol(Protocol protocol) {
            return new Http(url, headers, payload, timeout, protocol);
        }

        @Override
        public Map<String, Object> members() {
            var members = new LinkedHashMap<String, Object>(Map.of("type", CallbackType.HTTP));
            given(members, "url", url);
            given(members, "headers", headers);
            given(members, "payload", payload);
            given(members, "timeout", timeout);
            given(members, "protocol", protocol);
            return members;
        }
    }

    /**
     * A message on a NATS subject.
     *
     * @param key travels as the header {@code X-Timer-Key}
     * @param jetstream whether a stream must have stored the message before it counts as delivered
     */
    record Nats(String topic, String key, Map<String, String> headers, Json payload, boolean jetstream) implements Callback {
        public Nats {
            headers = headers == null ? Map.of() : Map.copyOf(headers);
        }

        public Nats key(String key) {
            return new Nats(topic, key, headers, payload, jetstream);
        }

        public Nats header(String name, String value) {
            return new Nats(topic, key, added(headers, name, value), payload, jetstream);
        }

        /** Anything that {@link Json#of} writes. */
        public Nats payload(Object payload) {
            return new Nats(topic, key, headers, Json.of(payload), jetstream);
        }

        public Nats jetstream(boolean jetstream) {
            return new Nats(topic, key, headers, payload, jetstream);
        }

        @Override
        public Map<String, Object> members() {
            var members = new LinkedHashMap<String, Object>(Map.of("type", CallbackType.NATS));
            given(members, "topic", topic);
            given(members, "key", key);
            given(members, "headers", headers);
            given(members, "payload", payload);
            given(members, "jetstream", jetstream ? true : null);
            return members;
        }
    }

    /** The event of a timer that came through the NATS command consumer. It cannot be asked for over HTTP. */
    record Event() implements Callback {
        @Override
        public Map<String, Object> members() {
            return Map.of("type", CallbackType.EVENT);
        }
    }

    private static Map<String, String> added(Map<String, String> headers, String name, String value) {
        var more = new LinkedHashMap<>(headers);
        more.put(name, value);
        return more;
    }

    private static void given(Map<String, Object> members, String name, Object value) {
        if (value != null && !(value instanceof Map<?, ?> map && map.isEmpty())) {
            members.put(name, value);
        }
    }

    /** Reads the callback of an answer. */
    static Callback from(Json json) {
        var type = json.members().get("type").string();
        return switch (type) {
            case "http" -> json.as(Http.class);
            case "nats" -> json.as(Nats.class);
            default -> new Event();
        };
    }
}
