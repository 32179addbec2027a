#!/usr/bin/env bash
# Runs what lies beside this script on a machine that has an NVIDIA driver and no Rust.
#
#   ./run.sh                    every test, then every example on the GPU
#   ./run.sh tests [FILTER]     the test executables; FILTER goes to each of them
#   ./run.sh examples [ARG..]   the examples, with `--device cuda ARG..`
#   ./run.sh bench [ARG..]      the benchmarks; their Python peers need torch and triton
#   ./run.sh sanitize [FILTER]  the GPU tests under compute-sanitizer, a module a process; TOOLS names the tools (all four by default),
#                               JOBS how many processes run at a time (8 by default)
#
# Ends with `N passed, N failed, N skipped`; the exit status is 1 if anything failed.
# Whole outputs are kept in logs/. TIMEOUT (seconds, 600 by default) limits each process.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
unpack() { tar -xJf programs.tar.xz || python3 -c 'import tarfile; tarfile.open("programs.tar.xz").extractall()'; }
[ -e gpu-tests.txt ] || unpack || exit 2
mkdir -p logs
# What is compiled and tuned is kept here, as it would be in a user's own cache directory; each run begins with none.
if [ -z "${GALATEA_CACHE:-}" ]; then
    rm -rf cache
    export GALATEA_CACHE=$PWD/cache
fi
passed=0 failed=0 skipped=0

# The number before a word in a log's `test result:` lines, summed up.
sum() {
    awk -v word="$2" '/test result: /{ gsub(/;/, ""); for (i = 2; i <= NF; i++) if ($i == word) s += $(i - 1) } END { print s + 0 }' "$1"
}

# line NAME VERDICT SECONDS DETAIL
line() {
    printf '%-48s %-6s %5ss  %s\n' "$1" "$2" "$3" "$4"
}

# start NAME COMMAND..: runs one test executable; its output goes to logs/NAME.log, its status and seconds to logs/NAME.ended.
start() {
    local name=$1 start=$SECONDS
    shift
    timeout "${TIMEOUT:-600}" "$@" >"logs/$name.log" 2>&1 </dev/null
    # In one step, so that who waits for the file finds both.
    echo "$? $((SECONDS - start))" >"logs/$name.ending"
    mv "logs/$name.ending" "logs/$name.ended"
}

# judge NAME: adds the sums of what has run to the total.
judge() {
    local name=$1 log=logs/$1.log status seconds ok bad ignored verdict=ok
    read -r status seconds <"logs/$name.ended"
    ok=$(sum "$log" passed) bad=$(sum "$log" failed) ignored=$(sum "$log" ignored)
    # A crash, a timeout or a sanitizer's finding shows in the status alone.
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + ignored))
    if [ "$bad" -ne 0 ]; then verdict=FAILED; fi
    line "$name" "$verdict" "$seconds" "$ok passed, $bad failed, $ignored skipped"
    if [ "$bad" -ne 0 ]; then
        echo "--- exit status $status; what a sanitizer found and the end of $log:"
        grep -m 20 '^========= ' "$log"
        tail -n 20 "$log"
        echo "---"
    fi
}

run_tests() {
    start "$@"
    judge "$1"
}

# run_program NAME COMMAND..: a program that checks itself counts as one test.
run_program() {
    local name=$1 log=logs/$1.log start=$SECONDS
    shift
    if timeout "${TIMEOUT:-600}" "$@" >"$log" 2>&1 </dev/null; then
        passed=$((passed + 1))
        line "$name" ok $((SECONDS - start)) "$*"
        sed 's/^/    /' "$log"
    else
        failed=$((failed + 1))
        line "$name" FAILED $((SECONDS - start)) "$*"
        tail -n 40 "$log"
    fi
}

tests() {
    for file in tests/*; do
        [ -f "$file" ] && [ -x "$file" ] && run_tests "$(basename "$file")" "./$file" "$@"
    done
}

examples() {
    for file in examples/*; do
        [ -x "$file" ] && run_program "$(basename "$file")" "./$file" --device cuda "$@"
    done
}

bench() {
    for file in benches/*; do
        case $file in *.py) continue ;; esac
        [ -f "$file" ] && [ -x "$file" ] || continue
        # Not through a log alone: a benchmark is long, and is watched.
        if "./$file" "$@" 2>&1 | tee "logs/$(basename "$file").log"; [ "${PIPESTATUS[0]}" -eq 0 ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
    done
}

# modules FILE: the modules of a test executable's GPU tests, each as a filter; nothing if it has tests outside of modules.
modules() {
    local names
    names=$("./tests/$1" --list 2>/dev/null </dev/null | sed -n 's/^\[[^]]*\] *//; s/: test$//p' | grep -v '^\(cpu\|sim\)\b')
    grep -qv '::' <<<"$names" || sed 's/::[^:]*$/::/' <<<"$names" | sort -u
}

sanitize() {
    local sanitizer tool file module name
    sanitizer=${COMPUTE_SANITIZER:-$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)}
    if [ -z "$sanitizer" ]; then
        echo "compute-sanitizer is neither in PATH nor named by COMPUTE_SANITIZER" >&2
        exit 2
    fi
    # What is watched is loaded as the compiler wrote it.
    export GALATEA_CACHE=off
    # Some tests of an executable may find nothing to do on the GPU: no error by itself. Others provoke errors of the driver, crash
    # a process on purpose, compare times, or count the memory that is free: they speak for themselves in the plain run.
    local quiet=(--error-exitcode 99 --require-cuda-init no --report-api-errors no)
    local skip=(--test-threads 1 --skip cpu:: --skip sim: --skip a_crash_is_reported --skip a_launch_costs_little --skip a_graph_costs_less
        --skip the_fastest_configuration --skip a_kernel_is_as_fast --skip the_roof_is_above --skip follow_each_other --skip leaves_no_memory_taken
        --skip benchmarks_see_the_bandwidth --skip machine_code_that_is_wrong --skip machine_code_and_records_serve)
    # racecheck loses track of launches that several threads make at once, and counts that as an error of its own; it sees the same kernels elsewhere.
    local at_once=(--skip many_threads_launch --skip many_graphs_on_many_threads --skip threads_launch_beside_each_other)
    local waiting=()
    # Judges what has ended, in the order in which it was started.
    collect() {
        while [ ${#waiting[@]} -gt 0 ] && [ -e "logs/${waiting[0]}.ended" ]; do
            judge "${waiting[0]}"
            waiting=("${waiting[@]:1}")
        done
    }
    for tool in ${TOOLS:-memcheck initcheck synccheck racecheck}; do
        local left_out=("${skip[@]}")
        [ "$tool" != racecheck ] || left_out+=("${at_once[@]}")
        while read -r file; do
            for module in $(if [ $# -gt 0 ]; then echo "$1"; else modules "$file" | grep . || echo .; fi); do
                while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-8}" ]; do
                    wait -n
                    collect
                done
                name=$tool-$file
                [ "$module" = . ] || name=$name-${module//:/}
                [ "$module" = . ] && module=
                waiting+=("$name")
                rm -f "logs/$name.ended"
                start "$name" "$sanitizer" --tool "$tool" "${quiet[@]}" "./tests/$file" "${left_out[@]}" ${module:+"$module"} &
            done
        done <gpu-tests.txt
    done
    wait
    collect
}

case ${1:-all} in
    all) tests; examples ;;
    tests | examples | bench | sanitize) "$@" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' run.sh; exit 2 ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
