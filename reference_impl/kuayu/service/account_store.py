"""Use of accounts in the database, and what the operator says of accounts.

1. Of attempts that are over a sum is kept for each account, with its instant; what jobs hold is added when somebody
   asks (:mod:`kuayu.jobs.fair_share`). The sum changes in the transaction in which the attempt comes to hold nothing
   any more, so that no crash has an hour counted twice or not at all.
2. The half-life stands in the database as well, since it was counted with: where the operator sets another one, all
   sums are counted to the instant of that with the one from before.
3. Weights and quotas are set by the operator, in a file with an account in each line: ``ACCOUNT`` or
   ``TENANT/ACCOUNT``, then ``weight=W``, ``quota=HOURS``, ``rate=REQUESTS`` a second and ``burst=REQUESTS`` as may be.
   It is read again when it changes (:mod:`kuayu.service.settings`). Weights of one, no quotas and the rate of all
   hold where nothing is said.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from typing_extensions import override

from kuayu.jobs.fair_share import DEFAULT_WEIGHT, HALF_LIFE_SECONDS, account_of, accrued, decayed
from kuayu.service.auth import IDENTIFIER
from kuayu.service.job_rules import JobStanding
from kuayu.service.rate_limits import BURST_SECONDS, RateLimit
from kuayu.service.settings import SOLE_TENANT, OperatorFile
from kuayu.service.storage.resources import NAME, OWNER
from kuayu.service.storage.tables import account, meta
from kuayu.service.storage.writer import Outcome, Transaction

if TYPE_CHECKING:
    from kuayu_schemas import documents

HALF_LIFE = "half-life of use"
"""Name of the fact about the database, in seconds."""

FORGOTTEN_HOURS = 1e-9
"""Hours of reference devices that are not worth a row."""

MAX_ACCOUNTS = 10_000
"""Accounts that are told, by the published model."""

MIN_WEIGHT, MAX_WEIGHT, MAX_QUOTA_HOURS = 1e-6, 1e6, 1e12
MIN_RATE, MAX_RATE, MAX_BURST = 1e-3, 1e6, 1e9

_USED = select(account.c.used, account.c.at).where(account.c.tenant == OWNER, account.c.id == NAME)
_SET = (
    update(account)
    .where(account.c.tenant == OWNER, account.c.id == NAME)
    .values(used=bindparam("hours"), at=bindparam("moment"))
)
_FACT = select(meta.c.value).where(meta.c.name == HALF_LIFE)


@dataclass(frozen=True, slots=True)
class AccountRule:
    """What the operator says of an account.

    Attributes:
        weight: Its part of the devices, in proportion to the weights of others.
        quota: Hours of reference devices that it may have used; None without limit.
        limit: How fast requests may come with tokens that are bound to it; None for what holds for all.
    """

    weight: float = DEFAULT_WEIGHT
    quota: float | None = None
    limit: RateLimit | None = None


NO_RULE = AccountRule()


class AccountFile(OperatorFile):
    """What a file says of accounts.

    Args:
        path: The file.

    Raises:
        OperatorFileError: It cannot be read, or a line of it.
    """

    what = "accounts"

    def __init__(self, path: Path) -> None:
        self._rules: Mapping[str, Mapping[str, AccountRule]] = {}
        super().__init__(path)

    def of(self, tenant: str) -> Mapping[str, AccountRule]:
        """What it says of accounts of a tenant, by name."""
        return self._rules.get(tenant, {})

    @property
    @override
    def count(self) -> int:
        return sum(map(len, self._rules.values()))

    @override
    def _take(self, lines: Sequence[tuple[int, str]], status: os.stat_result) -> None:
        rules: dict[str, dict[str, AccountRule]] = {}
        for number, line in lines:
            try:
                tenant, name, rule = _entry(line)
            except ValueError as error:
                raise self._wrong(number, error) from error
            if name in rules.setdefault(tenant, {}):
                raise self._wrong(number, f"the account {name} stands in another line")
            rules[tenant][name] = rule
        self._rules = rules


def half_life(connection: Connection) -> float:
    """Seconds after which what was used counts half."""
    value: str | None = connection.execute(_FACT).scalar()
    return HALF_LIFE_SECONDS if value is None else float(value)


def note_attempt(connection: Connection, owner: str, before: JobStanding, now: int) -> None:
    """An attempt holds nothing any more from an instant on, in milliseconds: its account has used what it held."""
    assert before.held_since is not None
    name, half = account_of(before.spec), half_life(connection)
    hours = accrued(before.rate(), (now - before.held_since) / 1000, half)
    row = connection.execute(_USED, {"owner": owner, "name": name}).first()
    if row is None:
        connection.execute(insert(account).values(tenant=owner, id=name, used=hours, at=now))
    else:
        hours += decayed(row.used, (now - row.at) / 1000, half)
        connection.execute(_SET, {"owner": owner, "name": name, "hours": hours, "moment": now})


def used_hours(connection: Connection, owner: str, active: Iterable[JobStanding], now: int) -> dict[str, float]:
    """Hours of reference devices that each account has used, as far as they count at an instant.

    Args:
        connection: Of the database.
        owner: The tenant.
        active: Its jobs of which an attempt is under way.
        now: The instant, in milliseconds.
    """
    half = half_life(connection)
    rows = connection.execute(select(account).where(account.c.tenant == owner))
    used = {row.id: decayed(row.used, (now - row.at) / 1000, half) for row in rows}
    for standing in active:
        if standing.held_since is not None:
            name = account_of(standing.spec)
            hours = accrued(standing.rate(), (now - standing.held_since) / 1000, half)
            used[name] = used.get(name, 0.0) + hours
    return used


def account_to_wire(name: str, used: float, rule: AccountRule) -> "documents.Account":
    """An account, class Account."""
    document: documents.Account = {"id": name, "used": used, "weight": rule.weight}
    if rule.quota is not None:
        document["quota"] = rule.quota
    return document


def listed(used: Mapping[str, float], rules: Mapping[str, AccountRule]) -> "list[documents.Account]":
    """Accounts that are told, in order of name: those of which the operator says something, and who has used most."""
    most = sorted((name for name in used if name not in rules), key=lambda name: (-used[name], name))
    names = sorted([*rules, *most][:MAX_ACCOUNTS])
    return [account_to_wire(name, used.get(name, 0.0), rules.get(name, NO_RULE)) for name in names]


@dataclass(frozen=True, slots=True)
class SetHalfLife:
    """Have what was used count half after so many seconds from now on.

    Attributes:
        seconds: How many.
        now: On the wall, in milliseconds.
        weight: How much of the writer's queue it takes.
    """

    seconds: float
    now: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Count what was used with the half-life from before, where that was another one, and keep the new one."""
        connection = transaction.connection
        before = half_life(connection)
        if before != self.seconds:
            for row in connection.execute(select(account)).all():
                hours = decayed(row.used, (self.now - row.at) / 1000, before)
                connection.execute(
                    _SET, {"owner": row.tenant, "name": row.id, "hours": hours, "moment": max(self.now, row.at)}
                )
        connection.execute(delete(meta).where(meta.c.name == HALF_LIFE))
        connection.execute(insert(meta).values(name=HALF_LIFE, value=repr(self.seconds)))
        connection.execute(delete(account).where(account.c.used < FORGOTTEN_HOURS))
        return Outcome(None)


