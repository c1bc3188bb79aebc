# syntax=docker/dockerfile:1

FROM rust:1.95-bookworm AS build
# The C library of a static program, and the certificates that callbacks over https are checked against: the newest there are, hence no
# versions.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates musl-tools \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# Of the program, beyond those that it has by default: `--build-arg FEATURES=dynamodb` for timers in DynamoDB.
ARG FEATURES=
# A release has the program already: it takes another directory for this stage (`--build-context build=…`), laid out by the same script.
# The caches outlive the layer: after a change only our own crates are compiled again. They are not part of the image, so
# the binary is copied out of them in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,sharing=locked \
    target="$(uname -m)-unknown-linux-musl" \
    && rustup target add "$target" \
    && cargo build --release --locked --bin timer --features "$FEATURES" --target "$target" \
    && scripts/image_root.sh "target/$target/release/timer" /out


# Nothing but the program: no shell, no package manager, nothing to keep up to date.
FROM scratch
COPY --from=build /out/root /
# Copying keeps no owner; this directory is for the user below.
COPY --from=build --chown=10001:10001 /out/state /var/lib/

# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
ENV PATH=/usr/bin
# Without a database server the timers are kept in timer.db, here.
WORKDIR /var/lib/timer
VOLUME /var/lib/timer
EXPOSE 8080

# A health answer may take five seconds when the database hangs.
HEALTHCHECK --interval=10s --timeout=7s --start-period=30s --retries=3 CMD ["timer", "healthcheck"]

ENTRYPOINT ["timer"]
CMD ["serve"]
