# To be sourced: lets clippy compile our crates, so that the build of the tests is the lint as well, and nothing is compiled twice.
# `cargo clippy` does the same with `cargo check`, whose results no test can use.
RUSTC_WORKSPACE_WRAPPER=$(rustc --print sysroot)/bin/clippy-driver
# How `cargo clippy` passes "-D warnings" on.
CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
