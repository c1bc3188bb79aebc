#!/usr/bin/env bash
# Tries the packages: made twice, read by lintian, installed by dpkg into a directory that is thrown away, started as the unit says, asked,
# backed up, restored, upgraded, removed and purged; and the installer of the archive. Nothing of this machine is changed.
# Usage: scripts/check_package.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/.."

binary=$1
work=$(mktemp -d)
service=
end() {
  if [[ -n $service ]]; then
    kill "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap end EXIT

fail() {
  echo "$1"
  exit 1
}

# What a debugger needs would only take time to compress.
strip --strip-debug -o "$work/timer" "$binary"
export PACKAGE_LEVEL=1 PACKAGE_SBOM=off
scripts/package.sh "$work/timer" "$work/first"
scripts/package.sh "$work/timer" "$work/second"
cmp "$work/first/SHA256SUMS" "$work/second/SHA256SUMS" || fail 'two runs made different packages'
(cd "$work/first" && sha256sum --quiet --check SHA256SUMS)
package=$(echo "$work"/first/timer_*.deb)

if command -v lintian >/dev/null; then
  # The profile of Debian wherever this runs. It looks at files only, so that it may be root.
  lintian --profile debian --fail-on error,warning "$package" >"$work/lintian" 2>&1 || { cat "$work/lintian"; exit 1; }
elif [[ -n ${CI:-} ]]; then
  fail 'it needs lintian'
else
  printf '(without lintian) '
fi

TIMER_RELEASE=file://$work/first TIMER_PREFIX=$work/prefix scripts/install.sh >"$work/installer" 2>&1 || { cat "$work/installer"; exit 1; }
[[ $("$work/prefix/bin/timer" --version) == "$("$work/timer" --version)" ]] || fail 'the installer installed something else'
cp --recursive "$work/first" "$work/damaged"
printf x >>"$(echo "$work"/damaged/timer-*-linux.tar.gz)"
if TIMER_RELEASE=file://$work/damaged TIMER_PREFIX=$work/prefix-2 scripts/install.sh >"$work/installer" 2>&1 || [[ -e $work/prefix-2 ]]; then
  fail 'the installer took a damaged archive'
fi
rm -r "$work/damaged"

# A root without a shell: the scripts of the package run outside of it, and must keep to it.
root=$work/root
mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/triggers"
touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
# `timer` has the name of no other package, and what it depends on is outside of that root.
in_root() { dpkg --root="$root" --force-script-chrootless --force-depends --log=/dev/null "$@" >>"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log"; exit 1; }; }

in_root --install "$package"
for file in usr/bin/timer usr/lib/systemd/system/timer.service usr/share/man/man1/timer.1.gz usr/share/doc/timer/copyright; do
  [[ -s $root/$file ]] || fail "the package lacks $file"
done
[[ $(stat --format=%a "$root/etc/timer/timer.env") == 600 ]] || fail 'the settings, which hold secrets, are not for their owner alone'

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir -p "$root/var/lib/timer"
cat >>"$root/etc/timer/timer.env" <<SETTINGS
API_KEY=check-package-0123456789-0123456789
BIND=127.0.0.1
PORT=$port
DATABASE_URL=sqlite://$root/var/lib/timer/timer.db
SETTINGS
unit=$root/usr/lib/systemd/system/timer.service
command=$(sed -n 's/^ExecStart=//p' "$unit")
[[ $(sed -n 's/^EnvironmentFile=//p' "$unit") == /etc/timer/timer.env ]] || fail 'the unit reads other settings than the package has'

# Root starts the service as a user of its own, as systemd does (DynamicUser): only then is it seen who can read its files.
as_service=()
if [[ $(id --user) == 0 ]] && command -v setpriv >/dev/null; then
  as_service=("$(type -P setpriv)" --reuid 61234 --regid 61234 --clear-groups --no-new-privs)
  chmod 711 "$work"
  chown 61234:61234 "$root/var/lib/timer"
fi
chmod 700 "$root/var/lib/timer"

start() {
  local settings
  mapfile -t settings < <(grep --invert-match --extended-regexp '^(#|$)' "$root/etc/timer/timer.env")
  # Without quotes: the unit's command has arguments.
  (cd "$root/var/lib/timer" && exec env --ignore-environment "${settings[@]}" "${as_service[@]}" "$root"$command) >"$work/service.log" 2>&1 &
  service=$!
  for _ in $(seq 200); do
    if curl --silent --fail --max-time 5 "http://127.0.0.1:$port/ping" >/dev/null; then
      return
    fi
    kill -0 "$service" 2>/dev/null || break
    sleep 0.05
  done
  cat "$work/service.log"
  exit 1
}

stop() {
  kill "$service"
  wait "$service" || { cat "$work/service.log"; exit 1; }
  service=
}

start
curl --silent --fail --max-time 5 "http://127.0.0.1:$port/healthz" >/dev/null || fail 'the installed service is not healthy'
created=$(curl --silent --fail --header 'X-API-Key: check-package-0123456789-0123456789' --json \
  '{"delay":"1d","key":"kept","callback":{"type":"http","url":"http://127.0.0.1:9/"}}' "http://127.0.0.1:$port/timers")
[[ $created == *'timer created successfully'* ]] || fail "no timer could be created: $created"

# As the book says for systemd: by the operator, while the service runs, and while it does not.
database=sqlite://$root/var/lib/timer/timer.db
DATABASE_URL=$database "$root/usr/bin/timer" backup "$work/backup.db" >"$work/backup.log" 2>&1 || { cat "$work/backup.log"; exit 1; }
stop
DATABASE_URL=$database "$root/usr/bin/timer" restore --replace "$work/backup.db" >"$work/backup.log" 2>&1 || { cat "$work/backup.log"; exit 1; }
start
curl --silent --fail --header 'X-API-Key: check-package-0123456789-0123456789' \
  "http://127.0.0.1:$port/namespaces/default/timers/kept" >/dev/null || fail 'the restored database lacks a timer'
stop

# An upgrade keeps the settings and the timers.
in_root --install "$work"/second/timer_*.deb
start
curl --silent --fail --header 'X-API-Key: check-package-0123456789-0123456789' \
  "http://127.0.0.1:$port/namespaces/default/timers/kept" >/dev/null || fail 'the upgrade lost a timer'
stop

in_root --remove timer
[[ ! -e $root/usr/bin/timer ]] || fail 'removing left the program'
[[ -s $root/etc/timer/timer.env && -s $root/var/lib/timer/timer.db ]] || fail 'removing took settings or timers'
in_root --purge timer
[[ ! -e $root/etc/timer && ! -e $root/var/lib/timer ]] || fail 'purging left settings or timers'
