package io.github.timerplatform;

import static io.github.timerplatform.ConformanceTest.map;
import static io.github.timerplatform.Shapes.require;

import io.github.timerplatform.testing.TimerDev;
import io.github.timerplatform.webhook.WebhookAnswer;
import io.github.timerplatform.webhook.WebhookVerifier;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import javax.net.ssl.SSLSession;

/** Compares with the results that all SDKs agree on. */
record Vectors(TimerDev dev, FaultyNetwork network) {
    private static final String SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    void check(String name, Json json) throws Exception {
        var vectors = json.members();
        switch (name) {
            case "calls" -> calls(vectors);
            case "durations" -> durations(vectors);
            case "errors" -> errors(vectors);
            case "exact_json" -> exactJson(vectors);
            case "instants" -> instants(vectors);
            case "protocol" -> protocol(vectors);
            case "retries" -> retries(vectors);
            case "retry_after" -> retryAfter(vectors);
            case "signatures" -> signatures(vectors);
            default -> throw new AssertionError("there is no test of these vectors");
        }
    }

    private static Map<String, String> texts(Json json) {
        var texts = new LinkedHashMap<String, String>();
        json.members().forEach((name, value) -> texts.put(name, value.string()));
        return texts;
    }

    private static Clock at(long seconds) {
        return Clock.fixed(Instant.ofEpochSecond(seconds), ZoneOffset.UTC);
    }

    private static byte[] bytes(Json text) {
        return text.string().getBytes(StandardCharsets.UTF_8);
    }

    private void calls(Map<String, Json> vectors) throws Exception {
        for (var vector : vectors.get("cases").elements()) {
            var given = vector.members();
            var headers = texts(given.get("headers"));
            var clock = at(Long.parseLong(headers.get("webhook-timestamp")));
            var verifier = WebhookVerifier.of(SECRET).clock(clock);
            headers.put("webhook-signature", verifier.sign(headers.get("webhook-id"), clock.instant(), bytes(given.get("body"))));
            Shapes.match(given.get("call").value(), Shapes.of(verifier.verify(headers, bytes(given.get("body")))), given.get("name").text());
        }
    }

    private void durations(Map<String, Json> vectors) {
        for (var vector : vectors.get("format").elements()) {
            var duration = Duration.of(vector.members().get("us").number().longValue(), ChronoUnit.MICROS);
            var text = vector.members().get("text").string();
            require(Durations.format(duration).equals(text), duration + " is written " + Durations.format(duration));
            require(Durations.parse(text).equals(duration), text + " is read as " + Durations.parse(text));
        }
        for (var vector : vectors.get("refused").elements()) {
            try {
                var sent = NewTimer.in(Duration.of(vector.number().longValue(), ChronoUnit.MICROS), Callback.http("http://a"));
                throw new AssertionError(vector + " is sent as " + sent);
            } catch (TimerException.Invalid refused) {
                // As it should be.
            }
        }
    }

    private void errors(Map<String, Json> vectors) {
        for (var vector : vectors.get("cases").elements()) {
            var given = vector.members();
            var expected = map(given.get("error").value());
            if (expected.get("message") == null) {
                expected.remove("message");
            }
            try {
                Transport.data(new Answered(given.get("status").number().intValue(), texts(given.get("headers"))), given.get("body").string());
                throw new AssertionError(vector + " is no error");
            } catch (TimerException failure) {
                Shapes.match(expected, Shapes.of(failure), given.get("body").text());
            }
        }
    }

    private void exactJson(Map<String, Json> vectors) {
        for (var vector : vectors.get("texts").elements()) {
            var exact = Json.parse(vector.string());
            var path = "/exact/" + Ids.next();
            var timer = dev.client().timers().create(
                    NewTimer.in(Duration.ofHours(1), Callback.http(dev.receiver() + path).payload(exact)).metadata(exact));
            var read = dev.client().timers().get(timer);
            require(((Callback.Http) read.callbackConfig()).payload().equals(exact), "the payload " + exact + " is " + read);
            require(exact.isNull() ? read.metadata() == null : exact.equals(read.metadata()), "the metadata " + exact + " is " + read);
            dev.advance(Duration.ofHours(1));
            require(dev.waitFor(path).body().equals(exact.text()), exact + " was not delivered so");
        }
    }

    private record At(Instant executeAt) {}

    private void instants(Map<String, Json> vectors) {
        for (var vector : vectors.get("parse").elements()) {
            var read = Json.of(Map.of("execute_at", vector.members().get("text"))).as(At.class).executeAt();
            require(ChronoUnit.MICROS.between(Instant.EPOCH, read) == vector.members().get("us").number().longValue(), vector + " is " + read);
        }
        for (var vector : vectors.get("format").elements()) {
            var at = Instant.EPOCH.plus(vector.members().get("us").number().longValue(), ChronoUnit.MICROS);
            var sent = Json.of(TimerUpdate.of().at(at)).members().get("execute_at").string();
            require(Instant.parse(sent).equals(at), vector + " is sent as " + sent);
        }
    }

