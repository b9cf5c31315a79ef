#!/bin/sh
# Start the memory as tools of the Model Context Protocol, where the engine is installed; ends with the client.

[ -z "$CORTEX_INTERNAL" ] || exit 0    # a session that Cortex itself started asks its memory nothing

home=${CORTEX_HOME:-${HOME:-/dev/null}/.cortex}
case $home in
    s3://* | file://*)    # this machine's copy of a store elsewhere, named as home.py names it
        name=${home%%://*} rest=${home#*://}
        while [ -n "$rest" ]; do
            part=${rest%%/*}
            [ -z "$part" ] || name=$name+$part
            case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
        done
        home=${HOME:-/dev/null}/.cortex-remote/$name
        ;;
esac
# The setting mcp.in_plugin, as `cortex config` hands it to the hooks.
case ${CORTEX_MCP_IN_PLUGIN:-} in
    "") grep -q '^ "mcp.in_plugin": false' "$home/hook_settings.json" 2>/dev/null && exit 0 ;;
    [Ff]alse | FALSE | [Nn]o | NO | [Oo]ff | OFF | 0) exit 0 ;;
esac
engine=
[ -f "$home/engine" ] && { IFS= read -r engine <"$home/engine"; } 2>/dev/null
[ -x "$engine" ] || engine=$(command -v cortex) || {
    echo "The memory's tools need the engine: make install in a clone of Cortex, then cortex setup" >&2
    exit 1
}
exec "$engine" mcp
