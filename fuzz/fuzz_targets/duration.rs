#![no_main]

#[path = "../../crates/domain/tests/properties/checks.rs"]
#[allow(dead_code, reason = "each target makes one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|text: &str| checks::duration(text));
