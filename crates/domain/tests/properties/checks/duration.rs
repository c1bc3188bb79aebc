use domain::Span;

/// A duration that is read is written so that it reads back as itself.
pub fn check(text: &str) {
    if let Ok(span) = Span::parse("delay", text) {
        assert_eq!(Span::parse("delay", &span.to_string()), Ok(span), "{text:?} is written as {span}");
    }
}
