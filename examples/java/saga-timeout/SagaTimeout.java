import io.github.timerplatform.Callback;
import io.github.timerplatform.NewTimer;
import io.github.timerplatform.Ref;
import io.github.timerplatform.RetryPolicy;
import io.github.timerplatform.TimerClient;
import io.github.timerplatform.TimerException;
import java.time.Duration;
import java.util.Map;

/**
 * The timeout of a saga: an order must be paid within 30 minutes, otherwise it is released.
 *
 * <pre>TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… java -cp timer-client.jar saga-timeout/SagaTimeout.java "$RECEIVER/release"</pre>
 */
public final class SagaTimeout {
    /** The saga of one order. Its timeout is known by the number of the order, so that any process can end it. */
    private record Saga(TimerClient client, String order, String release) {
        private Ref timeout() {
            return Ref.key("orders", order + "/timeout");
        }

        /** May be repeated: the same key and content are the same timer. */
        void begin() {
            client.timers().create(NewTimer.in(Duration.ofMinutes(30), Callback.http(release).payload(Map.of("order", order)))
                    .namespace("orders")
                    .key(order + "/timeout")
                    .group(order)
                    .retryPolicy(RetryPolicy.retries(20).maxDuration(Duration.ofDays(1))));
        }

        /** Ends the timeout first: a cancel that is acknowledged always wins over the firing. */
        void pay() {
            try {
                client.timers().cancel(timeout());
                System.out.println(order + " is paid");
            } catch (TimerException.Invalid fired) {
                System.out.println(order + " comes too late: it is being released");
            }
        }
    }

    public static void main(String[] args) {
        var client = TimerClient.fromEnvironment();
        var paid = new Saga(client, "order-42", args[0]);
        var late = new Saga(client, "order-43", args[0]);
        paid.begin();
        late.begin();
        paid.pay();
        // The second order is never paid. Its time is over at once here, so that there is something to see.
        client.timers().fire(late.timeout());
    }
}
