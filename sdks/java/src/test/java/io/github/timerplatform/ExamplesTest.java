package io.github.timerplatform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.timerplatform.testing.TimerDev;
import io.github.timerplatform.testing.TimerDevExtension;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The examples are started as a user starts them, each against a service of its own. */
@ExtendWith(TimerDevExtension.class)
class ExamplesTest {
    private static final Path EXAMPLES = Path.of("..", "..", "examples", "java");

    @Test
    void reminder(TimerDev dev) throws Exception {
        var output = finished(start(dev, "reminder/Reminder.java", dev.receiver() + "/remind"));
        assertTrue(output.endsWith("cart-4712 canceled\ncart-4711 pending\n"), output);
        dev.advance(Duration.ofHours(48));
        assertEquals(1, dev.inbox("/remind").size());
    }

    @Test
    void saga_timeout(TimerDev dev) throws Exception {
        assertEquals("order-42 is paid\n", finished(start(dev, "saga-timeout/SagaTimeout.java", dev.receiver() + "/release")));
        assertEquals("{\"order\":\"order-43\"}", dev.waitFor("/release").body());
    }

    @Test
    void receiver(TimerDev dev) throws Exception {
        var process = start(dev, "receiver/Receiver.java", "0");
        try (var output = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            var url = output.readLine();
            var timers = dev.client().timers();
            timers.create(NewTimer.in(Duration.ofSeconds(1), Callback.http(url + "/remind").payload(Map.of("cart", 4711))));
            timers.create(NewTimer.in(Duration.ofSeconds(2),
                    Callback.http(url + "/poll").payload(Map.of("name", "job 7", "done", true)).protocol(Protocol.TIMER)));
            var advanced = dev.advance(Duration.ofSeconds(2));
            assertEquals(2, advanced.completed(), advanced.toString());
            assertTrue(output.readLine().endsWith("late: {\"cart\":4711}"));
            assertEquals("job 7 is done", output.readLine());
        } finally {
            process.destroy();
        }
    }

    private static Process start(TimerDev dev, String file, String argument) throws Exception {
        var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        var builder = new ProcessBuilder(java, "-cp", Path.of("target", "classes").toString(), EXAMPLES.resolve(file).toString(), argument);
        builder.environment().putAll(Map.of("TIMER_URL", dev.url(), "TIMER_API_KEY", dev.apiKey(), "SIGNING_SECRET", dev.signingSecret()));
        return builder.redirectErrorStream(true).start();
    }

    private static String finished(Process process) throws Exception {
        var output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
        return output;
    }
}
