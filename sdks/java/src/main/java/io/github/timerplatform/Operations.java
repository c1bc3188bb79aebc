package io.github.timerplatform;

import java.time.Instant;
import java.util.List;

/** Bulk changes that go on in the background. */
public final class Operations {
    private final Transport transport;

    Operations(Transport transport) {
        this.transport = transport;
    }

    /**
     * A bulk change in the background.
     *
     * @param filter as the service wrote it down, with what follows from the key and the time of the request
     * @param by the name of the key that asked for it
     */
    public record Operation(
            String id,
            BulkAction action,
            Json filter,
            OperationState state,
            long matched,
            long changed,
            long skipped,
            long errors,
            String error,
            Instant startedAt,
            Instant finishedAt,
            String by) {}

    private record Listed(List<Operation> operations) {}

    /** The latest 100, the newest first. */
    public List<Operation> list() {
        return transport.call(Request.get("/operations"), Listed.class).operations();
    }

    /** How far it has come. */
    public Operation get(String id) {
        return transport.call(Request.get("/operations/" + Request.encoded(id)), Operation.class);
    }

    /** Ends it; what it has changed stays changed. */
    public Operation stop(String id) {
        return transport.call(Request.delete("/operations/" + Request.encoded(id)), Operation.class);
    }
}
