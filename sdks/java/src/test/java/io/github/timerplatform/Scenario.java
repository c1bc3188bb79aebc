package io.github.timerplatform;

import static io.github.timerplatform.ConformanceTest.list;
import static io.github.timerplatform.ConformanceTest.map;

import io.github.timerplatform.testing.TimerDev;
import io.github.timerplatform.webhook.WebhookVerifier;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;

/** One scenario on its way. */
final class Scenario {
    private static final Duration STEP_MAX = Duration.ofSeconds(10);
    private static final Pattern VARIABLE = Pattern.compile("\\$\\{([^}]+)}");
    private static final AtomicLong NAMESPACES = new AtomicLong(System.nanoTime());

    private final TimerDev dev;
    private final FaultyNetwork network;
    private final Map<String, Object> values = new HashMap<>();
    private final Map<String, Followed> streams = new HashMap<>();

    private record Followed(EventStream stream, BlockingQueue<Object> events) {}

    Scenario(TimerDev dev, FaultyNetwork network) throws Exception {
        this.dev = dev;
        this.network = network;
        network.clear();
        values.put("namespace", "java-" + NAMESPACES.incrementAndGet());
        values.put("receiver", dev.receiver());
    }

    void step(Json json) throws Exception {
        var step = map(filled(json.value()));
        var result = perform(step);
        if (step.get("as") instanceof String name) {
            values.put(name, result);
        }
        if (step.containsKey("expect")) {
            Shapes.match(step.get("expect"), result, "result");
        }
    }

    private Object perform(Map<String, Object> step) throws Exception {
        for (var entry : step.entrySet()) {
            var value = entry.getValue();
            switch (entry.getKey()) {
                case "call":
                    return call(step);
                case "advance":
                    return Shapes.of(dev.advance(new Args(map(value)).duration("by")));
                case "answers":
                    dev.answers(list(value).stream().map(answer -> new Args(map(answer)).answer()).toArray(TimerDev.Answer[]::new));
                    return null;
                case "inbox":
                    return inbox((String) map(value).get("path"), ((Number) map(value).get("count")).intValue());
                case "verify":
                    return verify(map(value));
                case "watch":
                    watch((String) step.get("as"), new Args(map(value)));
                    return null;
                case "events":
                    return events(streams.get(value), step);
                case "stop":
                    streams.get(value).stream().close();
                    return null;
                case "faults":
                    network.faults(value);
                    return null;
                case "requests":
                    requested(map(value), step.get("headers"));
                    return null;
                case "same":
                    Shapes.match(list(value).get(1), list(value).get(0), "value");
                    return null;
                case "contains":
                    var pair = list(value);
                    Shapes.require(pair.get(0).toString().contains(pair.get(1).toString()), pair.get(1) + " is not in " + pair.get(0));
                    return null;
                default:
            }
        }
        throw new AssertionError("no such step");
    }

    private Object call(Map<String, Object> step) {
        var args = new Args(map(step.get("args")));
        var client = TimerClient.builder()
                .url(network.url())
                .apiKey((String) step.getOrDefault("api_key", dev.apiKey()))
                .timeout(step.get("timeout_ms") instanceof Number millis ? Duration.ofMillis(millis.longValue()) : Duration.ofSeconds(10))
                .trace(() -> args.has("traceparent") ? Map.of("traceparent", args.text("traceparent")) : Map.of())
                .build();
        var started = System.nanoTime();
        Object result = null;
        TimerException failure = null;
        try {
            result = Shapes.of(Calls.make((String) step.get("call"), client, args));
        } catch (TimerException thrown) {
            failure = thrown;
        }
        var took = (System.nanoTime() - started) / 1_000_000;
        Shapes.require(!(step.get("took_ms_min") instanceof Number least) || took >= least.longValue(), "it took only " + took + " ms");
        Shapes.require(!(step.get("took_ms_max") instanceof Number most) || took <= most.longValue(), "it took " + took + " ms");
        if (step.containsKey("error")) {
            Shapes.require(failure != null, "it succeeded with " + result);
            Shapes.match(step.get("error"), Shapes.of(failure), "error");
            return null;
        }
        if (failure != null) {
            throw failure;
        }
        return result;
    }

