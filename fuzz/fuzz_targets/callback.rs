#![no_main]

#[path = "../../crates/domain/tests/properties/checks/callback.rs"]
mod callback;

libfuzzer_sys::fuzz_target!(|text: &str| callback::check(text));
