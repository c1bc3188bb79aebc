//! The little of Markdown that descriptions use: paragraphs, `code` and *stress*.

/// Makes text safe inside HTML, attributes included.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    safe
}

/// Paragraphs, separated by empty lines.
pub(super) fn marked_up(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    paragraphs.map(|paragraph| format!("<p>{}</p>", inline(paragraph))).collect()
}

/// One paragraph without its tags.
pub(super) fn inline(text: &str) -> String {
    let mut html = String::new();
    for (at, part) in text.split('`').enumerate() {
        match at % 2 {
            0 => html.push_str(&stressed(&escape(part))),
            _ => html.push_str(&format!("<code>{}</code>", escape(part))),
        }
    }
    html
}

fn stressed(safe: &str) -> String {
    let parts: Vec<&str> = safe.split('*').collect();
    if parts.len().is_multiple_of(2) {
        return safe.to_owned();
    }
    let stress = |(at, part): (usize, &&str)| if at % 2 == 1 { format!("<em>{part}</em>") } else { (*part).to_owned() };
    parts.iter().enumerate().map(stress).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_become_html() {
        for (text, html) in [
            ("a `b` c", "<p>a <code>b</code> c</p>"),
            ("one\n\ntwo", "<p>one</p><p>two</p>"),
            ("*call* & `<x>`", "<p><em>call</em> &amp; <code>&lt;x&gt;</code></p>"),
            ("2 * 3", "<p>2 * 3</p>"),
            ("", ""),
        ] {
            assert_eq!(marked_up(text), html);
        }
    }
}
