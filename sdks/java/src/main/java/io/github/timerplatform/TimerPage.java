package io.github.timerplatform;

import java.util.List;

/**
 * One page of a list.
 *
 * @param nextCursor where the next page begins; null on the last
 * @param scanned how many timers were looked at
 * @param complete false if the time for one answer ran out before the page was full: go on with the cursor, also after an empty page
 */
public record TimerPage(
        List<Timer> timers,
        long total,
        boolean totalIsEstimate,
        int limit,
        long offset,
        String nextCursor,
        long scanned,
        boolean complete) {}
