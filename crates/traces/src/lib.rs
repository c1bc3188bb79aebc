//! Traces for OpenTelemetry: spans are collected in memory and sent to a collector in batches, over OTLP/HTTP.
//!
//! ```text
//!   api, delivery ──▶ domain::Tracer ──▶ spans ──▶ a queue (bounded) ──▶ a thread ──▶ the collector
//! ```
//!
//! The other crates know [`domain::Tracer`] only; here alone is OpenTelemetry. What the collector does not take in time is dropped: no
//! request and no call ever waits for it.

mod exporter;
mod tracer;

pub use exporter::{Config, Sampler, SetupError, Traces};
