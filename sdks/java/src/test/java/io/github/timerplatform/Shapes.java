package io.github.timerplatform;

import io.github.timerplatform.webhook.WebhookCall;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/** Results in the shape of the API, and how they are compared. */
final class Shapes {
    private Shapes() {}

    static Object of(Object value) {
        if (value instanceof Json json) {
            return json.value();
        }
        if (value instanceof Duration duration) {
            return Durations.format(duration);
        }
        if (value instanceof Callback callback) {
            return of(callback.members());
        }
        if (value instanceof TimerException failure) {
            return error(failure);
        }
        if (value instanceof Record record) {
            return record(record);
        }
        if (value instanceof Map<?, ?> map) {
            var shaped = new LinkedHashMap<String, Object>();
            map.forEach((name, member) -> shaped.put(name.toString(), of(member)));
            return shaped;
        }
        if (value instanceof Iterable<?> list) {
            var shaped = new ArrayList<Object>();
            list.forEach(element -> shaped.add(of(element)));
            return shaped;
        }
        return value == null || value instanceof Number || value instanceof Boolean ? value : value.toString();
    }

    private static Map<String, Object> record(Record record) {
        var shaped = new LinkedHashMap<String, Object>();
        for (var component : record.getClass().getRecordComponents()) {
            var member = of(JsonBinder.members(record).get(component.getName()));
            if (component.isAnnotationPresent(JsonBinder.Flattened.class)) {
                shaped.putAll(ConformanceTest.map(member));
            } else {
                shaped.put(component.getName().replaceAll("([A-Z]|(?<=[a-z])[0-9])", "_$1").toLowerCase(Locale.ROOT), member);
            }
        }
        if (record instanceof WebhookCall call) {
            shaped.put("lateness_ms", call.lateness().toMillis());
            shaped.put("traceparent", call.traceParent());
        }
        if (record instanceof Timers.CreateResult result && result.error() != null) {
            shaped.put("field", result.error().field());
        }
        return shaped;
    }

    private static Map<String, Object> error(TimerException failure) {
        var shaped = new LinkedHashMap<String, Object>();
        shaped.put("kind", failure.getClass().getSimpleName().replaceAll("(?<=[a-z])([A-Z])", "_$1").toLowerCase(Locale.ROOT));
        shaped.put("message", failure.getMessage());
        shaped.put("status", failure.status() == 0 ? null : failure.status());
        shaped.put("code", failure.code() == 0 ? null : failure.code());
        shaped.put("field", failure.field());
        shaped.put("request_id", failure.requestId());
        shaped.put("retry_after_ms", failure.retryAfter() == null ? null : failure.retryAfter().toMillis());
        return shaped;
    }

    static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    static boolean matches(Object expected, Object got) {
        try {
            match(expected, got, "");
            return true;
        } catch (AssertionError unlike) {
            return false;
        }
    }

    /** What the expectation does not name does not matter. */
    static void match(Object expected, Object got, String path) {
        var unlike = path + " is " + got + ", not " + expected;
        if (expected instanceof Map<?, ?> members) {
            if (members.keySet().stream().anyMatch(name -> name.toString().startsWith("$"))) {
                ConformanceTest.map(expected).forEach((name, value) -> special(name, value, got, path, unlike));
                return;
            }
            require(got instanceof Map, unlike);
            members.forEach((name, member) -> match(member, ((Map<?, ?>) got).get(name), path + "." + name));
        } else if (expected instanceof List<?> list) {
            require(got instanceof List<?> other && other.size() == list.size(), unlike);
            for (var i = 0; i < list.size(); i++) {
                match(list.get(i), ((List<?>) got).get(i), path + "[" + i + "]");
            }
        } else {
            require("$any".equals(expected) && got != null || same(expected, got), unlike);
        }
    }

    private static void special(String name, Object value, Object got, String path, String unlike) {
        if (name.equals("$json")) {
            match(value, Json.parse((String) got).value(), path);
            return;
        }
        var size = got instanceof List<?> list ? list.size() : 0;
        var wanted = ((Number) value).intValue();
        require(switch (name) {
            case "$length" -> size == wanted;
            case "$min_length" -> size >= wanted;
            default -> size <= wanted;
        }, unlike);
    }

    private static boolean same(Object expected, Object got) {
        if (expected instanceof Number && got instanceof Number) {
            return new BigDecimal(expected.toString()).compareTo(new BigDecimal(got.toString())) == 0;
        }
        return Objects.equals(expected, got) || expected instanceof String first && got instanceof String second && sameInstant(first, second);
    }

    private static boolean sameInstant(String first, String second) {
        try {
            return OffsetDateTime.parse(first).toInstant().equals(OffsetDateTime.parse(second).toInstant());
        } catch (DateTimeParseException other) {
            return false;
        }
    }
}
