#!/bin/sh
# installation.sh up|down BUILD PREFIX_FILE: installs BUILD into a new directory whose name goes to
# PREFIX_FILE, or removes it.
set -eu
case $1 in
  up)
    "$0" down "$2" "$3"
    prefix=$(mktemp -d /var/tmp/stockade-e2e-XXXXXX)
    chmod 755 "$prefix"
    echo "$prefix" >"$3"
    cmake --install "$2" --prefix "$prefix" >/dev/null
    "$prefix/bin/stockade" --version
    ;;
  down)
    if [ -f "$3" ]; then
      prefix=$(cat "$3")
      case $prefix in /var/tmp/stockade-e2e-*) rm -rf "$prefix" ;; esac
      rm -f "$3"
    fi
    ;;
esac
