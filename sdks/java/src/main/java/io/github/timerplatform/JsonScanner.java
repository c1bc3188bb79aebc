package io.github.timerplatform;

import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/** Walks over a JSON text by RFC 8259, and keeps its parts as they are written. */
final class JsonScanner {
    private static final int DEPTH_MAX = 500;
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?");

    private final String text;
    private int at;
    private int depth;

    JsonScanner(String text) {
        this.text = text;
    }

    /** The first character of the next value. */
    char peek() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : '\0';
    }

    void end() {
        if (peek() != '\0' || at < text.length()) {
            throw malformed();
        }
    }

    void object(BiConsumer<String, Json> member) {
        list('{', '}', () -> {
            if (peek() != '"') {
                throw malformed();
            }
            var name = string();
            take(':');
            member.accept(name, part());
        });
    }

    void array(Consumer<Json> element) {
        list('[', ']', () -> element.accept(part()));
    }

    String string() {
        take('"');
        var said = new StringBuilder();
        while (true) {
            var next = next();
            if (next == '"') {
                return said.toString();
            }
            if (next < ' ') {
                throw malformed();
            }
            said.append(next == '\\' ? escaped() : next);
        }
    }

    void skipValue() {
        switch (peek()) {
            case '{' -> object((name, member) -> {});
            case '[' -> array(element -> {});
            case '"' -> string();
            case 't' -> word("true");
            case 'f' -> word("false");
            case 'n' -> word("null");
            default -> number();
        }
    }

    private Json part() {
        peek();
        var begin = at;
        skipValue();
        return Json.checked(text.substring(begin, at));
    }

    private void list(char open, char close, Runnable element) {
        take(open);
        if (++depth > DEPTH_MAX) {
            throw malformed();
        }
        if (peek() != close) {
            do {
                element.run();
            } while (peek() == ',' && next() == ',');
        }
        take(close);
        depth--;
    }

    private char escaped() {
        var escape = next();
        var index = "\"\\/bfnrt".indexOf(escape);
        if (index >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(index);
        }
        if (escape != 'u' || at + 4 > text.length()) {
            throw malformed();
        }
        var unit = 0;
        for (var digits = 0; digits < 4; digits++) {
            var digit = Character.digit(next(), 16);
            if (digit < 0) {
                throw malformed();
            }
            unit = unit * 16 + digit;
        }
        return (char) unit;
    }

    private void number() {
        var matcher = NUMBER.matcher(text).region(at, text.length());
        if (!matcher.lookingAt()) {
            throw malformed();
        }
        at = matcher.end();
    }

    private void word(String word) {
        if (!text.startsWith(word, at)) {
            throw malformed();
        }
        at += word.length();
    }

    private void take(char wanted) {
        if (peek() != wanted) {
            throw malformed();
        }
        at++;
    }

    private char next() {
        if (at >= text.length()) {
            throw malformed();
        }
        return text.charAt(at++);
    }

    private IllegalArgumentException malformed() {
        return new IllegalArgumentException("this is not JSON at character " + at);
    }
}
