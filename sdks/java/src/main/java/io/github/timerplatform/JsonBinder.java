package io.github.timerplatform;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;

/** Reads JSON objects into records by the names of their components. What is absent or not known is {@code null}, 0 or false. */
final class JsonBinder {
    /** A component whose members stand in the object of its record. */
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.RECORD_COMPONENT)
    @interface Flattened {}

    private static final Map<Type, Function<Json, ?>> SCALARS = Map.ofEntries(
            Map.entry(String.class, Json::string),
            Map.entry(Json.class, Function.identity()),
            Map.entry(Object.class, Json::value),
            Map.entry(int.class, json -> json.number().intValue()),
            Map.entry(Integer.class, json -> json.number().intValue()),
            Map.entry(long.class, json -> json.number().longValue()),
            Map.entry(Long.class, json -> json.number().longValue()),
            Map.entry(double.class, json -> json.number().doubleValue()),
            Map.entry(Double.class, json -> json.number().doubleValue()),
            Map.entry(boolean.class, json -> json.value().equals(true)),
            Map.entry(Boolean.class, json -> json.value().equals(true)),
            Map.entry(byte[].class, json -> Base64.getDecoder().decode(json.string())),
            Map.entry(Instant.class, json -> OffsetDateTime.parse(json.string()).toInstant()),
            Map.entry(Duration.class, json -> Durations.parse(json.string())),
            Map.entry(Callback.class, Callback::from));

    private JsonBinder() {}

    static <T extends Record> T read(Json json, Class<T> type) {
        var members = json.members();
        var components = type.getRecordComponents();
        var types = new Class<?>[components.length];
        var values = new Object[components.length];
        for (var i = 0; i < components.length; i++) {
            types[i] = components[i].getType();
            values[i] = components[i].isAnnotationPresent(Flattened.class)
                    ? value(json, components[i].getType())
                    : value(member(members, components[i].getName()), components[i].getGenericType());
        }
        try {
            var constructor = type.getDeclaredConstructor(types);
            constructor.setAccessible(true);
            return constructor.newInstance(values);
        } catch (ReflectiveOperationException cause) {
            throw new IllegalArgumentException(type.getName() + " cannot be read", cause);
        }
    }

    /** The components of a record with their names as they are. */
    static Map<String, Object> members(Record record) {
        var members = new LinkedHashMap<String, Object>();
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            try {
                var accessor = component.getAccessor();
                accessor.setAccessible(true);
                members.put(component.getName(), accessor.invoke(record));
            } catch (ReflectiveOperationException cause) {
                throw new IllegalArgumentException(record.getClass().getName() + " cannot be written", cause);
            }
        }
        return members;
    }

    private static Json member(Map<String, Json> members, String name) {
        var exact = members.get(name);
        return exact != null ? exact : members.get(name.replaceAll("([A-Z]|(?<=[a-z])[0-9])", "_$1").toLowerCase(Locale.ROOT));
    }

    @SuppressWarnings("unchecked")
    private static Object value(Json json, Type type) {
        if (json == null || json.isNull()) {
            // A payload of null is one; everything else that is null is not there.
            return type == Json.class && json != null ? json : zero(type);
        }
        var scalar = SCALARS.get(type);
        if (scalar != null) {
            return scalar.apply(json);
        }
        if (type instanceof ParameterizedType generic) {
            var arguments = generic.getActualTypeArguments();
            if (generic.getRawType() == List.class) {
                return json.elements().stream().map(element -> value(element, arguments[0])).toList();
            }
            var map = new LinkedHashMap<Object, Object>();
            json.members().forEach((name, member) -> map.put(named(name, (Class<?>) arguments[0]), value(member, arguments[1])));
            return Collections.unmodifiableMap(map);
        }
        var plain = (Class<?>) type;
        if (plain.isEnum()) {
            return named(json.string(), plain);
        }
        return read(json, (Class<? extends Record>) plain);
    }

    private static Object named(String name, Class<?> type) {
        if (type == String.class) {
            return name;
        }
        for (var constant : type.getEnumConstants()) {
            if (constant.toString().equals(name)) {
                return constant;
            }
        }
        return null;
    }

    private static Object zero(Type type) {
        if (type == int.class) {
            return 0;
        }
        if (type == long.class) {
            return 0L;
        }
        if (type == double.class) {
            return 0.0;
        }
        return type == boolean.class ? false : null;
    }
}
