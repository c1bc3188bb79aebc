package io.github.timerplatform;

import java.time.Instant;

/**
 * Something that happened to a timer. Its type, its time and the id of the timer identify it.
 *
 * @param eventId where to resume after this event
 * @param attempt in events of this type, otherwise null
 */
public record Event(EventType type, String eventId, Instant at, Timer timer, Attempt attempt) {}
