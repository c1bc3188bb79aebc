package io.github.timerplatform;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Members of a request, by the names of the service. Never changed: each method returns a further one. */
abstract class Fields<T extends Fields<T>> {
    private final Map<String, Object> members;

    Fields(Map<String, Object> members) {
        this.members = Collections.unmodifiableMap(members);
    }

    abstract T of(Map<String, Object> members);

    final T with(String name, Object value) {
        var extended = new LinkedHashMap<>(members);
        extended.put(name, value);
        return of(extended);
    }

    final Map<String, Object> members() {
        return members;
    }

    @Override
    public final boolean equals(Object other) {
        return other != null && other.getClass() == getClass() && ((Fields<?>) other).members.equals(members);
    }

    @Override
    public final int hashCode() {
        return members.hashCode();
    }

    @Override
    public final String toString() {
        return getClass().getSimpleName() + JsonWriter.write(members);
    }
}
