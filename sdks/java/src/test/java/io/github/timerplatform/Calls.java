package io.github.timerplatform;

import static io.github.timerplatform.ConformanceTest.list;
import static io.github.timerplatform.ConformanceTest.map;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The calls of the conformance suite, by their names. */
final class Calls {
    private Calls() {}

    static Object make(String name, TimerClient client, Args args) {
        var timers = args.has("revision") ? client.timers().ifRevision(args.number("revision")) : client.timers();
        return switch (name) {
            case "timers.create" -> timers.create(args.newTimer());
            case "timers.create_many" -> Map.of("results",
                    timers.createMany(list(args.given().get("timers")).stream().map(timer -> new Args(map(timer)).newTimer()).toList()));
            case "timers.get" -> timers.get(args.ref());
            case "timers.list" -> timers.list(args.listQuery());
            case "timers.page" -> timers.page(args.listQuery());
            case "timers.count" -> timers.count(args.filter());
            case "timers.export" -> exported(timers, args);
            case "timers.update" -> timers.update(args.ref(), (args.has("set") ? args.object("set") : new Args(Map.of())).update());
            case "timers.cancel" -> timers.cancel(args.ref());
            case "timers.fire" -> timers.fire(args.ref());
            case "timers.retry" -> timers.retry(args.ref());
            case "timers.ping" -> args.has("delay") ? timers.ping(args.ref(), args.duration("delay")) : timers.ping(args.ref());
            case "timers.pause" -> args.has("note") ? timers.pause(args.ref(), args.text("note")) : timers.pause(args.ref());
            case "timers.resume" -> args.has("missed") ? timers.resume(args.ref(), args.choice("missed", Missed.class)) : timers.resume(args.ref());
            case "timers.attempts" -> Map.of("attempts", timers.attempts(args.ref()));
            case "timers.cancel_matching" -> timers.cancelMatching(new Timers.CancelMatching(args.text("namespace"),
                    args.choice("status", Status.class), args.text("key_prefix"), args.given().get("metadata"), args.number("expected_max")));
            case "timers.bulk" -> Boolean.TRUE.equals(args.given().get("dry_run"))
                    ? timers.previewBulk(args.bulkChange())
                    : timers.bulk(args.bulkChange());
            case "operations.list" -> Map.of("operations", client.operations().list());
            case "operations.get" -> client.operations().get(args.text("id"));
            case "operations.stop" -> client.operations().stop(args.text("id"));
            case "groups.get" -> client.groups().count(args.text("namespace"), args.text("group"));
            case "groups.cancel" -> client.groups().cancel(args.text("namespace"), args.text("group"));
            case "keys.create" -> client.keys().create(args.text("name"), args.texts("namespaces"), args.choice("rights", Rights.class));
            case "keys.list" -> Map.of("keys", client.keys().list());
            case "stats.due" -> client.stats().due(args.period());
            case "stats.fired" -> client.stats().fired(args.period());
            case "destinations" -> client.stats().destinations(args.texts("namespace").toArray(String[]::new));
            case "namespaces" -> client.stats().namespaces();
            case "cluster" -> client.cluster();
            case "whoami" -> client.whoAmI();
            case "health" -> client.health();
            case "keys.revoke" -> {
                client.keys().revoke(args.text("id"));
                yield null;
            }
            case "ping" -> {
                client.ping();
                yield null;
            }
            default -> throw new AssertionError("no such call: " + name);
        };
    }

    private static String exported(Timers timers, Args args) {
        try (var body = timers.export(args.choice("format", ExportFormat.class), args.filter())) {
            return new String(body.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException cause) {
            throw new UncheckedIOException(cause);
        }
    }
}
