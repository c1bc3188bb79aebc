use domain::{ActiveSpan, Firing, NewSpan, SpanKind, SpanValue, TraceContext, Tracer};
use opentelemetry::{
    Context, KeyValue,
    trace::{self, SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer as _},
};
use opentelemetry_sdk::trace::{SdkTracer, Span};

/// Makes spans with OpenTelemetry.
pub(crate) struct OpenTelemetryTracer {
    pub tracer: SdkTracer,
    pub firing: Firing,
}

impl Tracer for OpenTelemetryTracer {
    fn start(&self, span: NewSpan<'_>) -> Box<dyn ActiveSpan> {
        let NewSpan { name, kind, parent, link } = span;
        let mut builder = self.tracer.span_builder(name).with_kind(kind_of(kind));
        if let Some(link) = link {
            builder = builder.with_links(vec![trace::Link::with_context(span_context(link, true))]);
        }
        let is_remote = matches!(kind, SpanKind::Server | SpanKind::Internal);
        // Never that of the thread: it may carry out the work of many spans at once.
        let within = match parent {
            Some(parent) => Context::new().with_remote_span_context(span_context(parent, is_remote)),
            None => Context::new(),
        };
        Box::new(Started(builder.start_with_context(&self.tracer, &within)))
    }

    fn firing(&self) -> Firing {
        self.firing
    }
}

struct Started(Span);

impl ActiveSpan for Started {
    fn context(&self) -> TraceContext {
        let context = trace::Span::span_context(&self.0);
        let (trace_id, span_id) = (context.trace_id().to_bytes(), context.span_id().to_bytes());
        TraceContext::new(trace_id, span_id, context.trace_flags().to_u8()).with_state(&context.trace_state().header())
    }

    fn set(&mut self, name: &'static str, value: SpanValue) {
        let attribute = match value {
            SpanValue::Text(text) => KeyValue::new(name, text),
            SpanValue::Number(number) => KeyValue::new(name, number),
        };
        trace::Span::set_attribute(&mut self.0, attribute);
    }

    fn fail(&mut self, why: String) {
        trace::Span::set_status(&mut self.0, Status::error(why));
    }
}

const fn kind_of(kind: SpanKind) -> trace::SpanKind {
    match kind {
        SpanKind::Server => trace::SpanKind::Server,
        SpanKind::Internal => trace::SpanKind::Internal,
        SpanKind::Client => trace::SpanKind::Client,
        SpanKind::Producer => trace::SpanKind::Producer,
    }
}

fn span_context(context: &TraceContext, is_remote: bool) -> SpanContext {
    // A state that OpenTelemetry does not understand is left out, which the standard allows.
    let state: TraceState = context.tracestate().and_then(|state| state.parse().ok()).unwrap_or_default();
    let (trace_id, span_id) = (TraceId::from_bytes(context.trace_id), SpanId::from_bytes(context.span_id));
    SpanContext::new(trace_id, span_id, TraceFlags::new(context.flags), is_remote, state)
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn recorded(start: impl FnOnce(&dyn Tracer)) -> Vec<SpanData> {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        start(&OpenTelemetryTracer { tracer: provider.tracer("timer"), firing: Firing::Linked });
        exporter.get_finished_spans().unwrap()
    }

    fn new(kind: SpanKind) -> NewSpan<'static> {
        NewSpan { name: "span".to_owned(), kind, parent: None, link: None }
    }

    #[test]
    fn a_span_is_a_part_of_its_parent() {
        let parent = TraceContext::parse(PARENT).unwrap().with_state("vendor=1");
        let mut passed_on = None;
        let spans = recorded(|tracer| {
            let span = tracer.start(NewSpan { parent: Some(&parent), ..new(SpanKind::Server) });
            passed_on = Some(span.context());
        });
        let passed_on = passed_on.unwrap();
        assert_eq!((passed_on.trace_id, passed_on.flags, passed_on.tracestate()), (parent.trace_id, 1, Some("vendor=1")));
        assert_ne!(passed_on.span_id, parent.span_id);
        assert_eq!(spans[0].parent_span_id.to_bytes(), parent.span_id);
        assert_eq!(spans[0].span_context.span_id().to_bytes(), passed_on.span_id);
    }

    #[test]
    fn a_linked_span_begins_a_trace_of_its_own() {
        let creation = TraceContext::parse(PARENT).unwrap();
        let spans = recorded(|tracer| {
            let mut span = tracer.start(NewSpan { link: Some(&creation), ..new(SpanKind::Internal) });
            span.set("timer.attempt", 2.into());
            span.fail("503".to_owned());
        });
        let [span] = &spans[..] else { panic!("{spans:?}") };
        assert_ne!(span.span_context.trace_id().to_bytes(), creation.trace_id);
        assert_eq!(span.parent_span_id, SpanId::INVALID);
        assert_eq!(span.links.links[0].span_context.span_id().to_bytes(), creation.span_id);
        assert_eq!((&span.status, span.attributes.len()), (&Status::error("503"), 1));
    }

    #[test]
    fn what_the_sender_does_not_sample_is_not_recorded_and_still_passed_on() {
        let parent = TraceContext::parse(&PARENT.replace("-01", "-00")).unwrap();
        let mut passed_on = None;
        let spans = recorded(|tracer| {
            passed_on = Some(tracer.start(NewSpan { parent: Some(&parent), ..new(SpanKind::Server) }).context());
        });
        assert!(spans.is_empty());
        let passed_on = passed_on.unwrap();
        assert_eq!((passed_on.trace_id, passed_on.flags), (parent.trace_id, 0));
    }
}
