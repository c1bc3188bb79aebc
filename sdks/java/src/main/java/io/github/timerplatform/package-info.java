/**
 * The client of Timer Platform, a durable timer service: register "call this at that time", and at that time the call is made.
 *
 * <pre>{@code
 * var client = TimerClient.fromEnvironment(); // TIMER_URL and TIMER_API_KEY
 * var timer = client.timers().create(NewTimer.in(
 *     Duration.ofMinutes(15), Callback.http("https://shop.example/hooks/cart").payload(Map.of("cart", 4711))));
 * }</pre>
 *
 * <p>Idempotent requests are retried when the service cannot be reached, is not available or limits the rate. A create is made
 * idempotent by an id that the client makes. Every failure is a {@link io.github.timerplatform.TimerException}. Receivers use the package
 * {@code webhook}, tests the package {@code testing}. What an answer does not have is {@code null}.
 */
package io.github.timerplatform;
