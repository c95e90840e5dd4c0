#!/bin/sh
# Makes what compose.yaml reads from ./secrets, where it is not there yet: a password of PostgreSQL, and three tokens of
# the tenant `default`, for people (token) and for the two domains. The service gets their SHA-256 alone. To replace a
# token, remove its file and run this again; the service reads its file by itself, and a domain is restarted.
set -eu
umask 077
cd "$(dirname "$0")"
mkdir -p secrets/service
for name in postgres_password token token_domain_a token_domain_b; do
    [ -s "secrets/$name" ] || head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n' > "secrets/$name"
done
for name in token token_domain_a token_domain_b; do
    printf 'default=sha256:%s\n' "$(sha256sum < "secrets/$name" | cut -d ' ' -f 1)"
done > secrets/service/tokens.new
mv secrets/service/tokens.new secrets/service/tokens
# The user of the image reads them: user 10001, where Docker runs as root and containers' users are those of the host.
[ "$(id -u)" -ne 0 ] || chown -R 10001:10001 secrets
echo "secrets are in $(pwd)/secrets; the token for people is in its file token"
