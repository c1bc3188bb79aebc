package io.github.timerplatform;

import java.security.SecureRandom;
import java.util.UUID;

/** UUIDs of version 7, which sort by their time. */
final class Ids {
    private static final SecureRandom RANDOM = new SecureRandom();

    private Ids() {}

    static String next() {
        var time = System.currentTimeMillis() << 16 | 0x7000L | RANDOM.nextInt(0x1000);
        var rest = RANDOM.nextLong() >>> 2 | Long.MIN_VALUE;
        return new UUID(time, rest).toString();
    }
}
