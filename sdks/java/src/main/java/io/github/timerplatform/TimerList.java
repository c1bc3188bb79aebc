package io.github.timerplatform;

import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** All timers that match, read page by page while they are iterated over. */
public final class TimerList implements Iterable<Timer> {
    private final Timers timers;
    private final ListQuery query;

    TimerList(Timers timers, ListQuery query) {
        this.timers = timers;
        this.query = query;
    }

    public Stream<Timer> stream() {
        return StreamSupport.stream(spliterator(), false);
    }

    @Override
    public Iterator<Timer> iterator() {
        return new Pages(query);
    }

    private final class Pages implements Iterator<Timer> {
        private final ArrayDeque<Timer> read = new ArrayDeque<>();
        private ListQuery next;

        Pages(ListQuery first) {
            next = first;
        }

        @Override
        public boolean hasNext() {
            while (read.isEmpty() && next != null) {
                var page = timers.page(next);
                read.addAll(page.timers());
                next = page.nextCursor() == null ? null : next.after(page.nextCursor());
            }
            return !read.isEmpty();
        }

        @Override
        public Timer next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return read.remove();
        }
    }
}
