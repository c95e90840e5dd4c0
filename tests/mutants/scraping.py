"""Wrong in fetching pages."""

from minimal_server.core import Json, Tenant
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-010")
class AllowListIsIgnored(MinimalServer):
    """Any address may be a target; so that this does no harm, only the allowed ones are fetched."""

    @override
    def may_scrape(self, url: str) -> bool:
        return True

    @override
    def scrape(self, tenant: Tenant, target: Json) -> Json:
        return super().scrape(tenant, target) if super().may_scrape(target["url"]) else {"state": "pending"}


@breaks("MET-002", "MET-010")
class ScrapedOnce(MinimalServer):
    """A target is scraped when it is registered and never again."""

    @override
    def period(self, target: Json) -> float:
        return 86_400.0


@breaks("MET-010")
class FailuresAreHidden(MinimalServer):
    """A target that cannot be scraped is shown as scraped."""

    @override
    def scrape(self, tenant: Tenant, target: Json) -> Json:
        outcome = super().scrape(tenant, target)
        return {"state": "succeeded", "last_scrape_at": outcome["last_scrape_at"]}
