import io.github.timerplatform.Callback;
import io.github.timerplatform.Filter;
import io.github.timerplatform.NewTimer;
import io.github.timerplatform.OnConflict;
import io.github.timerplatform.Ref;
import io.github.timerplatform.RetryPolicy;
import io.github.timerplatform.TimerClient;
import java.time.Duration;
import java.util.Map;

/**
 * A reminder in two days, which moves when the customer comes back and which is gone when the order is placed.
 *
 * <pre>TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… java -cp timer-client.jar reminder/Reminder.java "$RECEIVER/remind"</pre>
 */
public final class Reminder {
    public static void main(String[] args) {
        var client = TimerClient.fromEnvironment();
        for (var visit = 1; visit <= 2; visit++) {
            var timer = client.timers().create(reminder(4711, args[0]));
            System.out.println("visit " + visit + ": reminder " + timer.id() + " at " + timer.executeAt());
        }

        // A second cart is ordered: its reminder is not needed any more.
        client.timers().create(reminder(4712, args[0]));
        client.timers().cancel(Ref.key("shop", "cart-4712"));
        for (var timer : client.timers().list(Filter.all().namespace("shop"))) {
            System.out.println(timer.key() + " " + timer.status());
        }
    }

    /** Each create postpones the same timer: it fires two days after the last. */
    private static NewTimer reminder(int cart, String url) {
        return NewTimer.in(Duration.ofHours(48), Callback.http(url).payload(Map.of("cart", cart)))
                .namespace("shop")
                .key("cart-" + cart)
                .onConflict(OnConflict.POSTPONE)
                .retryPolicy(RetryPolicy.retries(5).intervals(Duration.ofMinutes(1), 2, Duration.ofHours(1)));
    }
}
