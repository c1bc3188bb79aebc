package io.github.timerplatform;

import java.util.LinkedHashMap;
import java.util.Map;

/** Which timers are listed, in which order, and how many at a time. Cursors lead to all of them, an offset to the first 10,000. */
public final class ListQuery extends Fields<ListQuery> {
    private ListQuery(Map<String, Object> members) {
        super(members);
    }

    public static ListQuery of(Filter filter) {
        return new ListQuery(filter.members());
    }

    @Override
    ListQuery of(Map<String, Object> members) {
        return new ListQuery(members);
    }

    /** {@link Sort#CREATED_AT} unless given. */
    public ListQuery sort(Sort sort) {
        return with("sort", sort);
    }

    /** {@link Order#DESC} unless given. */
    public ListQuery order(Order order) {
        return with("order", order);
    }

    /** How many timers one page has, 1 to 200; 50 unless given. */
    public ListQuery limit(int limit) {
        return with("limit", limit);
    }

    public ListQuery offset(int offset) {
        return with("offset", offset);
    }

    /** {@link TimerPage#nextCursor} of an earlier page. */
    public ListQuery cursor(String cursor) {
        return with("cursor", cursor);
    }

    /** The page behind an earlier one: a cursor stands above an offset. */
    ListQuery after(String cursor) {
        var members = new LinkedHashMap<>(members());
        members.remove("offset");
        return of(members).cursor(cursor);
    }

    Map<String, String> query() {
        var query = new LinkedHashMap<String, String>();
        members().forEach((name, value) -> query.put(name, value.toString()));
        return query;
    }
}
