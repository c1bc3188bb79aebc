#![no_main]

#[path = "../../crates/domain/tests/properties/checks/duration.rs"]
mod duration;

libfuzzer_sys::fuzz_target!(|text: &str| duration::check(text));
