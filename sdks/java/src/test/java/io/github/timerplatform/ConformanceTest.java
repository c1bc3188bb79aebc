package io.github.timerplatform;

import io.github.timerplatform.testing.TimerDev;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Runs what every SDK must pass: see sdks/conformance/README.md. */
class ConformanceTest {
    static TimerDev dev;
    static FaultyNetwork network;

    @BeforeAll
    static void start() throws Exception {
        dev = TimerDev.start();
        network = FaultyNetwork.start(directory(), dev.url());
    }

    @AfterAll
    static void stop() throws Exception {
        network.stop();
        dev.close();
    }

    static Path directory() {
        var given = System.getenv("CONFORMANCE_DIR");
        return given == null ? Path.of("..", "conformance") : Path.of(given);
    }

    @TestFactory
    Stream<DynamicTest> scenarios() throws Exception {
        return each("", "scenarios", (name, json) -> {
            var run = new Scenario(dev, network);
            var steps = json.members().get("steps").elements();
            for (var i = 0; i < steps.size(); i++) {
                try {
                    run.step(steps.get(i));
                } catch (Exception | AssertionError failure) {
                    throw new AssertionError("step " + (i + 1) + ", " + steps.get(i) + ": " + failure, failure);
                }
            }
        });
    }

    @TestFactory
    Stream<DynamicTest> vectors() throws Exception {
        return each("vectors/", "vectors", (name, json) -> new Vectors(dev, network).check(name, json));
    }

    interface Check {
        void run(String name, Json json) throws Exception;
    }

    /** A test for each file, which prints a line as the table of all languages wants it. */
    private static Stream<DynamicTest> each(String prefix, String folder, Check check) throws Exception {
        try (var files = Files.list(directory().resolve(folder))) {
            var names = files.map(file -> file.getFileName().toString().replace(".json", "")).sorted().toList();
            var only = System.getenv("CONFORMANCE_ONLY");
            return names.stream().filter(name -> only == null || only.equals(prefix + name)).map(name -> DynamicTest.dynamicTest(prefix + name, () -> {
                var outcome = "fail";
                try {
                    check.run(name, Json.parse(Files.readString(directory().resolve(folder).resolve(name + ".json"))));
                    outcome = "pass";
                } finally {
                    System.out.println("java " + prefix + name + " " + outcome);
                }
            }));
        }
    }

    static Map<String, Object> map(Object value) {
        @SuppressWarnings("unchecked")
        var map = (Map<String, Object>) value;
        return map;
    }

    static List<Object> list(Object value) {
        @SuppressWarnings("unchecked")
        var list = (List<Object>) value;
        return list;
    }
}
