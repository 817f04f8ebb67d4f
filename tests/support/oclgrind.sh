#!/usr/bin/env bash
# The kernels under Oclgrind: data races and accesses out of bounds. Interprets every work-item, so a budget bounds it.
# usage: oclgrind.sh CONFORMANCE PLUGIN [SECONDS]
set -euo pipefail
conformance=$1 plugin=$2 seconds=${3:-900}
log=$(mktemp)
export OCLTENSOR_CACHE_DIR=$(mktemp -d)
status=0
oclgrind --data-races --log "$log" "$conformance" --plugin "$plugin" --no-abi --quick --budget "$seconds" || status=$?
if grep -q -E 'Invalid|race' "$log"; then
  sort "$log" | uniq -c | sort -rn | head -40
  echo "Oclgrind reports defects: $log" >&2
  exit 1
fi
echo "Oclgrind: no race, no access out of bounds"
exit "$status"
