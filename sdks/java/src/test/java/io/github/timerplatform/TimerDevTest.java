package io.github.timerplatform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.timerplatform.testing.TimerDev;
import io.github.timerplatform.testing.TimerDevExtension;
import io.github.timerplatform.webhook.WebhookVerifier;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(TimerDevExtension.class)
class TimerDevTest {
    @Test
    void a_month_with_retries_takes_no_time(TimerDev dev) throws Exception {
        dev.answers(TimerDev.Answer.of("/reminder", 503).times(2));
        var timer = dev.client().timers().create(
                NewTimer.in(Duration.ofDays(30), Callback.http(dev.receiver() + "/reminder")).retryPolicy(RetryPolicy.retries(3)));
        assertEquals(0, dev.advance(Duration.ofDays(29)).fired());
        assertFalse(dev.advanceToNext().now().isBefore(timer.executeAt()));
        assertEquals(1, dev.advanceUntilIdle().completed());

        var calls = dev.inbox(timer);
        assertEquals(3, calls.size());
        var verifier = WebhookVerifier.of(dev.signingSecret()).clock(dev.clock());
        for (var call : calls) {
            assertTrue(call.signatureValid());
            assertEquals(timer.id(), verifier.verify(call.headers(), call.body().getBytes(StandardCharsets.UTF_8)).timerId());
        }
        dev.clearInbox();
        assertTrue(dev.inbox(timer).isEmpty());
    }
}
