package io.github.timerplatform;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.regex.Pattern;

/** Durations as the service writes them: 1h30m, 30d, 250ms. */
final class Durations {
    private static final Pattern TERM = Pattern.compile("([0-9]+)(us|ms|s|m|h|d)");
    private static final Map<String, Duration> UNITS = Map.of(
            "d", Duration.ofDays(1), "h", Duration.ofHours(1), "m", Duration.ofMinutes(1),
            "s", Duration.ofSeconds(1), "ms", Duration.ofMillis(1), "us", Duration.ofNanos(1_000));

    private Durations() {}

    /** The shortest form, the largest unit first. What is shorter than a microsecond is rounded up. */
    static String format(Duration duration) {
        if (duration.isNegative()) {
            throw new TimerException.Invalid("a duration must not be negative");
        }
        var rest = duration.plusNanos(999).truncatedTo(ChronoUnit.MICROS);
        var text = new StringBuilder();
        for (var unit : new String[] {"d", "h", "m", "s", "ms", "us"}) {
            var count = rest.dividedBy(UNITS.get(unit));
            if (count > 0) {
                text.append(count).append(unit);
                rest = rest.minus(UNITS.get(unit).multipliedBy(count));
            }
        }
        return text.isEmpty() ? "0s" : text.toString();
    }

    static Duration parse(String text) {
        var total = Duration.ZERO;
        var terms = TERM.matcher(text);
        var end = 0;
        while (end < text.length()) {
            if (!terms.find(end) || terms.start() != end) {
                throw new IllegalArgumentException(text + " is not a duration such as 90s or 1h30m");
            }
            total = total.plus(UNITS.get(terms.group(2)).multipliedBy(Long.parseLong(terms.group(1))));
            end = terms.end();
        }
        return total;
    }
}
