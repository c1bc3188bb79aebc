//! NATS subjects to which callbacks publish, and patterns of them.

use std::fmt;

use crate::{Invalid, limits};

/// A subject to which a NATS server accepts a publish, and which cannot reach its system or inbox subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject(String);

impl Subject {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |rule: &str| Err(Invalid::new("topic", rule));
        if text.is_empty() || text.len() > limits::SUBJECT_BYTES_MAX {
            return Err(Invalid::new("topic", format!("must have 1 to {} characters", limits::SUBJECT_BYTES_MAX)));
        }
        if text.starts_with('$') || text.starts_with("_INBOX") {
            return refuse("must not start with $ or _INBOX");
        }
        if !text.split('.').all(|token| is_visible(token) && !token.contains(['*', '>'])) {
            return refuse("must be a NATS subject: tokens joined by dots, without blanks or wildcards");
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn first_token(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }

    /// Whether a subscription to `pattern` receives what is published to this subject.
    pub fn matches(&self, pattern: &SubjectPattern) -> bool {
        let (mut pattern, mut subject) = (pattern.0.split('.'), self.0.split('.'));
        loop {
            match (pattern.next(), subject.next()) {
                (Some(">"), Some(_)) | (None, None) => return true,
                (Some("*"), Some(_)) => {}
                (Some(pattern), Some(token)) if pattern == token => {}
                _ => return false,
            }
        }
    }
}

/// A set of subjects: `billing.>` is everything below `billing`, and `*` stands for one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectPattern(String);

impl SubjectPattern {
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        if text.is_empty() || text.len() > limits::SUBJECT_BYTES_MAX {
            return Err(Invalid::new(field, format!("must have 1 to {} characters", limits::SUBJECT_BYTES_MAX)));
        }
        let mut tokens = text.split('.').peekable();
        while let Some(token) = tokens.next() {
            let is_wildcard = token == "*" || (token == ">" && tokens.peek().is_none());
            if !is_visible(token) || (token.contains(['*', '>']) && !is_wildcard) {
                let rule = "must be a NATS subject: tokens joined by dots, without blanks, * for one token, > for all at the end";
                return Err(Invalid::new(field, rule));
            }
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SubjectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_visible(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| matches!(byte, 0x21..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_matches_what_a_subscription_would_get() {
        for (pattern, subject, expected) in [
            ("timer.commands.>", "timer.commands.schedule", true),
            ("timer.commands.>", "timer.commands.a.b.c", true),
            ("timer.commands.>", "timer.commands", false),
            ("timer.commands.>", "timer.commandsx.a", false),
            ("timer.commands.>", "Timer.commands.a", false),
            (">", "a", true),
            (">", "a.b", true),
            ("*", "a", true),
            ("*", "a.b", false),
            ("shared.*.in", "shared.a.in", true),
            ("shared.*.in", "shared.a.b.in", false),
            ("shared.*.in", "shared.in", false),
            ("*.*.>", "a.b", false),
            ("*.*.>", "a.b.c.d", true),
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.b.c", "a.b", false),
        ] {
            let (subject, pattern) = (Subject::parse(subject).unwrap(), SubjectPattern::parse("p", pattern).unwrap());
            assert_eq!(subject.matches(&pattern), expected, "{} {pattern}", subject.as_str());
        }
    }

    #[test]
    fn patterns_that_no_server_takes_are_refused() {
        for pattern in ["", ".", "a.", ".a", "a..b", "a b", "a.>.b", "a*", "a.b>", "**", "\u{e9}"] {
            assert!(SubjectPattern::parse("subjects", pattern).is_err(), "{pattern:?}");
        }
        assert!(SubjectPattern::parse("subjects", &"a".repeat(256)).is_err());
        for pattern in [">", "*", "a.>", "*.b", "$JS.>", "_INBOX.>"] {
            assert_eq!(SubjectPattern::parse("subjects", pattern).unwrap().as_str(), pattern);
        }
    }
}
