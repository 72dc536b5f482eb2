#!/usr/bin/env bash
# Run the tests, then compare the step, and fail where a rule holds. Its inputs are variables, so that it runs anywhere:
# FUNCTION, FAIL_IF (a rule a line), OPTIONS, TESTS and PYTHON, as action.yml says. The report, the JUnit file and the
# summary lie in $RUNNER_TEMP/graphduel; the summary is also appended to $GITHUB_STEP_SUMMARY.
set -euo pipefail
python=${PYTHON:-python}
out=${RUNNER_TEMP:-$(mktemp -d)}/graphduel
mkdir -p "$out"

if [ -n "${TESTS:-}" ]; then
  # shellcheck disable=SC2086  (several arguments)
  "$python" -m pytest --quiet --junit-xml "$out/tests.xml" $TESTS
fi

rules=()
while IFS= read -r rule; do
  if [ -n "${rule//[[:space:]]/}" ]; then rules+=(--fail-if "$rule"); fi
done <<<"${FAIL_IF:-}"

code=0
# shellcheck disable=SC2086  (several options)
"$python" -m compare compare "$FUNCTION" ${OPTIONS:-} "${rules[@]}" \
  --out "$out/report" --junit "$out/junit.xml" --summary "$out/summary.md" || code=$?
if [ -f "$out/summary.md" ]; then cat "$out/summary.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"; fi
if [ "$code" = 3 ]; then
  echo "The times do not tell the modes apart; no rule was given, so the gate passes."
  code=0
fi
exit "$code"
