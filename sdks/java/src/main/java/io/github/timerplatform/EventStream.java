package io.github.timerplatform;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * What happens, until it is closed. A stream that breaks is resumed: nothing is missed, and the events of the last seconds before may
 * come again. It is read by one thread, and may be closed by another.
 */
public final class EventStream implements Iterable<Event>, Iterator<Event>, AutoCloseable {
    private final Transport transport;
    private final Map<String, String> query;
    private InputStream body;
    private BufferedReader lines;
    private Event ready;
    private int failures;
    private volatile boolean closed;

    EventStream(Transport transport, Filter filter, List<EventType> types, String after) {
        this.transport = transport;
        query = filter.query();
        if (!types.isEmpty()) {
            query.put("types", types.stream().map(EventType::toString).collect(Collectors.joining(",")));
        }
        if (after != null) {
            query.put("after", after);
        }
    }

    @Override
    public Iterator<Event> iterator() {
        return this;
    }

    public Stream<Event> stream() {
        return StreamSupport.stream(spliterator(), false);
    }

    /** Waits for the next event. False once the stream is closed. */
    @Override
    public boolean hasNext() {
        while (ready == null && !closed) {
            try {
                read();
            } catch (IOException | IllegalArgumentException broken) {
                // A line that was cut off is sent again.
                pause();
            } catch (TimerException failure) {
                if (!failure.isTemporary()) {
                    throw failure;
                }
                pause();
            }
        }
        return ready != null;
    }

    @Override
    public Event next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        var event = ready;
        ready = null;
        return event;
    }

    private void read() throws IOException {
        var line = open().readLine();
        if (line == null) {
            throw new IOException("the stream has ended");
        }
        var json = Json.parse(line);
        var event = json.as(Event.class);
        query.put("after", event.eventId());
        failures = 0;
        // A type that is not known is a heartbeat with the position, or comes from a later version.
        ready = event.type() == null ? null : event;
    }

    private synchronized BufferedReader open() {
        if (body == null) {
            body = transport.open(Request.get("/events", query).accepting("application/x-ndjson"));
            lines = new BufferedReader(new InputStreamReader(body, StandardCharsets.UTF_8));
        }
        return lines;
    }

    private void pause() {
        end();
        if (!closed && !Transport.sleep(Transport.jitter(failures++))) {
            closed = true;
        }
    }

    /** Closes what is read from, and not its reader, whose lock is held by the thread that waits for a line. */
    private synchronized void end() {
        if (body != null) {
            try {
                body.close();
            } catch (IOException ignored) {
                // Nothing is read from it any more.
            }
            body = null;
        }
    }

    @Override
    public void close() {
        closed = true;
        end();
    }
}
