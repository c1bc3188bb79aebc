#!/bin/sh
# Lays out what the image consists of, for the Dockerfile, and for the release, which has the program already: the files of the image in
# DIRECTORY/root, and in DIRECTORY/state the directory that belongs to the user of the service.
# Usage: scripts/image_root.sh PROGRAM DIRECTORY
set -eu

install -D --mode=755 "$1" "$2/root/usr/bin/timer"
# Callbacks over https are checked against these.
install -D --mode=644 /etc/ssl/certs/ca-certificates.crt "$2/root/etc/ssl/certs/ca-certificates.crt"
install --directory "$2/root/var/lib"
install --directory --mode=0750 "$2/state/timer"
