package io.github.timerplatform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
    @Test
    void what_is_no_json_is_refused() {
        for (var text : List.of("", " ", "{", "[1,]", "{\"a\"}", "{a:1}", "01", "1.", "+1", "nul", "\"\n\"", "\"\\x\"", "\"\\u12\"", "1 2",
                "[".repeat(1000))) {
            assertThrows(IllegalArgumentException.class, () -> Json.parse(text), text);
        }
    }

    @Test
    void texts_stay_as_they_are_and_are_read_without_loss() {
        var json = Json.parse(" { \"b\" : 1.10 , \"a\":[12345678901234567890, \"\\u00fc\\n\"] } ");
        assertEquals(List.of("b", "a"), List.copyOf(json.members().keySet()));
        assertEquals("1.10", json.members().get("b").text());
        assertEquals(List.of(new BigDecimal("12345678901234567890"), "ü\n"), json.members().get("a").value());
    }

    @Test
    void values_are_written_and_exact_texts_taken_over() {
        record Cart(int number, List<String> items, Json exact) {}
        assertEquals(
                "{\"number\":4711,\"items\":[\"\\u0001\\\"ü\\ud83d\"],\"exact\":1.10}",
                Json.of(new Cart(4711, List.of("\u0001\"ü\ud83d"), Json.parse("1.10"))).text());
        assertThrows(IllegalArgumentException.class, () -> Json.of(new Object()));
        assertThrows(IllegalArgumentException.class, () -> Json.of(Double.NaN));
    }

    @Test
    void records_are_read_by_the_names_of_their_components() {
        record Seen(String firstName, int ok1m, Status status, Map<Status, Long> byStatus, String missing) {}
        var seen = Json.parse("{\"first_name\":\"a\",\"ok_1m\":2,\"status\":\"of a later version\",\"by_status\":{\"failed\":3},\"more\":1}").as(Seen.class);
        assertEquals("a", seen.firstName());
        assertEquals(2, seen.ok1m());
        assertEquals(Map.of(Status.FAILED, 3L), seen.byStatus());
        assertNull(seen.status());
        assertNull(seen.missing());
    }
}