def _entry(line: str) -> tuple[str, str, AccountRule]:
    """Tenant, account and what a line says of it.

    Raises:
        ValueError: It is none; the message says why.
    """
    first, *others = line.split()
    tenant, separator, name = first.rpartition("/")
    tenant = tenant if separator else SOLE_TENANT
    if not (IDENTIFIER.fullmatch(tenant) and IDENTIFIER.fullmatch(name)):
        raise ValueError("an account is given as ACCOUNT or TENANT/ACCOUNT")
    weight, quota, rate, burst = DEFAULT_WEIGHT, None, None, None
    for other in others:
        match other.partition("="):
            case ("weight", "=", text):
                weight = _number(text, MIN_WEIGHT, MAX_WEIGHT)
            case ("quota", "=", text):
                quota = _number(text, 0.0, MAX_QUOTA_HOURS)
            case ("rate", "=", text):
                rate = _number(text, MIN_RATE, MAX_RATE)
            case ("burst", "=", text):
                burst = _number(text, 1.0, MAX_BURST)
            case _:
                stand = "weight=W, quota=HOURS, rate=REQUESTS or burst=REQUESTS"
                raise ValueError(f"after the account stand {stand}, not {other!r}")
    if rate is None and burst is not None:
        raise ValueError("burst=REQUESTS stands beside rate=REQUESTS")
    limit = None if rate is None else RateLimit(rate, max(1.0, BURST_SECONDS * rate) if burst is None else burst)
    return tenant, name, AccountRule(weight, quota, limit)


def _number(text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise ValueError(f"{text!r} is no number from {least:g} to {most:g}")
    return value
