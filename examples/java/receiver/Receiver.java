import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.github.timerplatform.webhook.SeenCalls;
import io.github.timerplatform.webhook.WebhookAnswer;
import io.github.timerplatform.webhook.WebhookCall;
import io.github.timerplatform.webhook.WebhookVerifier;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;

/**
 * A receiver without a framework: it verifies signatures, drops repetitions, and asks for a later attempt while it is closed. In a
 * servlet container, and so in Spring, WebhookFilter does the same.
 *
 * <pre>SIGNING_SECRET=whsec_… java -cp timer-client.jar receiver/Receiver.java 9000</pre>
 */
public final class Receiver {
    private static final WebhookVerifier VERIFIER = WebhookVerifier.of(System.getenv("SIGNING_SECRET"));
    // One process remembers in memory. Several share a table, and record the call in the transaction that does the work.
    private static final SeenCalls SEEN = SeenCalls.inMemory(100_000);

    public static void main(String[] args) throws IOException {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/remind", exchange -> receive(exchange, Receiver::remind));
        server.createContext("/poll", exchange -> receive(exchange, Receiver::poll));
        server.start();
        System.out.println("http://127.0.0.1:" + server.getAddress().getPort());
    }

    /** For timers of the webhook protocol: any 2xx completes them. */
    private static WebhookAnswer remind(WebhookCall call) {
        if (call.body().contains("closed")) {
            return WebhookAnswer.retryAfter(Duration.ofMinutes(1));
        }
        System.out.println(call.timerId() + " attempt " + call.attempt() + ", " + call.lateness() + " late: " + call.body());
        return WebhookAnswer.ok();
    }

    private record Job(String name, boolean done) {}

    /** For timers of the timer protocol: the answer says when to call again. */
    private static WebhookAnswer poll(WebhookCall call) {
        var job = call.payload().as(Job.class);
        if (!job.done()) {
            return WebhookAnswer.again(Instant.now().plus(Duration.ofHours(1)));
        }
        System.out.println(job.name() + " is done");
        return WebhookAnswer.done();
    }

    private static void receive(HttpExchange exchange, Function<WebhookCall, WebhookAnswer> handle) throws IOException {
        var headers = new HashMap<String, String>();
        exchange.getRequestHeaders().forEach((name, values) -> headers.put(name, String.join(" ", values)));
        WebhookAnswer answer;
        try {
            var call = VERIFIER.verify(headers, exchange.getRequestBody().readAllBytes());
            answer = SEEN.contains(call.id()) ? WebhookAnswer.ok() : handle.apply(call);
            if (answer.status() == 200) {
                SEEN.add(call.id());
            }
        } catch (WebhookVerifier.NotGenuine refused) {
            answer = new WebhookAnswer(401, Map.of(), null);
        }
        answer.headers().forEach(exchange.getResponseHeaders()::set);
        var body = answer.body() == null ? new byte[0] : answer.body().getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(answer.status(), body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
