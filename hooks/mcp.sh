#!/bin/sh
# Start the memory as tools of the Model Context Protocol, where the engine is installed; ends with the client.

[ -z "$CORTEX_INTERNAL" ] || exit 0    # a session that Cortex itself started asks its memory nothing

home=${CORTEX_HOME:-${HOME:-/dev/null}/.cortex}
engine=
[ -f "$home/engine" ] && { IFS= read -r engine <"$home/engine"; } 2>/dev/null
[ -x "$engine" ] || engine=$(command -v cortex) || {
    echo "The memory's tools need the engine: uv tool install cortex-lake, then cortex setup" >&2
    exit 1
}
exec "$engine" mcp