    private Object inbox(String path, int count) {
        while (true) {
            var calls = dev.inbox(path);
            if (calls.size() >= count) {
                Shapes.require(calls.size() == count, path + " was called " + calls.size() + " times");
                return Shapes.of(calls);
            }
            dev.waitFor(path, calls.isEmpty() ? 0 : calls.get(calls.size() - 1).seq());
        }
    }

    private Object verify(Map<String, Object> call) throws Exception {
        var headers = new LinkedHashMap<String, String>();
        map(call.get("headers")).forEach((name, value) -> headers.put(name, (String) value));
        var at = Instant.ofEpochSecond(Long.parseLong(headers.get("webhook-timestamp")));
        var verifier = WebhookVerifier.of(dev.signingSecret()).clock(Clock.fixed(at, ZoneOffset.UTC));
        return Shapes.of(verifier.verify(headers, ((String) call.getOrDefault("body", "")).getBytes(StandardCharsets.UTF_8)));
    }

    private void watch(String name, Args args) throws Exception {
        var client = TimerClient.of(network.url(), dev.apiKey());
        var types = args.texts("types").stream().map(type -> EventType.valueOf(type.toUpperCase(Locale.ROOT))).toArray(EventType[]::new);
        var stream = args.has("after")
                ? client.timers().watchAfter(args.text("after"), args.filter(), types)
                : client.timers().watch(args.filter(), types);
        var before = network.requests("GET", "/events").size();
        var events = new LinkedBlockingQueue<Object>();
        var reader = new Thread(() -> stream.forEach(event -> events.add(Shapes.of(event))), "events");
        reader.setDaemon(true);
        reader.start();
        streams.put(name, new Followed(stream, events));
        for (var deadline = Instant.now().plus(STEP_MAX); Instant.now().isBefore(deadline); Thread.sleep(10)) {
            var seen = network.requests("GET", "/events");
            if (seen.size() > before && seen.get(seen.size() - 1).get("answered").equals(true)) {
                return;
            }
        }
        throw new AssertionError("the stream was not opened");
    }

    private static Object events(Followed followed, Map<String, Object> step) throws Exception {
        var got = new ArrayList<Object>();
        var expected = step.get("expect") instanceof List<?> list ? list.size() : 0;
        while (got.size() < expected || step.containsKey("until")) {
            var event = followed.events().poll(STEP_MAX.toMillis(), TimeUnit.MILLISECONDS);
            Shapes.require(event != null, "no further event after " + got);
            got.add(event);
            if (step.containsKey("until") && Shapes.matches(step.get("until"), event)) {
                return got;
            }
        }
        return got;
    }

    private void requested(Map<String, Object> given, Object headers) throws Exception {
        var found = network.requests(given.get("method"), given.get("path"));
        Shapes.require(found.size() == ((Number) given.get("count")).intValue(), "there were " + found.size() + " of them");
        if (headers != null) {
            Shapes.match(headers, found.get(found.size() - 1).get("headers"), "headers");
        }
    }

    /** Replaces variables. */
    Object filled(Object value) {
        if (value instanceof String text) {
            var whole = VARIABLE.matcher(text);
            return whole.matches() ? lookup(whole.group(1)) : VARIABLE.matcher(text).replaceAll(found -> String.valueOf(lookup(found.group(1))));
        }
        if (value instanceof List<?> list) {
            var filled = new ArrayList<Object>();
            list.forEach(element -> filled.add(filled(element)));
            return filled;
        }
        if (value instanceof Map<?, ?>) {
            var filled = new LinkedHashMap<String, Object>();
            map(value).forEach((name, member) -> filled.put(name, filled(member)));
            return filled;
        }
        return value;
    }

    private Object lookup(String path) {
        Object found = values;
        for (var part : path.split("\\.")) {
            found = found instanceof List<?> list ? list.get(Integer.parseInt(part)) : found == null ? null : map(found).get(part);
        }
        return found;
    }
}
