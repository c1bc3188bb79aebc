/**
 * Tests without waiting: {@link io.github.timerplatform.testing.TimerDev} runs {@code timer dev} with a clock that is moved and a
 * receiver that shows every call. {@link io.github.timerplatform.testing.TimerDevExtension} starts and ends it with a test of JUnit.
 */
package io.github.timerplatform.testing;
