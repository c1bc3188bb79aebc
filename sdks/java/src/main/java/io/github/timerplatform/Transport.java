package io.github.timerplatform;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.InstantSource;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/** Makes calls: one request, whatever the number of its attempts. */
final class Transport {
    private static final Duration BACKOFF_BASE = Duration.ofMillis(100);
    private static final Duration BACKOFF_MAX = Duration.ofSeconds(2);
    private static final Pattern SECONDS = Pattern.compile("[0-9]{1,9}");

    private final HttpClient http;
    private final TimerClient.Settings settings;

    Transport(TimerClient.Settings settings) {
        this.settings = settings;
        http = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .connectTimeout(settings.timeout())
                .build();
    }

    /** The data of the answer. */
    Json call(Request request) {
        var deadline = deadline();
        return repeat(request, deadline, () -> {
            var response = send(request, BodyHandlers.ofByteArray(), deadline);
            return data(response, new String(response.body(), StandardCharsets.UTF_8));
        });
    }

    /** The data of the answer of a service that is up or degraded, which is a 500 with data. */
    Json callEvenIfDegraded(Request request) {
        var deadline = deadline();
        return repeat(request, deadline, () -> {
            var response = send(request, BodyHandlers.ofByteArray(), deadline);
            var text = new String(response.body(), StandardCharsets.UTF_8);
            var data = envelope(text).getOrDefault("data", Json.NULL);
            return response.statusCode() == 500 && !data.isNull() ? data : data(response, text);
        });
    }

    <T extends Record> T call(Request request, Class<T> type) {
        var data = call(request);
        try {
            return data.as(type);
        } catch (IllegalArgumentException cause) {
            throw new TimerException.Unexpected("the answer cannot be read", TimerException.Details.NONE, cause);
        }
    }

    /** The body of the answer, unread: for streams and exports, which may take longer than the timeout. */
    InputStream open(Request request) {
        var deadline = deadline();
        return repeat(request, deadline, () -> {
            var response = send(request, BodyHandlers.ofInputStream(), deadline);
            if (response.statusCode() == 200) {
                return response.body();
            }
            try (var body = response.body()) {
                throw refusal(response, new String(body.readAllBytes(), StandardCharsets.UTF_8));
            } catch (IOException cause) {
                throw new TimerException.Unreachable("the answer ended too early", cause);
            }
        });
    }

    /** When the call must have ended, by the monotonic clock. */
    private long deadline() {
        return System.nanoTime() + settings.timeout().toNanos();
    }

    /** Makes attempts until one succeeds, fails for good, or there is no time or no retry left. */
    private <T> T repeat(Request request, long deadline, Supplier<T> attempt) {
        for (var retry = 0; ; retry++) {
            try {
                return attempt.get();
            } catch (TimerException failure) {
                var wait = jitter(retry);
                if (failure.retryAfter() != null && failure.retryAfter().compareTo(wait) > 0) {
                    wait = failure.retryAfter();
                }
                var isRetried = request.idempotent() && failure.isTemporary() && retry < settings.retries();
                if (!isRetried || wait.toNanos() > deadline - System.nanoTime() || !sleep(wait)) {
                    throw failure;
                }
            }
        }
    }

    /** Full jitter: clients that failed together do not come back together. */
    static Duration jitter(int retry) {
        var most = Math.min(BACKOFF_BASE.toMillis() << Math.min(retry, 16), BACKOFF_MAX.toMillis());
        return Duration.ofMillis(ThreadLocalRandom.current().nextLong(most));
    }

    /** Whether it was slept through. */
    static boolean sleep(Duration wait) {
        try {
            Thread.sleep(wait.toMillis());
            return true;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private <T> HttpResponse<T> send(Request request, BodyHandler<T> handler, long deadline) {
        var answer = http.sendAsync(built(request), handler);
        try {
            return answer.get(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (ExecutionException failure) {
            throw new TimerException.Unreachable("the service cannot be reached: " + failure.getCause(), failure.getCause());
        } catch (TimeoutException late) {
            answer.cancel(true);
            throw new TimerException.Unreachable("the service has not answered in time", late);
        } catch (InterruptedException interrupted) {
            answer.cancel(true);
            Thread.currentThread().interrupt();
            throw new TimerException.Unreachable("interrupted", interrupted);
        }
    }

    private HttpRequest built(Request request) {
        var body = request.body() == null
                ? HttpRequest.BodyPublishers.noBody()
                : HttpRequest.BodyPublishers.ofString(request.body());
        var builder = HttpRequest.newBuilder(URI.create(settings.url() + request.target()))
                .method(request.method(), body)
                .header("X-API-Key", settings.apiKey())
                .header("User-Agent", "timer-java/" + TimerClient.VERSION)
                .header("Accept", request.accept());
        if (request.body() != null) {
            builder.header("Content-Type", "application/json");
        }
        if (request.revision() != null) {
            builder.header("If-Match", '"' + request.revision().toString() + '"');
        }
        settings.trace().get().forEach(builder::header);
        return builder.build();
    }

    static Json data(HttpResponse<?> response, String text) {
        var envelope = envelope(text);
        if (response.statusCode() / 100 == 2 && envelope.getOrDefault("code", Json.NULL).text().equals("0")) {
            return envelope.getOrDefault("data", Json.NULL);
        }
        throw refusal(response, text);
    }

    /** The error of an answer. One that is no envelope comes from something in between. */
    static TimerException refusal(HttpResponse<?> response, String text) {
        var envelope = envelope(text);
        var code = envelope.get("code");
        var retryAfter = response.headers().firstValue("retry-after").map(value -> retryAfter(value, InstantSource.system())).orElse(null);
        var requestId = response.headers().firstValue("x-request-id").orElse(null);
        var number = code == null ? 0 : code.number().intValue();
        var details = new TimerException.Details(response.statusCode(), number, null, requestId, retryAfter);
        var message = code == null
                ? "the answer with status " + response.statusCode() + " is none of the service"
                : envelope.get("message").string();
        return TimerException.of(message, details, null);
    }

    /** The members of an envelope; none if it is not one. */
    private static Map<String, Json> envelope(String text) {
        try {
            return Json.parse(text).members();
        } catch (IllegalArgumentException malformed) {
            return Map.of();
        }
    }

    /** Seconds or an HTTP date; what is neither asks for nothing. */
    static Duration retryAfter(String text, InstantSource clock) {
        var value = text.strip();
        if (SECONDS.matcher(value).matches()) {
            return Duration.ofSeconds(Long.parseLong(value));
        }
        try {
            var at = ZonedDateTime.parse(value, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
            var wait = Duration.between(clock.instant(), at);
            return wait.isNegative() ? Duration.ZERO : wait;
        } catch (DateTimeParseException malformed) {
            return null;
        }
    }
}
