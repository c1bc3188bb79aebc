package io.github.timerplatform.testing;

import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives a {@link TimerDev} to the parameters of tests: one for each test, or one for all tests of a class if it is a parameter of the
 * constructor or of {@code @BeforeAll}. It ends with them. Needs JUnit 5.13 or later.
 *
 * <pre>{@code
 * @ExtendWith(TimerDevExtension.class)
 * class ReminderTest {
 *     @Test
 *     void comes_after_a_month(TimerDev dev) { … }
 * }
 * }</pre>
 */
public final class TimerDevExtension implements ParameterResolver {
    private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(TimerDevExtension.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == TimerDev.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return context.getStore(NAMESPACE).getOrComputeIfAbsent(TimerDev.class, type -> TimerDev.start(), TimerDev.class);
    }
}