    private void protocol(Map<String, Json> vectors) {
        for (var vector : vectors.get("cases").elements()) {
            var given = vector.members();
            var answer = switch (given.get("answer").string()) {
                case "done" -> given.containsKey("next") ? WebhookAnswer.doneAndAgain(Instant.parse(given.get("next").string())) : WebhookAnswer.done();
                case "again" -> WebhookAnswer.again(Instant.parse(given.get("at").string()));
                case "failed" -> WebhookAnswer.failed();
                default -> WebhookAnswer.retryAfter(Duration.ofSeconds(given.get("seconds").number().longValue()));
            };
            var body = answer.body() == null ? null : Json.parse(answer.body()).value();
            Shapes.match(given.get("status").value(), answer.status(), vector.text());
            Shapes.match(given.get("body").value(), body, vector.text());
            var headers = answer.headers().entrySet().stream()
                    .collect(Collectors.toMap(header -> header.getKey().toLowerCase(Locale.ROOT), Map.Entry::getValue));
            Shapes.match(given.get("headers").value(), headers, vector.text());
        }
    }

    private void retries(Map<String, Json> vectors) throws Exception {
        var client = TimerClient.of(network.url(), dev.apiKey());
        for (var vector : vectors.get("cases").elements()) {
            var given = vector.members();
            var args = new Args(map(new Scenario(dev, network).filled(given.get("args").value())));
            var outcome = given.get("outcome").value();
            network.faults(List.of("unreachable".equals(outcome) ? Map.of("do", "drop")
                    : "cut".equals(outcome) ? Map.of("do", "cut")
                    : Map.of("do", "answer", "status", outcome, "body", "")));
            try {
                Calls.make(given.get("call").string(), client, args);
            } catch (TimerException whatever) {
                // It is about the number of requests.
            }
            var count = network.requests().size();
            require((count == 2) == given.get("retried").value().equals(true), vector + " was sent " + count + " times");
        }
    }

    private void retryAfter(Map<String, Json> vectors) {
        for (var vector : vectors.get("cases").elements()) {
            var given = vector.members();
            var wait = Transport.retryAfter(given.get("value").string(), at(given.get("now").number().longValue()));
            Shapes.match(given.get("ms").value(), wait == null ? null : wait.toMillis(), vector.text());
        }
    }

    private void signatures(Map<String, Json> vectors) throws Exception {
        for (var vector : vectors.get("sign").elements()) {
            var given = vector.members();
            var at = Instant.ofEpochSecond(given.get("timestamp").number().longValue());
            var signature = WebhookVerifier.of(given.get("secret").string()).sign(given.get("id").string(), at, bytes(given.get("body")));
            Shapes.match(given.get("signature").string(), signature, vector.text());
        }
        for (var vector : vectors.get("verify").elements()) {
            var given = vector.members();
            var expected = given.containsKey("reason") ? given.get("reason").string() : "valid";
            Shapes.match(expected, verified(given), vector.text());
        }
        for (var vector : vectors.get("bad_secrets").elements()) {
            try {
                WebhookVerifier.of(vector.string());
                throw new AssertionError(vector + " is taken for a secret");
            } catch (IllegalArgumentException refused) {
                // As it should be.
            }
        }
    }

    private static String verified(Map<String, Json> given) {
        try {
            var secrets = given.get("secrets").elements().stream().map(Json::string).toArray(String[]::new);
            WebhookVerifier.of(secrets)
                    .tolerance(Duration.ofSeconds(given.get("tolerance_seconds").number().longValue()))
                    .clock(at(given.get("now").number().longValue()))
                    .verify(texts(given.get("headers")), bytes(given.get("body")));
            return "valid";
        } catch (WebhookVerifier.NotGenuine refused) {
            return refused.reason().name().toLowerCase(Locale.ROOT);
        } catch (IllegalArgumentException noSecret) {
            return "secret";
        }
    }

    /** An answer that came from nowhere. */
    private record Answered(int statusCode, Map<String, String> given) implements HttpResponse<Void> {
        @Override
        public HttpHeaders headers() {
            return HttpHeaders.of(given.entrySet().stream().collect(Collectors.toMap(Map.Entry::getKey, header -> List.of(header.getValue()))), (name, value) -> true);
        }

        @Override
        public HttpRequest request() {
            return null;
        }

        @Override
        public Optional<HttpResponse<Void>> previousResponse() {
            return Optional.empty();
        }

        @Override
        public Void body() {
            return null;
        }

        @Override
        public Optional<SSLSession> sslSession() {
            return Optional.empty();
        }

        @Override
        public URI uri() {
            return null;
        }

        @Override
        public HttpClient.Version version() {
            return HttpClient.Version.HTTP_1_1;
        }
    }
}
