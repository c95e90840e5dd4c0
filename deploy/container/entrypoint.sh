#!/bin/sh
# Runs kuayu with secrets from files: where KUAYU_TOKEN_FILE or PGPASSWORD_FILE names one, the variable without _FILE
# gets what stands in it. So no secret stands in a command, nor in what `docker inspect` shows.
set -eu
for name in KUAYU_TOKEN PGPASSWORD; do
    eval "file=\${${name}_FILE:-}"
    if [ -n "$file" ]; then
        export "$name=$(cat "$file")"
        unset "${name}_FILE"
    fi
done
exec kuayu "$@"
