package io.github.timerplatform;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;

/** API keys that were issued. They take the key of the administrator. */
public final class Keys {
    private final Transport transport;

    Keys(Transport transport) {
        this.transport = transport;
    }

    /**
     * A key without what opens anything.
     *
     * @param namespaces that it opens; null for all
     * @param lastUsedAt to the minute; null if no use of it is recorded
     * @param revokedAt null if it is in use
     */
    public record ApiKey(
            String id,
            String name,
            List<String> namespaces,
            Rights rights,
            Instant createdAt,
            Instant lastUsedAt,
            Instant revokedAt) {}

    /** A new key. Its text is shown this once. */
    public record IssuedKey(@JsonBinder.Flattened ApiKey details, String key) {}

    /** Issues a key for these namespaces, or for all if they are null. It is sent once. */
    public IssuedKey create(String name, List<String> namespaces, Rights rights) {
        var body = new LinkedHashMap<String, Object>();
        body.put("name", name);
        body.put("namespaces", namespaces);
        body.put("rights", rights);
        return transport.call(Request.post("/keys", body), IssuedKey.class);
    }

    private record Listed(List<ApiKey> keys) {}

    /** Every key that was issued, revoked ones included. */
    public List<ApiKey> list() {
        return transport.call(Request.get("/keys"), Listed.class).keys();
    }

    /** Takes a key out of use. Doing it again is no error. */
    public void revoke(String id) {
        transport.call(Request.delete("/keys/" + Request.encoded(id)));
    }
}
