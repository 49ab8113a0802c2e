#!/bin/sh
# Compares the Node binary that `npm ci` installed with build/node.lock.json. The package `node` downloads it in an
# install script, which the digests of package-lock.json do not cover. This is a shell script because a Node program
# would be judged by the binary under test.
#
# usage: verify-node.sh [BINARY [ARCHITECTURE]]
set -eu
build=$(dirname "$0")
binary=${1:-$build/../node_modules/node/bin/node}
machine=${2:-$(uname -m)}
if [ "$(uname -s)" != Linux ]; then
  echo "node: not compared on $(uname -s), where no image is built" >&2
  exit 0
fi
case $machine in
x86_64) architecture=x64 ;;
aarch64) architecture=arm64 ;;
*) architecture=$machine ;;
esac
expected=$(sed -n "s/.*\"$architecture\": \"\([0-9a-f]\{64\}\)\".*/\1/p" "$build/node.lock.json")
if [ -z "$expected" ]; then
  echo "node: build/node.lock.json has no digest for $architecture; see CONTRIBUTING.md for how to add one" >&2
  exit 1
fi
if [ ! -f "$binary" ]; then
  echo "node: $binary is missing: run \`npm ci\`" >&2
  exit 1
fi
found=$(sha256sum "$binary" | cut -d ' ' -f 1)
if [ "$found" != "$expected" ]; then
  cat >&2 <<END
node: $binary is not the Node of build/node.lock.json: refused
  expected SHA-256 $expected
  found            $found
Do not run it. Remove node_modules and run \`npm ci\`; if this repeats, the file was exchanged at its source.
END
  exit 1
fi
