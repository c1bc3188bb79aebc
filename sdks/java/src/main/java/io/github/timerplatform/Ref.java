package io.github.timerplatform;

/** Names one timer: by its id, by the key that it was created with, or by the {@link Timer} itself. */
public sealed interface Ref permits Ref.Id, Ref.Key, Timer {
    /** The path of its calls. */
    String path();

    static Ref id(String id) {
        return new Id(id);
    }

    static Ref key(String namespace, String key) {
        return new Key(namespace, key);
    }

    record Id(String id) implements Ref {
        @Override
        public String path() {
            return "/timers/" + Request.encoded(id);
        }
    }

    record Key(String namespace, String key) implements Ref {
        @Override
        public String path() {
            return "/namespaces/" + Request.encoded(namespace) + "/timers/" + Request.encoded(key);
        }
    }
}
