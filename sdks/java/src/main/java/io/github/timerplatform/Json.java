package io.github.timerplatform;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * JSON as the text it is. Payloads and metadata are sent, delivered and read back byte for byte: the order of members, {@code 1.10}
 * and {@code 12345678901234567890} survive. It is parsed on demand, one level at a time, and without loss.
 */
public final class Json {
    static final Json NULL = new Json("null");

    private final String text;

    private Json(String text) {
        this.text = text;
    }

    /** Takes over a text as it is. Throws {@link IllegalArgumentException} if it is not JSON. */
    public static Json parse(String text) {
        var scanner = new JsonScanner(text);
        scanner.skipValue();
        scanner.end();
        return new Json(text);
    }

    /**
     * Writes maps, lists, strings, numbers, booleans, enums, instants, durations, records (by the names of their components),
     * {@code Json} and {@code null}.
     */
    public static Json of(Object value) {
        return value instanceof Json json ? json : new Json(JsonWriter.write(value));
    }

    /** A part of a text that was checked as a whole. */
    static Json checked(String text) {
        return new Json(text);
    }

    /** The text, exactly as it was given. */
    public String text() {
        return text;
    }

    public boolean isNull() {
        return text.strip().equals("null");
    }

    /** The members of an object, in their order; of two with the same name the later counts. */
    public Map<String, Json> members() {
        var members = new LinkedHashMap<String, Json>();
        var scanner = new JsonScanner(text);
        scanner.object(members::put);
        return members;
    }

    /** The elements of an array. */
    public List<Json> elements() {
        var elements = new ArrayList<Json>();
        new JsonScanner(text).array(elements::add);
        return elements;
    }

    /** What a JSON string says. */
    public String string() {
        return new JsonScanner(text).string();
    }

    /** A number, exactly. */
    public BigDecimal number() {
        return new BigDecimal(text.strip());
    }

    /** A map, a list, a string, a {@link BigDecimal}, a boolean, or {@code null}. */
    public Object value() {
        return switch (new JsonScanner(text).peek()) {
            case '{' -> {
                var map = new LinkedHashMap<String, Object>();
                members().forEach((name, member) -> map.put(name, member.value()));
                yield map;
            }
            case '[' -> {
                var list = new ArrayList<Object>();
                elements().forEach(element -> list.add(element.value()));
                yield list;
            }
            case '"' -> string();
            case 't' -> true;
            case 'f' -> false;
            case 'n' -> null;
            default -> number();
        };
    }

    /** Reads an object into a record: each component from the member of its name, in camel or in snake case. */
    public <T extends Record> T as(Class<T> type) {
        return JsonBinder.read(this, type);
    }

    /** Equal texts: {@code 1.0} is not {@code 1.00}. */
    @Override
    public boolean equals(Object other) {
        return other instanceof Json json && json.text.equals(text);
    }

    @Override
    public int hashCode() {
        return Objects.hash(text);
    }

    @Override
    public String toString() {
        return text;
    }
}
