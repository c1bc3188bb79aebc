use crate::TraceContext;

/// Records spans, where the operator wants traces. Where not, there is no tracer, and no part of the service makes a span.
pub trait Tracer: Send + Sync {
    /// Starts a span. It ends when it is dropped.
    fn start(&self, span: NewSpan<'_>) -> Box<dyn ActiveSpan>;

    /// How the spans of a firing belong to the creation of the timer.
    fn firing(&self) -> Firing;
}

/// A span that has not ended yet.
pub trait ActiveSpan: Send + Sync {
    /// What is passed on, so that what follows belongs to this span.
    fn context(&self) -> TraceContext;

    fn set(&mut self, name: &'static str, value: SpanValue);

    /// Marks what the span stands for as failed.
    fn fail(&mut self, why: String);
}

/// What a span is when it starts.
#[derive(Debug, Clone)]
pub struct NewSpan<'a> {
    pub name: String,
    pub kind: SpanKind,
    /// The span that this one is a part of; it begins a new trace if there is none.
    pub parent: Option<&'a TraceContext>,
    /// A span of another trace that this one follows from.
    pub link: Option<&'a TraceContext>,
}

/// On which side of a call a span stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request of a client.
    Server,
    /// Work of the service itself.
    Internal,
    /// A call to a receiver that answers.
    Client,
    /// A message to a receiver that does not answer.
    Producer,
}

/// An attribute of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    Text(String),
    Number(i64),
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for SpanValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// How the spans of a firing belong to the creation of the timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Firing {
    /// A new trace with a link to the creation: traces stay short, however far ahead a timer was created.
    #[default]
    Linked,
    /// A part of the trace of the creation.
    Continued,
}
