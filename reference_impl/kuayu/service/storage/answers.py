"""Answers under idempotency keys, kept in the same transaction as what they answer for."""

from dataclasses import dataclass
from typing import NoReturn

from sqlalchemy import insert, select

from kuayu.service.problems import ProblemException
from kuayu.service.storage.tables import answer
from kuayu.service.storage.writer import Command, Outcome, Transaction


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it was or will be given."""

    status: int
    body: bytes
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key.

    Attributes:
        tenant: Whose it is.
        operation: What it was sent with: method, path and query.
        key: The key itself.
        digest: SHA-256 of the body, hexadecimal.
        received: When the request was received, in milliseconds.
    """

    tenant: str
    operation: str
    key: str
    digest: str
    received: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """A command that cannot be carried out as things stand now; under its key there may be an answer from before."""

    problem: ProblemException

    @property
    def weight(self) -> int:
        """It holds no samples."""
        return 0

    def apply(self, _: Transaction) -> NoReturn:
        """Raise why it cannot."""
        raise self.problem


@dataclass(frozen=True, slots=True)
class Once:
    """A command that is carried out only once for each key.

    Raises when applied: idempotency-mismatch, or what the command itself raises.
    """

    key: Key
    command: Command[Answer]

    @property
    def weight(self) -> int:
        """That of the command."""
        return self.command.weight

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Give the kept answer, or carry the command out and keep its answer."""
        name = {"tenant": self.key.tenant, "operation": self.key.operation, "key": self.key.key}
        conditions = [answer.c[column] == value for column, value in name.items()]
        kept = transaction.connection.execute(
            select(answer.c.digest, answer.c.status, answer.c.body).where(*conditions)
        ).first()
        if kept is None:
            outcome = self.command.apply(transaction)
            given = outcome.result
            transaction.connection.execute(
                insert(answer).values(
                    **name,
                    digest=self.key.digest,
                    status=given.status,
                    body=given.body,
                    created=self.key.received,
                )
            )
            return outcome
        if kept.digest != self.key.digest:
            raise ProblemException("idempotency-mismatch", "the key came with another body before")
        return Outcome(Answer(kept.status, bytes(kept.body), replayed=True))
