# Sourced by `run` and `nightly`, which define a function `step_NAME` for each of their steps.
#
# Each step runs in a shell of its own, which ends at the first command that fails. At the end, a table has the seconds of
# each step, and another one the slowest tests. The same numbers are in the JSON file whose path is printed.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Hundreds of processes start below. Without bytecode, each would compile the package again.
unset PYTHONDONTWRITEBYTECODE
bin=.venv/bin
export reports=${reports:-$PWD/.bench/ci/$(basename "$0")}
# A test that hangs ends its worker after 5 minutes, and is named.
limit=(-o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true)
measured=($bin/coverage run)

make_() { make --no-print-directory "$@"; }

# Print the options of pytest that keep the seconds of each test for the table. $1 names the file.
times() { printf '%s' "--junitxml=$reports/$step-$1.xml"; }

# Run a group of tests with coverage. $1 names it, and the other arguments are those of pytest.
# A limit of time may be missed where processes compete for the cores. So the second run is alone, and decides.
suite() {
	local name=$1
	shift
	"${measured[@]}" -m pytest -q -n auto --dist loadfile "${limit[@]}" "$(times "$name")" "$@" && return
	echo "!!!! THESE TESTS FAILED ONCE, and run again"
	"${measured[@]}" -m pytest -q "${limit[@]}" "$(times "$name-again")" "$@" --last-failed --last-failed-no-failures none --maxfail=5
}

# Install Debian's packages of the programs that are missing.
programs() {
	local missing=()
	for program in "$@"; do command -v "$program" || missing+=("$program"); done
	[ ${#missing[@]} = 0 ] && return
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update --quiet=2
		for program in "${missing[@]}"; do
			apt-get install --quiet=2 --yes "$program" >/dev/null || echo "!!!! $program CANNOT BE INSTALLED: its tests are left out"
		done
	else
		echo "!!!! ${missing[*]} MISSING, and only root with apt-get could install them here: their tests are left out"
	fi
}

report() { python3 -m checks.timings "$reports"; }

# Run one step, print its seconds, and keep them with its exit code, which is in `code` then.
# Never call this in a condition, before `||` for example: bash would ignore `set -e` in the whole step.
run_step() {
	local began=$SECONDS
	step=$1
	rm -f "$reports/$step"-*.xml
	printf '\n== %s\n' "$step"
	(
		set -e
		"step_$step"
	)
	code=$?
	printf '%s\t%s\t%s\n' "$step" $((SECONDS - began)) "$code" >>"$reports/steps.tsv"
	printf -- '-- %s: %s s, exit code %s\n' "$step" $((SECONDS - began)) "$code"
}
