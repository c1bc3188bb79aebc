package io.github.timerplatform;

import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/** Calls one service. It may be used by many threads at once, and needs no closing. */
public final class TimerClient {
    /** The version of this library, which is that of the service it was made with. */
    public static final String VERSION = "0.1.0";

    private final Transport transport;

    private TimerClient(Settings settings) {
        transport = new Transport(settings);
    }

    record Settings(String url, String apiKey, Duration timeout, int retries, Supplier<Map<String, String>> trace) {}

    /** A client by {@code TIMER_URL}, and {@code TIMER_API_KEY} or {@code API_KEY}. It opens no connection. */
    public static TimerClient fromEnvironment() {
        return builder().build();
    }

    public static TimerClient of(String url, String apiKey) {
        return builder().url(url).apiKey(apiKey).build();
    }

    public static Builder builder() {
        return new Builder();
    }

    /** How a client works. What is not given comes from the environment. */
    public static final class Builder {
        private String url = environment("http://127.0.0.1:8080", "TIMER_URL");
        private String apiKey = environment(null, "TIMER_API_KEY", "API_KEY");
        private Duration timeout = Duration.ofSeconds(10);
        private int retries = 3;
        private Supplier<Map<String, String>> trace = Map::of;

        private Builder() {}

        /** The service, with its base path if it has one. */
        public Builder url(String url) {
            this.url = url;
            return this;
        }

        /** The key that is sent as {@code X-API-Key}. */
        public Builder apiKey(String apiKey) {
            this.apiKey = apiKey;
            return this;
        }

        /** Limits a call, all its attempts together; 10 s unless given. */
        public Builder timeout(Duration timeout) {
            this.timeout = timeout;
            return this;
        }

        /** How often an idempotent call is retried at most; 3 unless given. */
        public Builder retries(int retries) {
            this.retries = retries;
            return this;
        }

        /** The trace context that is current: {@code traceparent} and {@code tracestate}, as the propagator of OpenTelemetry writes them. */
        public Builder trace(Supplier<Map<String, String>> trace) {
            this.trace = trace;
            return this;
        }

        /** Throws {@link IllegalArgumentException} if there is no key, or if the URL is none. */
        public TimerClient build() {
            if (apiKey == null || apiKey.isEmpty()) {
                throw new IllegalArgumentException("there is no API key: set TIMER_API_KEY or give one");
            }
            var parsed = URI.create(url);
            if (!List.of("http", "https").contains(String.valueOf(parsed.getScheme())) || parsed.getHost() == null) {
                throw new IllegalArgumentException(url + " is not an http or https URL");
            }
            return new TimerClient(new Settings(url.replaceAll("/+$", ""), apiKey, timeout, retries, trace));
        }

        private static String environment(String otherwise, String... names) {
            for (var name : names) {
                var value = System.getenv(name);
                if (value != null && !value.isEmpty()) {
                    return value;
                }
            }
            return otherwise;
        }
    }

    /** Registers, reads and changes timers. */
    public Timers timers() {
        return new Timers(transport, null);
    }

    /** Timers that belong together. */
    public Groups groups() {
        return new Groups(transport);
    }

    /** Bulk changes that go on in the background. */
    public Operations operations() {
        return new Operations(transport);
    }

    /** API keys that were issued: for the key of the administrator. */
    public Keys keys() {
        return new Keys(transport);
    }

    /** What is due, what was fired, how receivers are and what namespaces have. */
    public Stats stats() {
        return new Stats(transport);
    }

    /**
     * How the service is.
     *
     * @param status {@code up} or {@code degraded}
     * @param database {@code connected} or {@code disconnected}
     */
    public record Health(String status, String database, Instant timestamp) {}

    /** How the service is. One that is degraded answers, too. */
    public Health health() {
        return transport.callEvenIfDegraded(Request.get("/healthz")).as(Health.class);
    }

    /** Throws if the service does not answer. */
    public void ping() {
        transport.call(Request.get("/ping"));
    }

    /**
     * The key of a request.
     *
     * @param id null for the administrator's
     * @param namespaces that it opens; null for all
     */
    public record Caller(boolean administrator, String id, String name, Rights rights, List<String> namespaces) {}

    /** What the key of this client opens. */
    public Caller whoAmI() {
        return transport.call(Request.get("/whoami"), Caller.class);
    }

    /** The nodes that share the work, by the clock of the database. */
    public record Cluster(
            Instant now, List<Node> nodes, List<Shard> shards, double oldestOverdueSeconds, List<ShardMove> moves) {}

    /** A shard that a node has acquired; {@code from} is null where no former owner is known. */
    public record ShardMove(Instant at, int shard, long epoch, String from, String to) {}

    /** One process. */
    public record Node(
            String id,
            String name,
            String version,
            Instant startedAt,
            boolean alive,
            boolean takesShards,
            double leaseSecondsLeft,
            double clockSkewSeconds,
            int shards,
            long inFlight,
            double firesPerSecond) {}

    /** A part of the timers; without an owner it is null. */
    public record Shard(int shard, long epoch, String owner) {}

    /** The nodes that share the work. For the key of the administrator. */
    public Cluster cluster() {
        return transport.call(Request.get("/cluster"), Cluster.class);
    }
}
