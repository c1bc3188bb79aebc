package io.github.timerplatform.webhook;

import static org.junit.jupiter.api.Assertions.assertEquals;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayInputStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class WebhookFilterTest {
    private static final WebhookVerifier VERIFIER = WebhookVerifier.of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");

    private final List<String> handled = new ArrayList<>();
    private final int[] status = {0};
    private int next = 200;

    @Test
    void a_verified_call_is_passed_on_with_its_body() throws Exception {
        var filter = new WebhookFilter(VERIFIER);
        assertEquals(200, send(filter, "{}", "{}"));
        assertEquals(401, send(filter, "{}", "[]"));
        assertEquals(List.of("t {}"), handled);
    }

    @Test
    void a_call_is_handled_once_unless_it_failed() throws Exception {
        var filter = new WebhookFilter(VERIFIER, SeenCalls.inMemory(10));
        next = 503;
        assertEquals(503, send(filter, "{}", "{}"));
        next = 200;
        assertEquals(200, send(filter, "{}", "{}"));
        assertEquals(200, send(filter, "{}", "{}"));
        assertEquals(2, handled.size());
    }

    @Test
    void memory_forgets_the_oldest() {
        var seen = SeenCalls.inMemory(2);
        List.of("a", "b", "c").forEach(seen::add);
        assertEquals(List.of(false, true, true), List.of(seen.contains("a"), seen.contains("b"), seen.contains("c")));
    }

    private int send(WebhookFilter filter, String signed, String sent) throws Exception {
        var now = Instant.now();
        var headers = Map.of(
                "Webhook-Id", "call-1",
                "Webhook-Timestamp", Long.toString(now.getEpochSecond()),
                "Webhook-Signature", VERIFIER.sign("call-1", now, signed.getBytes(StandardCharsets.UTF_8)),
                "X-Timer-Id", "t");
        var attributes = new HashMap<String, Object>();
        var request = fake(HttpServletRequest.class, (proxy, method, args) -> switch (method.getName()) {
            case "getInputStream" -> stream(sent);
            case "getHeaderNames" -> Collections.enumeration(headers.keySet());
            case "getHeaders" -> Collections.enumeration(List.of(headers.get(args[0])));
            case "setAttribute" -> attributes.put((String) args[0], args[1]);
            case "getAttribute" -> attributes.get(args[0]);
            default -> throw new UnsupportedOperationException(method.getName());
        });
        var response = fake(HttpServletResponse.class, (proxy, method, args) -> switch (method.getName()) {
            case "setStatus", "sendError" -> {
                status[0] = (int) args[0];
                yield null;
            }
            case "getStatus" -> status[0];
            default -> throw new UnsupportedOperationException(method.getName());
        });
        FilterChain chain = (passed, answer) -> {
            var call = (WebhookCall) passed.getAttribute(WebhookFilter.CALL);
            handled.add(call.timerId() + " " + passed.getReader().readLine());
            ((HttpServletResponse) answer).setStatus(next);
        };
        filter.doFilter(request, response, chain);
        return status[0];
    }

    private static <T> T fake(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    private static ServletInputStream stream(String text) {
        var bytes = new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
        return new ServletInputStream() {
            @Override
            public boolean isFinished() {
                return bytes.available() == 0;
            }

            @Override
            public boolean isReady() {
                return true;
            }

            @Override
            public void setReadListener(ReadListener listener) {}

            @Override
            public int read() {
                return bytes.read();
            }
        };
    }
}
