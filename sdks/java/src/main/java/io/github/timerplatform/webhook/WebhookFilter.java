package io.github.timerplatform.webhook;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;

/**
 * Passes on verified calls only, and answers every other one with 401. What is behind it can read the body again, and finds the
 * {@link WebhookCall} in the attribute {@link #CALL}. With {@link SeenCalls}, a call that was answered with 2xx before gets a 200 and is not passed on.
 */
public final class WebhookFilter implements Filter {
    /** The attribute of the request that has the call. */
    public static final String CALL = WebhookCall.class.getName();

    /** More than the largest payload with what the timer protocol adds. */
    private static final int BODY_BYTES_MAX = 1 << 20;

    private final WebhookVerifier verifier;
    private final SeenCalls seen;

    public WebhookFilter(WebhookVerifier verifier) {
        this(verifier, null);
    }

    public WebhookFilter(WebhookVerifier verifier, SeenCalls seen) {
        this.verifier = verifier;
        this.seen = seen;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
        var received = (HttpServletRequest) request;
        var answer = (HttpServletResponse) response;
        var body = received.getInputStream().readNBytes(BODY_BYTES_MAX + 1);
        if (body.length > BODY_BYTES_MAX) {
            answer.sendError(HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE);
            return;
        }
        try {
            passOn(verifier.verify(headers(received), body), new Replayed(received, body), answer, chain);
        } catch (WebhookVerifier.NotGenuine refused) {
            answer.sendError(HttpServletResponse.SC_UNAUTHORIZED);
        }
    }

    private void passOn(WebhookCall call, Replayed request, HttpServletResponse answer, FilterChain chain)
            throws IOException, ServletException {
        if (seen != null && seen.contains(call.id())) {
            answer.setStatus(HttpServletResponse.SC_OK);
            return;
        }
        request.setAttribute(CALL, call);
        chain.doFilter(request, answer);
        if (seen != null && answer.getStatus() / 100 == 2) {
            seen.add(call.id());
        }
    }

    private static HashMap<String, String> headers(HttpServletRequest request) {
        var headers = new HashMap<String, String>();
        for (var name : Collections.list(request.getHeaderNames())) {
            headers.put(name, String.join(" ", Collections.list(request.getHeaders(name))));
        }
        return headers;
    }

    /** A request whose body can be read once more. */
    private static final class Replayed extends HttpServletRequestWrapper {
        private final byte[] body;

        Replayed(HttpServletRequest request, byte[] body) {
            super(request);
            this.body = body;
        }

        @Override
        public ServletInputStream getInputStream() {
            var bytes = new ByteArrayInputStream(body);
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
                public void setReadListener(ReadListener listener) {
                    throw new UnsupportedOperationException("the body is there already");
                }

                @Override
                public int read() {
                    return bytes.read();
                }
            };
        }

        @Override
        public BufferedReader getReader() {
            return new BufferedReader(new InputStreamReader(getInputStream(), StandardCharsets.UTF_8));
        }
    }
}
