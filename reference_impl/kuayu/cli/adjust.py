"""``kuayu adjust``: whether and how to adjust jobs as load and latency change, computed here or by a service."""

from typing import Annotated

import orjson
import typer

from kuayu.cli.answers import answered, check_url
from kuayu.cli.documents import content_of, read_document
from kuayu.cli.probe import Token
from kuayu_schemas.models import Adjustment, AdjustmentRequest

CALLED = "request to adjust jobs"
HINT = "give each name once, use only names that the request holds, and values that go together"


def adjust(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON of the class AdjustmentRequest; - for stdin.")],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Service to ask; computed here by default.")] = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell whether and how to adjust jobs as load and latency change.

    Prints which loads and latencies have changed, and for each job how many parts of a step each domain is to compute
    from when on, and by which collective its replicas are to agree.
    """
    from kuayu.cli.adjust_tables import show

    check_url(url)
    request = read_document(file, content_of(file, CALLED), AdjustmentRequest, CALLED)

    def here() -> Adjustment:
        from kuayu.resilience.adjustment.adjusting import adjustment

        return Adjustment.model_validate_json(orjson.dumps(adjustment(request.to_wire())))

    report = answered(here, lambda client: client.adjust(request), url, token, called="request", hint=HINT)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
