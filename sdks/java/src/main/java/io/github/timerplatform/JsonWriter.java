package io.github.timerplatform;

import java.time.Duration;
import java.util.Map;

/** Writes values as JSON. A {@link Json} is taken over as it is. */
final class JsonWriter {
    private final StringBuilder text = new StringBuilder();

    private JsonWriter() {}

    static String write(Object value) {
        var writer = new JsonWriter();
        writer.value(value);
        return writer.text.toString();
    }

    private void value(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Json || value instanceof Number) {
            if (value instanceof Double number && !Double.isFinite(number) || value instanceof Float real && !Float.isFinite(real)) {
                throw new IllegalArgumentException(value + " is no number of JSON");
            }
            text.append(value);
        } else if (value instanceof Map<?, ?> map) {
            var separator = "{";
            for (var entry : map.entrySet()) {
                member(separator, String.valueOf(entry.getKey()), entry.getValue());
                separator = ",";
            }
            text.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> list) {
            var separator = "[";
            for (var element : list) {
                text.append(separator);
                value(element);
                separator = ",";
            }
            text.append(separator.equals("[") ? "[]" : "]");
        } else if (value instanceof Duration duration) {
            string(Durations.format(duration));
        } else if (value instanceof Fields<?> fields) {
            value(fields.members());
        } else if (value instanceof Record record) {
            value(JsonBinder.members(record));
        } else if (value instanceof CharSequence || value instanceof Enum || value.getClass().getPackageName().equals("java.time")) {
            string(value.toString());
        } else {
            throw new IllegalArgumentException("a " + value.getClass().getName() + " cannot be written as JSON");
        }
    }

    private void member(String separator, String name, Object value) {
        text.append(separator);
        string(name);
        text.append(':');
        value(value);
    }

    private void string(String value) {
        text.append('"');
        for (var i = 0; i < value.length(); i++) {
            var next = value.charAt(i);
            if (next == '"' || next == '\\') {
                text.append('\\').append(next);
            } else if (next < ' ' || Character.isSurrogate(next) && !isPaired(value, i)) {
                text.append(String.format("\\u%04x", (int) next));
            } else {
                text.append(next);
            }
        }
        text.append('"');
    }

    /** A surrogate alone has no bytes in UTF-8. */
    private static boolean isPaired(String value, int at) {
        var first = Character.isHighSurrogate(value.charAt(at)) ? at : at - 1;
        return first >= 0 && first + 1 < value.length() && Character.isSurrogatePair(value.charAt(first), value.charAt(first + 1));
    }
}
