#!/usr/bin/env bash
# Runs a command as on a machine with only the base system, Node, npm and git: no bubblewrap, no peer of the tests.
set -euo pipefail

# Programs that tests are held against, or that Berth uses where they are there. Whoever lets a test use a new one adds
# it here: otherwise nobody sees that the test fails without it.
peers=(
  bwrap slirp4netns pasta passt pasta.avx2 passt.avx2 nft ip podman runc crun docker
  'named*' rndc delv dig host nslookup nsupdate mdig arpaname 'dnssec-*' 'nsd*' 'knot*' kdig
  khost knsupdate 'kzone*' keymgr kjournalprint
  'pdns*' 'unbound*' drill 'ldns-*' dnsperf resperf zonemaster-cli
  'pebble*' lego certbot openssl certutil 'chrom*' curl wget git-lfs
  caddy nginx wrk h2load haproxy promtool radosgw go gofmt 'python*' sshd ssh 'ssh-*'
)

[ $# -gt 0 ] || { echo "usage: $0 command [argument ...]" >&2; exit 2; }
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
# Everybody may pass: tests start programs as other users too.
chmod 755 "$programs"

# The first of a name counts, as in the PATH itself.
IFS=: read -ra places <<< "$PATH"
for place in "${places[@]}"; do
  [ -d "$place" ] || continue
  { find -L "$place" -mindepth 1 -maxdepth 1 -type f -perm /111 -print0 |
    xargs -0 -r ln -s -t "$programs" || :; } 2> /dev/null
done
for name in "${peers[@]}"; do
  # Unquoted: a name may be a pattern.
  rm -f "$programs"/$name
done
for name in node npm git sh; do
  [ -e "$programs/$name" ] || { echo "$0: $name is not in the PATH" >&2; exit 1; }
done

# Where peers are required, a missing one is a failure; here they are all missing.
env -u BERTH_REQUIRE_PEERS PATH="$programs" "$@"
