package io.github.timerplatform;

import java.io.Serializable;
import java.time.Duration;
import java.util.regex.Pattern;

/**
 * A call that was not carried out, or whose outcome is not known ({@link Unreachable}, {@link Unavailable}). Its class is the kind of
 * failure.
 */
public abstract sealed class TimerException extends RuntimeException {
    /** A message about a field begins with its path, in quotes if the name is not one of the service, and goes on with the rule. */
    private static final Pattern FIELD = Pattern.compile("^(?:'([^']+)'|([A-Za-z][A-Za-z0-9_.-]*)) (?:must|is|or|cannot|belongs)\\b.*", Pattern.DOTALL);

    private final Details details;

    /** What an answer says beside its message. */
    record Details(int status, int code, String field, String requestId, Duration retryAfter) implements Serializable {
        static final Details NONE = new Details(0, 0, null, null, null);
    }

    private TimerException(String message, Details details, Throwable cause) {
        super(message, cause);
        this.details = details;
    }

    /** A field breaks a rule, or the timer has a status in which this cannot be done. */
    public static final class Invalid extends TimerException {
        Invalid(String message, Details details) {
            super(message, details, null);
        }

        Invalid(String message) {
            this(message, Details.NONE);
        }
    }

    /** There is no such timer, key or operation. */
    public static final class NotFound extends TimerException {
        NotFound(String message, Details details) {
            super(message, details, null);
        }
    }

    /** The key is wrong, or does not go that far. */
    public static final class Unauthorized extends TimerException {
        Unauthorized(String message, Details details) {
            super(message, details, null);
        }
    }

    /** More requests than one key may make: {@link #retryAfter} says when the next may come. */
    public static final class TooMany extends TimerException {
        TooMany(String message, Details details) {
            super(message, details, null);
        }
    }

    /** The key is taken by a timer with other content, or the timer has another revision. */
    public static final class Conflict extends TimerException {
        Conflict(String message, Details details) {
            super(message, details, null);
        }
    }

    /** The service or its database is away for now. */
    public static final class Unavailable extends TimerException {
        Unavailable(String message, Details details) {
            super(message, details, null);
        }
    }

    /** There was no answer, or not in time. */
    public static final class Unreachable extends TimerException {
        Unreachable(String message, Throwable cause) {
            super(message, Details.NONE, cause);
        }
    }

    /** A fault of the service, or an answer that is none of it. */
    public static final class Unexpected extends TimerException {
        Unexpected(String message, Details details, Throwable cause) {
            super(message, details, cause);
        }
    }

    static TimerException of(String message, Details details, Throwable cause) {
        return switch (kind(details.status, details.code)) {
            case 2 -> new Invalid(message, withField(message, details));
            case 3 -> new NotFound(message, details);
            case 4 -> new Unauthorized(message, details);
            case 5 -> new TooMany(message, details);
            case 6 -> new Conflict(message, details);
            case UNAVAILABLE -> new Unavailable(message, details);
            default -> new Unexpected(message, details, cause);
        };
    }

    private static final int UNAVAILABLE = 7;

    /** Decides by the code of the envelope, and by the status where something in between has answered without one. */
    private static int kind(int status, int code) {
        if (status == 408 || status == 502 || status == 503 || status == 504) {
            return UNAVAILABLE;
        }
        if (code != 0) {
            return code;
        }
        return switch (status) {
            case 400, 413, 415 -> 2;
            case 404 -> 3;
            case 401, 403 -> 4;
            case 429 -> 5;
            case 409, 412 -> 6;
            default -> 1;
        };
    }

    private static Details withField(String message, Details given) {
        var matcher = FIELD.matcher(message);
        if (given.field != null || !matcher.matches()) {
            return given;
        }
        var field = matcher.group(1) != null ? matcher.group(1) : matcher.group(2);
        return new Details(given.status, given.code, field, given.requestId, given.retryAfter);
    }

    /** Whether a second attempt of an idempotent call is worth it. */
    boolean isTemporary() {
        return this instanceof Unreachable || this instanceof Unavailable || this instanceof TooMany;
    }

    /** The HTTP status of the answer; 0 if there was none. */
    public int status() {
        return details.status;
    }

    /** The code of the envelope: 1 unexpected, 2 validation, 3 not found, 4 unauthorized, 5 too many requests, 6 conflict. */
    public int code() {
        return details.code;
    }

    /** The field that breaks a rule, where the message begins with one. */
    public String field() {
        return details.field;
    }

    /** Under which the log of the service has the request. */
    public String requestId() {
        return details.requestId;
    }

    /** When the next request may come, if the answer says so. */
    public Duration retryAfter() {
        return details.retryAfter;
    }
}
