#!/bin/sh
# Lints the chart and writes what it renders, beside the digests of what that was rendered from: so the objects can be
# read and checked where there is no Helm. HELM names another Helm 3 than that of the path.
set -eu
cd "$(dirname "$0")"
helm=${HELM:-helm}
"$helm" lint --strict kuayu --set tokens.existingSecret=kuayu-tokens
"$helm" lint --strict kuayu --values values-postgresql.yaml
"$helm" template kuayu kuayu --namespace kuayu --set tokens.existingSecret=kuayu-tokens > rendered/sqlite.yaml
"$helm" template kuayu kuayu --namespace kuayu --values values-postgresql.yaml > rendered/postgresql.yaml
find kuayu values-postgresql.yaml -type f | LC_ALL=C sort | xargs sha256sum > rendered/sources.sha256
