# syntax=docker/dockerfile:1

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The caches outlive the layer: after a change only our own crates are compiled again. They are not part of the image, so
# the binary is copied out of them in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo build --release --locked --bin timer \
    && install -D target/release/timer /out/timer


FROM debian:bookworm-slim
# Callbacks over https are checked against the certificates of the system: the newest there are, hence no version.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 timer \
    && useradd --system --uid 10001 --gid timer --home-dir /var/lib/timer --shell /usr/sbin/nologin timer \
    && install --directory --owner=timer --group=timer --mode=0750 /var/lib/timer

COPY --from=build /out/timer /usr/local/bin/timer

# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
# Without a database server the timers are kept in timer.db, here.
WORKDIR /var/lib/timer
VOLUME /var/lib/timer
EXPOSE 8080

# A health answer may take five seconds when the database hangs.
HEALTHCHECK --interval=10s --timeout=7s --start-period=30s --retries=3 CMD ["timer", "healthcheck"]

ENTRYPOINT ["timer"]
CMD ["serve"]
