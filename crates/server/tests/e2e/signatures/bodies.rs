//! JSON as text, written in every way that the grammar has.

use rand::{RngExt, SeedableRng, rngs::StdRng};

const LARGE_BYTES_MIN: usize = 2_000;
const LARGE_BYTES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 5;

/// Begins with what is known to be awkward; the rest is left to chance.
const KNOWN: [&str; 14] = [
    "{}",
    "[]",
    r#""""#,
    "0",
    "null",
    "true",
    "1.10",
    "-0",
    "12345678901234567890",
    "1e400",
    r#"{"a":1.10, "a" : 2}"#,
    r#""\u00e9 é e\u0301 \ud83d\ude00 😀""#,
    r#""\/\b\f\n\r\t\"\\\u0000""#,
    "[[[[[[[[[[{\"\":[]}]]]]]]]]]]",
];

pub fn random(seed: u64, count: usize) -> Vec<String> {
    let mut random = StdRng::seed_from_u64(seed);
    let known = KNOWN.map(str::to_owned).into_iter();
    known.chain(std::iter::repeat_with(|| body(&mut random))).take(count).collect()
}

fn body(random: &mut StdRng) -> String {
    let mut text = String::new();
    if random.random_ratio(1, 20) {
        let length = random.random_range(LARGE_BYTES_MIN..LARGE_BYTES_MAX);
        text.push('[');
        while text.len() < length {
            value(random, DEPTH_MAX - 1, &mut text);
            text.push(',');
        }
        text.push_str("null]");
    } else {
        value(random, 0, &mut text);
    }
    text
}

fn value(random: &mut StdRng, depth: usize, text: &mut String) {
    let kinds = if depth < DEPTH_MAX { 6 } else { 4 };
    match random.random_range(0..kinds) {
        0 => text.push_str(["null", "true", "false"][random.random_range(0..3)]),
        1 => number(random, text),
        2 | 3 => string(random, text),
        4 => list(random, text, ['[', ']'], |random, text| value(random, depth + 1, text)),
        _ => list(random, text, ['{', '}'], |random, text| {
            string(random, text);
            text.push(':');
            blank(random, text);
            value(random, depth + 1, text);
        }),
    }
}

fn list(random: &mut StdRng, text: &mut String, [open, close]: [char; 2], mut item: impl FnMut(&mut StdRng, &mut String)) {
    text.push(open);
    for n in 0..random.random_range(0..5) {
        if n > 0 {
            text.push(',');
        }
        blank(random, text);
        item(random, text);
        blank(random, text);
    }
    text.push(close);
}

fn blank(random: &mut StdRng, text: &mut String) {
    text.push_str(["", "", "", " ", "\n", "\t", "\r\n  "][random.random_range(0..7)]);
}

fn number(random: &mut StdRng, text: &mut String) {
    let whole: i64 = random.random_range(i64::MIN..i64::MAX) >> random.random_range(0..64);
    text.push_str(&whole.to_string());
    if random.random() {
        text.push_str(&format!(".{:04}0", random.random_range(0..10_000)));
    }
    if random.random_ratio(1, 4) {
        text.push_str(["e5", "E+10", "e-7", "e0"][random.random_range(0..4)]);
    }
}

fn string(random: &mut StdRng, text: &mut String) {
    text.push('"');
    for _ in 0..random.random_range(0..20) {
        match random.random_range(0..4) {
            0 => text.push_str(
                [r"\n", r"\t", r#"\""#, r"\\", r"\/", r"\b", r"\u0000", r"\ud83d\ude00", r"\u00E9"][random.random_range(0..9)],
            ),
            1 => text.push(random.random_range('\u{a0}'..char::MAX)),
            _ => text.push(random.random_range('#'..'[')),
        }
    }
    text.push('"');
}
