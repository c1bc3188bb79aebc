package io.github.timerplatform.webhook;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Checks signatures by the Standard Webhooks specification. It may be used by many threads at once. */
public final class WebhookVerifier {
    private static final Duration TOLERANCE = Duration.ofMinutes(5);
    private static final String PREFIX = "whsec_";
    private static final int SECRET_BYTES_MIN = 24;
    private static final int SECRET_BYTES_MAX = 64;
    private static final Pattern TIMESTAMP = Pattern.compile("[0-9]{1,12}");

    private final List<SecretKeySpec> keys;
    private final Duration tolerance;
    private final InstantSource clock;

    private WebhookVerifier(List<SecretKeySpec> keys, Duration tolerance, InstantSource clock) {
        this.keys = keys;
        this.tolerance = tolerance;
        this.clock = clock;
    }

    /**
     * A verifier for secrets ({@code whsec_…}): each text has one, or several separated by commas while one replaces the other. Throws
     * {@link IllegalArgumentException} if there is none, or one that is malformed.
     */
    public static WebhookVerifier of(String... secrets) {
        var keys = Arrays.stream(String.join(",", secrets).split(",", -1)).map(String::strip).map(WebhookVerifier::key).toList();
        return new WebhookVerifier(keys, TOLERANCE, InstantSource.system());
    }

    /** How far the timestamp of a call may lie from now; 5 minutes unless given. */
    public WebhookVerifier tolerance(Duration tolerance) {
        return new WebhookVerifier(keys, tolerance, clock);
    }

    public WebhookVerifier clock(InstantSource clock) {
        return new WebhookVerifier(keys, tolerance, clock);
    }

    private static SecretKeySpec key(String secret) {
        try {
            var bytes = Base64.getDecoder().decode(secret.startsWith(PREFIX) ? secret.substring(PREFIX.length()) : "");
            if (bytes.length >= SECRET_BYTES_MIN && bytes.length <= SECRET_BYTES_MAX) {
                return new SecretKeySpec(bytes, "HmacSHA256");
            }
        } catch (IllegalArgumentException malformed) {
            // Not with the text, and not with what the decoder says about it: it may be a secret with a typing error.
        }
        throw new IllegalArgumentException(
                "a secret must be " + PREFIX + " and then " + SECRET_BYTES_MIN + " to " + SECRET_BYTES_MAX + " bytes as base64");
    }

    /** Why a call is not genuine. */
    public enum Reason {
        /** {@code webhook-id}, {@code webhook-timestamp} or {@code webhook-signature} is missing. */
        HEADER,
        /** The timestamp is malformed, or too far from now. */
        TIMESTAMP,
        /** No signature is right. */
        SIGNATURE
    }

    /** A call that is not genuine. */
    public static final class NotGenuine extends Exception {
        private final Reason reason;

        NotGenuine(Reason reason) {
            super("the call is not genuine: " + reason);
            this.reason = reason;
        }

        public Reason reason() {
            return reason;
        }
    }

    /** The value of {@code webhook-signature}, as the service makes it. It is for tests of receivers. */
    public String sign(String id, Instant at, byte[] body) {
        return keys.stream()
                .map(key -> "v1," + Base64.getEncoder().encodeToString(mac(key, id, Long.toString(at.getEpochSecond()), body)))
                .collect(Collectors.joining(" "));
    }

    /** The call, if it is genuine. The body must be what was received, byte for byte; names of headers may have any case. */
    public WebhookCall verify(Map<String, String> headers, byte[] body) throws NotGenuine {
        var named = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
        named.putAll(headers);
        var id = named.getOrDefault("webhook-id", "");
        var timestamp = named.getOrDefault("webhook-timestamp", "");
        var signatures = named.get("webhook-signature");
        if (id.isEmpty() || timestamp.isEmpty() || signatures == null) {
            throw new NotGenuine(Reason.HEADER);
        }
        if (!TIMESTAMP.matcher(timestamp).matches()) {
            throw new NotGenuine(Reason.TIMESTAMP);
        }
        var seconds = Long.parseLong(timestamp);
        if (Math.abs(clock.instant().getEpochSecond() - seconds) > tolerance.toSeconds()) {
            throw new NotGenuine(Reason.TIMESTAMP);
        }
        if (!isAnyRight(signatures, id, timestamp, body)) {
            throw new NotGenuine(Reason.SIGNATURE);
        }
        return WebhookCall.of(named, body, Instant.ofEpochSecond(seconds));
    }

    /** Compares every signature with every key in constant time. */
    private boolean isAnyRight(String signatures, String id, String timestamp, byte[] body) {
        var given = new ArrayList<byte[]>();
        for (var signature : signatures.split(" ")) {
            if (signature.startsWith("v1,")) {
                try {
                    given.add(Base64.getDecoder().decode(signature.substring("v1,".length())));
                } catch (IllegalArgumentException malformed) {
                    // Not a signature.
                }
            }
        }
        var right = false;
        for (var key : keys) {
            var wanted = mac(key, id, timestamp, body);
            for (var signature : given) {
                right |= MessageDigest.isEqual(wanted, signature);
            }
        }
        return right;
    }

    private static byte[] mac(SecretKeySpec key, String id, String timestamp, byte[] body) {
        try {
            var mac = Mac.getInstance("HmacSHA256");
            mac.init(key);
            mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
            return mac.doFinal(body);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("every Java platform has HmacSHA256", impossible);
        }
    }
}
