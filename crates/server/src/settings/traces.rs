use clap::Args;
use domain::{Firing, Invalid};
use traces::{Config, Sampler};

use crate::values::{Deferred, Secret, Setting, choice, number};

/// Under the names that OpenTelemetry gives them, so that what is set for all services of an installation holds for this one.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceOptions {
    /// Base URL of an OpenTelemetry collector that takes traces over OTLP/HTTP, such as http://localhost:4318; unset means that no traces are recorded, and that those of clients are passed on to receivers
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL", value_parser = endpoint())]
    pub otlp_endpoint: Option<String>,
    /// The full URL for traces, where it is another than the base URL with /v1/traces
    #[arg(long, env = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", value_name = "URL", value_parser = endpoint())]
    pub otlp_traces_endpoint: Option<String>,
    /// Headers that the collector asks for: NAME=VALUE, with commas between, values percent-encoded
    #[arg(long, env = "OTEL_EXPORTER_OTLP_HEADERS", hide_env_values = true, value_name = "PAIRS", value_parser = secret_pairs())]
    pub otlp_headers: Option<Secret>,
    /// What the spans are said to come from
    #[arg(long, env = "OTEL_SERVICE_NAME", value_name = "NAME", default_value = "timer")]
    pub otel_service_name: String,
    /// Further attributes of the service: NAME=VALUE, with commas between, values percent-encoded
    #[arg(long, env = "OTEL_RESOURCE_ATTRIBUTES", value_name = "PAIRS", value_parser = pairs())]
    pub otel_resource_attributes: Option<Pairs>,
    /// Which traces are recorded; parentbased: as the client decided, where it sends a trace along
    #[arg(long, env = "OTEL_TRACES_SAMPLER", value_name = "SAMPLER", value_parser = sampler().deferred(), default_value = "parentbased_always_on")]
    pub otel_traces_sampler: Deferred<Chosen>,
    /// The share of traces that a traceidratio sampler records, 0 to 1
    #[arg(long, env = "OTEL_TRACES_SAMPLER_ARG", value_name = "RATIO", value_parser = number(0.0..=1.0).deferred(), default_value = "1")]
    pub otel_traces_sampler_arg: Deferred<f64>,
    /// How a firing belongs to the creation of its timer. link: a trace of its own with a link; parent: a part of the same trace
    #[arg(long, env = "TRACE_FIRING", value_name = "HOW", value_parser = firing(), default_value = "link")]
    pub trace_firing: Firing,
}

/// Names with their values.
#[derive(Debug, Clone)]
pub struct Pairs(Vec<(String, String)>);

/// A sampler, and which traces it records at the beginning of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    is_parent_based: bool,
    root: Root,
}

#[derive(Debug, Clone, Copy)]
enum Root {
    On,
    Off,
    Ratio,
}

impl TraceOptions {
    /// Where traces are sent, if they are recorded.
    pub fn config(&self) -> Result<Option<Config>, Invalid> {
        let of_base = || self.otlp_endpoint.as_ref().map(|base| format!("{}/v1/traces", base.trim_end_matches('/')));
        let Some(endpoint) = self.otlp_traces_endpoint.clone().or_else(of_base) else { return Ok(None) };
        let Chosen { is_parent_based, root } = self.otel_traces_sampler.get()?;
        let ratio = match root {
            Root::On => 1.0,
            Root::Off => 0.0,
            Root::Ratio => self.otel_traces_sampler_arg.get()?,
        };
        let headers = self.otlp_headers.as_ref().map(|pairs| Pairs::parse("OTEL_EXPORTER_OTLP_HEADERS", pairs.expose()));
        Ok(Some(Config {
            endpoint,
            headers: headers.transpose()?.map(|Pairs(pairs)| pairs).unwrap_or_default(),
            service_name: self.otel_service_name.clone(),
            service_version: env!("CARGO_PKG_VERSION").to_owned(),
            resource_attributes: self.otel_resource_attributes.clone().map(|Pairs(pairs)| pairs).unwrap_or_default(),
            sampler: Sampler { is_parent_based, ratio },
            firing: self.trace_firing,
        }))
    }
}

impl Pairs {
    fn parse(setting: &str, text: &str) -> Result<Self, Invalid> {
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            let name = name.trim();
            (!name.is_empty()).then(|| Some((name.to_owned(), percent_decoded(value.trim())?)))?
        };
        let pairs: Option<Vec<_>> = text.split(',').filter(|text| !text.trim().is_empty()).map(pair).collect();
        pairs.map(Self).ok_or_else(|| Invalid::new(setting, "must be NAME=VALUE pairs with commas between"))
    }
}

/// The text that stands for its bytes, some of which may be written as a per cent sign and two digits.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

fn endpoint() -> Setting<String> {
    Setting::new(|setting, text| {
        let is_http = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        match text.parse::<http::Uri>() {
            Ok(uri) if is_http.is_some() && uri.host().is_some_and(|host| !host.is_empty()) => Ok(text.to_owned()),
            _ => Err(Invalid::new(setting, "must be a URL that begins with http:// or https://")),
        }
    })
}

fn pairs() -> Setting<Pairs> {
    Setting::new(Pairs::parse)
}

fn secret_pairs() -> Setting<Secret> {
    Setting::new(|setting, text| Pairs::parse(setting, text).map(|_| Secret::new(text.to_owned())))
}

fn sampler() -> Setting<Chosen> {
    const SAMPLERS: &[&str] = &[
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
    ];
    choice(SAMPLERS, |text| {
        let root_text = text.strip_prefix("parentbased_");
        let root = match root_text.unwrap_or(text) {
            "always_on" => Root::On,
            "always_off" => Root::Off,
            "traceidratio" => Root::Ratio,
            _ => return None,
        };
        Some(Chosen { is_parent_based: root_text.is_some(), root })
    })
}

fn firing() -> Setting<Firing> {
    choice(&["link", "parent"], |text| match text {
        "link" => Some(Firing::Linked),
        "parent" => Some(Firing::Continued),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_opentelemetry_writes_them() {
        let read = |text| Pairs::parse("P", text).map(|Pairs(pairs)| pairs).ok();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read("a=1, b = x%20y ,"), Some(vec![pair("a", "1"), pair("b", "x y")]));
        assert_eq!(read("authorization=Basic%20YTpi=="), Some(vec![pair("authorization", "Basic YTpi==")]));
        assert_eq!(read("a=100%"), Some(vec![pair("a", "100%")]));
        for bad in ["a", "=1", "a=%ff"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
