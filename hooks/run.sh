#!/bin/sh
# Start a hook with a Python that is looked for once and remembered: `run.sh EVENT`, the client's JSON on stdin.
# EVENT `statusline` is no event: it prints the status line.
# Silent and exit 0 whatever happens: any other end shows the user a red notice at every event.

umask 077    # the home, where this makes it, is for its owner alone
[ -z "$CORTEX_INTERNAL" ] || exit 0    # a session that Cortex itself started is not captured

case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
home=$CORTEX_HOME
case $home in *://*) home= ;; esac    # the store is elsewhere; the interpreter is this machine's
memo_dir=${CLAUDE_PLUGIN_DATA:-${home:-${HOME:-/dev/null}/.cortex}}
memo=$memo_dir/python

# Print the real path of the first Python that works. A pyenv shim costs 170 ms a start, the interpreter
# behind it 8 ms, so what is remembered is never a shim or a link.
find_python() {
    for name in python3 python /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3; do
        found=$(command -v "$name") || continue
        case $(uname -s)$found in
            # Without the developer tools this file only opens a dialog that offers to install them.
            Darwin/usr/bin/python3) xcode-select -p >/dev/null 2>&1 || continue ;;
        esac
        "$found" -I -S -c 'import json, os, sys
sys.version_info < (3, 9) and sys.exit(1)
print(os.path.realpath(sys.executable))' </dev/null 2>/dev/null && return 0
    done
    return 1
}

python=
[ -f "$memo" ] && { IFS= read -r python <"$memo"; } 2>/dev/null
case $python in /*) ;; *) python= ;; esac
if [ ! -f "$python" ] || [ ! -x "$python" ]; then
    python=$(find_python) || exit 0
    { mkdir -p "$memo_dir" && printf '%s\n' "$python" >"$memo.$$" && mv -f "$memo.$$" "$memo"; } 2>/dev/null ||
        rm -f "$memo.$$" 2>/dev/null
fi

case $1 in statusline) script=statusline ;; *) script=hook ;; esac

# Not by `exec`: where the start itself fails (a file for another processor, a broken install), bash would
# end with 126, and the fork that avoids it costs half a millisecond. The scripts themselves always exit 0.
"$python" -I -S "$here/$script.py" "$1" 2>/dev/null || rm -f "$memo" 2>/dev/null
exit 0
