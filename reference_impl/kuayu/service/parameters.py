"""Query parameters, closed like bodies: one that the operation does not know is refused."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kuayu.service import instants
from kuayu.service.problems import invalid_parameter
from kuayu_schemas import schema
from kuayu_schemas.models import Identifier, SubjectKind

INSTANT_PATTERN: str = schema.document()["$defs"]["Instant"]["pattern"]

InstantText = Annotated[str, Field(pattern=INSTANT_PATTERN, json_schema_extra={"format": "date-time"})]
StepLength = Annotated[
    Literal[60, 300, 3600, 86_400],
    # What a query holds is text, and a Literal takes none for a number.
    BeforeValidator(lambda text: int(text) if text in {"60", "300", "3600", "86400"} else text),
]
DEFAULT_LIMIT = 100


class NoQuery(BaseModel):
    """An operation without query parameters."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(NoQuery):
    """Part of a listing."""

    limit: int = Field(default=DEFAULT_LIMIT, ge=1, description="Most items; at most limits.max_page.")
    cursor: str | None = Field(default=None, description="Where to go on: next_cursor of the page before.")

    def check(self, max_page: int) -> Self:
        """Hold the limit against the service's own.

        Raises:
            ProblemException: invalid-parameter.
        """
        if self.limit > max_page:
            raise invalid_parameter("limit", f"a page has at most {max_page} items")
        return self


class NodePageQuery(PageQuery):
    """Part of the list of nodes."""

    domain: Identifier | None = Field(default=None, description="Only nodes of this domain.")


class SampleQueryParameters(PageQuery):
    """Which samples are asked for."""

    subject: Identifier = Field(description="Node, domain or link.")
    subject_kind: SubjectKind = Field(description="What the subject is; device for devices of the node.")
    device: Identifier | None = Field(default=None, description="Device of the node; all of them where absent.")
    since: InstantText | None = Field(default=None, alias="from", description="First instant.")
    until: InstantText | None = Field(default=None, alias="to", description="First instant not asked for any more.")


class SeriesQueryParameters(NoQuery):
    """Which series is asked for."""

    subject: Identifier = Field(description="Node, domain or link.")
    subject_kind: SubjectKind = Field(description="What the subject is; device for a device of the node.")
    device: Identifier | None = Field(default=None, description="Device of the node; where the subject kind is device.")
    measure: Identifier = Field(description="A measure that is one number.")
    since: InstantText = Field(alias="from", description="An instant of the first step.")
    until: InstantText = Field(
        alias="to", description="First instant not asked for any more; its step is, unless it begins there."
    )
    step: StepLength = Field(description="Length of a step in seconds.")


class ExpositionQuery(NoQuery):
    """What an exporter's page is about."""

    node: Identifier = Field(description="Node that the page reports on.")
    exporter: Identifier = Field(description="Exporter of the collection map.")
    observed_at: InstantText | None = Field(
        default=None, description="When lines without a timestamp were observed; the time of receipt where absent."
    )
    sent_at: InstantText | None = Field(
        default=None, description="The sender's clock when it sent; instants of the page are corrected by it."
    )


class ReportQuery(NoQuery):
    """When a report is about."""

    at: InstantText | None = Field(default=None, description="The instant; now where absent.")


def milliseconds(name: str, text: str | None) -> int | None:
    """An instant out of a parameter.

    Raises:
        ProblemException: invalid-parameter, where the form is right but there is no such day.
    """
    if text is None:
        return None
    try:
        return instants.to_milliseconds(text)
    except ValueError as error:
        raise invalid_parameter(name, f"there is no such instant: {error}") from error
