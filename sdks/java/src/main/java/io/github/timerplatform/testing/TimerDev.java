package io.github.timerplatform.testing;

import io.github.timerplatform.Json;
import io.github.timerplatform.Timer;
import io.github.timerplatform.TimerClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** A service for tests. It runs until it is closed, in a directory of its own. */
public final class TimerDev implements AutoCloseable {
    private static final String WAIT_MAX = "10s";
    private static final long STOP_SECONDS_MAX = 10;
    /** Nothing that configures the service: a test must not reach the database of a developer. */
    private static final Set<String> KEPT = Set.of("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "RUST_LOG");

    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Process process;
    private final Path directory;
    private final Ready ready;
    private volatile Duration ahead = Duration.ZERO;

    private record Ready(String url, String apiKey, String receiver, String signingSecret) {}

    private TimerDev(Process process, Path directory, Ready ready) {
        this.process = process;
        this.directory = directory;
        this.ready = ready;
    }

    /** Runs the binary named by {@code TIMER_BIN}, or {@code timer} on the path. */
    public static TimerDev start() {
        var binary = System.getenv().getOrDefault("TIMER_BIN", "timer");
        try {
            var directory = Files.createTempDirectory("timer-dev");
            directory.toFile().deleteOnExit();
            var log = directory.resolve("timer.log");
            var builder = new ProcessBuilder(binary, "dev", "--port", "0", "--ready-json");
            builder.environment().keySet().retainAll(KEPT);
            var process = builder.directory(directory.toFile()).redirectError(log.toFile()).start();
            var output = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            var line = output.readLine();
            if (line == null) {
                throw new IllegalStateException("`" + binary + " dev` has not started:\n" + Files.readString(log));
            }
            drain(output);
            return new TimerDev(process, directory, Json.parse(line).as(Ready.class));
        } catch (IOException cause) {
            throw new UncheckedIOException("`" + binary + " dev` cannot be run: set TIMER_BIN", cause);
        }
    }

    /** What else it prints must not fill the pipe. */
    private static void drain(BufferedReader output) {
        var thread = new Thread(() -> output.lines().forEach(line -> {}), "timer-dev-output");
        thread.setDaemon(true);
        thread.start();
    }

    public TimerClient client() {
        return TimerClient.of(ready.url(), ready.apiKey());
    }

    public String url() {
        return ready.url();
    }

    public String apiKey() {
        return ready.apiKey();
    }

    /** A URL whose calls the inbox shows, whatever path is added to it. */
    public String receiver() {
        return ready.receiver();
    }

    public String signingSecret() {
        return ready.signingSecret();
    }

    /**
     * What happened while the clock was moved.
     *
     * @param next when the next timer is due; null if none is
     */
    public record Advanced(Instant now, int fired, int completed, int failed, int pending, Instant next) {}

    /** Moves the clock. Everything that becomes due fires in order, and has settled when it returns. */
    public Advanced advance(Duration by) {
        return advance(Map.of("by", by));
    }

    public Advanced advanceTo(Instant at) {
        return advance(Map.of("to", at));
    }

    /** Moves the clock to where the next timer is due. */
    public Advanced advanceToNext() {
        return advance(Map.of("until", "next"));
    }

    /** Moves the clock until no timer is left that waits. */
    public Advanced advanceUntilIdle() {
        return advance(Map.of("until", "idle"));
    }

    private Advanced advance(Map<String, ?> how) {
        var advanced = call("POST", "/dev/clock/advance", how).as(Advanced.class);
        ahead = Duration.between(Instant.now(), advanced.now());
        return advanced;
    }

    /** The time of the service, for a {@code WebhookVerifier}: the calls that it signs are of that time. */
    public InstantSource clock() {
        return () -> Instant.now().plus(ahead);
    }

    /** A call that the receiver got. */
    public record Call(
            long seq,
            Instant at,
            double latenessMs,
            String timerId,
            int attempt,
            String method,
            String path,
            Map<String, String> headers,
            String body,
            boolean signatureValid,
            Long duplicateOf) {}

    private record Calls(List<Call> calls) {}

    /** The calls that a path of the receiver got. */
    public List<Call> inbox(String path) {
        return call("GET", "/dev/inbox?path=" + encoded(path), null).as(Calls.class).calls();
    }

    /** The calls of a timer. */
    public List<Call> inbox(Timer timer) {
        return call("GET", "/dev/inbox?timer=" + timer.id(), null).as(Calls.class).calls();
    }

    /** The first call that a path gets. Throws if none comes within 10 seconds. */
    public Call waitFor(String path) {
        return waitFor(path, 0);
    }

    /** The first call that a path gets after the one with this {@link Call#seq}. */
    public Call waitFor(String path, long after) {
        var query = "?path=" + encoded(path) + (after == 0 ? "" : "&after=" + after) + "&wait=" + WAIT_MAX;
        var calls = call("GET", "/dev/inbox" + query, null).as(Calls.class).calls();
        if (calls.isEmpty()) {
            throw new AssertionError("no call of " + path + " has come within " + WAIT_MAX);
        }
        return calls.get(0);
    }

    public void clearInbox() {
        call("DELETE", "/dev/inbox", null);
    }

    /**
     * What the receiver answers to the calls of a path; without one it answers 200.
     *
     * @param times how often; 0 for always
     * @param hang whether it answers nothing at all
     */
    public record Answer(String path, int status, Map<String, String> headers, String body, Duration delay, int times, boolean hang) {
        public static Answer of(String path, int status) {
            return new Answer(path, status, Map.of(), "", Duration.ZERO, 0, false);
        }

        public Answer times(int times) {
            return new Answer(path, status, headers, body, delay, times, hang);
        }

        private Map<String, Object> members() {
            var members = new LinkedHashMap<String, Object>(
                    Map.of("path", path, "status", status, "headers", headers, "body", body, "delay", delay, "hang", hang));
            if (times > 0) {
                members.put("times", times);
            }
            return members;
        }
    }

    /** Replaces all answers of the receiver. */
    public void answers(Answer... answers) {
        call("PUT", "/dev/inbox/answers", Map.of("answers", Arrays.stream(answers).map(Answer::members).toList()));
    }

    private Json call(String method, String path, Object body) {
        var publisher = body == null
                ? HttpRequest.BodyPublishers.noBody()
                : HttpRequest.BodyPublishers.ofString(Json.of(body).text());
        var request = HttpRequest.newBuilder(URI.create(ready.url() + path))
                .method(method, publisher)
                .header("X-API-Key", ready.apiKey())
                .header("Content-Type", "application/json")
                .build();
        try {
            var response = http.send(request, HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new IllegalStateException(method + " " + path + ": " + response.body());
            }
            return Json.parse(response.body()).members().get("data");
        } catch (IOException cause) {
            throw new UncheckedIOException(cause);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    /** Ends the service, and removes its directory. */
    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
            try (var files = Files.walk(directory)) {
                for (var file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.deleteIfExists(file);
                }
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } catch (IOException cause) {
            throw new UncheckedIOException(cause);
        }
    }
}
