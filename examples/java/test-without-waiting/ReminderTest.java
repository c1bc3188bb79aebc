import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.timerplatform.Callback;
import io.github.timerplatform.NewTimer;
import io.github.timerplatform.RetryPolicy;
import io.github.timerplatform.Status;
import io.github.timerplatform.testing.TimerDev;
import io.github.timerplatform.testing.TimerDevExtension;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A test of a reminder in 30 days that fails twice and is then delivered. It takes less than a second. */
@ExtendWith(TimerDevExtension.class)
class ReminderTest {
    @Test
    void a_reminder_is_repeated_until_it_is_delivered(TimerDev dev) {
        dev.answers(TimerDev.Answer.of("/remind", 503).times(2));
        var reminder = dev.client().timers().create(
                NewTimer.in(Duration.ofDays(30), Callback.http(dev.receiver() + "/remind").payload(Map.of("cart", 4711)))
                        .retryPolicy(RetryPolicy.retries(3).intervals(Duration.ofMinutes(1), 2, Duration.ofMinutes(10))));

        dev.advance(Duration.ofDays(30).minusSeconds(1));
        assertTrue(dev.inbox(reminder).isEmpty());

        dev.advance(Duration.ofHours(1));
        var calls = dev.inbox(reminder);
        assertEquals(3, calls.size());
        assertEquals("{\"cart\":4711}", calls.get(2).body());
        assertTrue(calls.get(2).signatureValid());
        assertEquals(Status.COMPLETED, dev.client().timers().get(reminder).timer().status());
    }
}
