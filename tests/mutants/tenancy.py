"""Wrong in keeping tenants apart."""

from collections.abc import Mapping

from minimal_server.core import Json, Refusal, Tenant
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-019", "COM-022", "MET-017")
class TenantsShareEverything(MinimalServer):
    """Tokens are checked, and every tenant sees every other's."""

    @override
    def authorise(self, headers: Mapping[str, str]) -> Tenant:
        super().authorise(headers)
        return self.tenant("")


@breaks("COM-019")
class OthersAreForbidden(MinimalServer):
    """Another tenant's resource is answered with 401, which tells that it is there."""

    @override
    def find(self, tenant: Tenant, kind: str, name: str) -> Json:
        mine = name in self.held(tenant, kind)
        if not mine and any(name in self.held(other, kind) for other in self.tenants.values()):
            raise Refusal("unauthorised", "this belongs to somebody else")
        return super().find(tenant, kind, name)


@breaks("COM-019")
class TokensAreNotAskedFor(MinimalServer):
    """Whoever shows no token is the first tenant."""

    @override
    def authorise(self, headers: Mapping[str, str]) -> Tenant:
        if "authorization" not in headers and self.tokens:
            return self.tenant(next(iter(self.tokens.values())))
        return super().authorise(headers)
