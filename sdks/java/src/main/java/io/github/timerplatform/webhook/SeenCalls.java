package io.github.timerplatform.webhook;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Remembers calls that were answered with success, by their {@code webhook-id}. A real one keeps them in the database of the receiver,
 * in the transaction that does the work.
 */
public interface SeenCalls {
    boolean contains(String id);

    void add(String id);

    /** Remembers the last calls of this process, at most so many. */
    static SeenCalls inMemory(int max) {
        var ids = Collections.synchronizedMap(new LinkedHashMap<String, Boolean>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Boolean> eldest) {
                return size() > max;
            }
        });
        return new SeenCalls() {
            @Override
            public boolean contains(String id) {
                return ids.containsKey(id);
            }

            @Override
            public void add(String id) {
                ids.put(id, true);
            }
        };
    }
}
