package io.github.timerplatform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class TimerClientTest {
    private static final String CREATED = "200 {\"code\":0,\"message\":\"\",\"data\":{\"id\":\"a\",\"status\":\"pending\"}}";

    private final List<String> sent = Collections.synchronizedList(new ArrayList<>());
    private final List<String> answers = Collections.synchronizedList(new ArrayList<>());
    private HttpServer server;
    private TimerClient client;

    @BeforeEach
    void serve() throws IOException {
        server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            var body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            sent.add(exchange.getRequestMethod() + " " + exchange.getRequestURI() + " " + body);
            var answer = (answers.size() > 1 ? answers.remove(0) : answers.get(0)).split(" ", 2);
            exchange.getResponseHeaders().set("Location", "/elsewhere");
            exchange.sendResponseHeaders(Integer.parseInt(answer[0]), 0);
            exchange.getResponseBody().write(answer[1].getBytes(StandardCharsets.UTF_8));
            exchange.close();
        });
        server.start();
        client = TimerClient.of("http://127.0.0.1:" + server.getAddress().getPort() + "/base/", "k");
    }

    @AfterEach
    void stop() {
        server.stop(0);
    }

    @Test
    void a_payload_is_sent_byte_for_byte() {
        answers.add(CREATED);
        client.timers().create(NewTimer.in(Duration.ofSeconds(90), Callback.http("http://a/").payload(Json.parse("{ \"b\" : 1.10 }"))).key("k"));
        assertEquals(
                List.of("POST /base/timers {\"delay\":\"1m30s\",\"callback\":{\"type\":\"http\",\"url\":\"http://a/\",\"payload\":{ \"b\" : 1.10 }},\"key\":\"k\"}"),
                sent);
    }

    @Test
    void a_create_keeps_its_id_over_its_retries() {
        answers.addAll(List.of("503 ", CREATED));
        client.timers().create(NewTimer.in(Duration.ofSeconds(1), Callback.http("http://a/")));
        assertEquals(2, sent.size());
        assertEquals(sent.get(0), sent.get(1));
        assertTrue(sent.get(0).contains("\"id\":\""), sent.get(0));
    }

    @Test
    void the_key_is_not_sent_to_where_a_redirect_points() {
        answers.add("302 ");
        assertThrows(TimerException.Unexpected.class, () -> client.timers().get(Ref.id("a")));
        assertEquals(1, sent.size());
    }

    @Test
    void a_key_may_have_any_character() {
        answers.add(CREATED);
        client.timers().get(Ref.key("default", "a/b c?ü"));
        assertEquals(List.of("GET /base/namespaces/default/timers/a%2Fb%20c%3F%C3%BC "), sent);
    }

    @Test
    void a_list_reads_no_page_that_is_not_needed() {
        answers.add("200 {\"code\":0,\"message\":\"\",\"data\":{\"timers\":[{\"id\":\"a\"},{\"id\":\"b\"}],\"next_cursor\":\"c\"}}");
        assertEquals(List.of("a", "b", "a"), client.timers().list(Filter.all()).stream().limit(3).map(Timer::id).toList());
        assertEquals(List.of("GET /base/timers ", "GET /base/timers?cursor=c "), sent);
    }

    @Test
    void nulls_of_an_update_clear_and_what_is_not_given_stays() {
        answers.add(CREATED);
        client.timers().ifRevision(7).update(Ref.id("a"), TimerUpdate.of().metadata(null).group("g"));
        assertEquals(List.of("PUT /base/timers/a {\"metadata\":null,\"group\":\"g\"}"), sent);
    }

    @Test
    void a_client_needs_a_key_and_a_url() {
        assertThrows(IllegalArgumentException.class, () -> TimerClient.of("http://a", ""));
        assertThrows(IllegalArgumentException.class, () -> TimerClient.of("a", "k"));
        assertThrows(IllegalArgumentException.class, () -> TimerClient.of("ftp://a", "k"));
    }

    @Test
    void ids_begin_with_their_time() {
        var before = System.currentTimeMillis();
        var id = Ids.next();
        var millis = Long.parseLong(id.replace("-", "").substring(0, 12), 16);
        assertTrue(millis >= before && millis <= System.currentTimeMillis() && id.matches(".{14}7.{4}[89ab].*"), id);
    }
}
