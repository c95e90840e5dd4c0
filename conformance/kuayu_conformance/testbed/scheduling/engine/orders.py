"""What a policy may order, and why it may be refused."""

from dataclasses import dataclass
from enum import StrEnum

from kuayu_conformance.testbed.scheduling.values import Placement


@dataclass(frozen=True, slots=True)
class Start:
    """Give a pending job its devices, all at once; data are staged while it holds them, then it runs."""

    job: str
    placement: Placement


@dataclass(frozen=True, slots=True)
class Stop:
    """Preempt a job: it writes a checkpoint, gives its devices back and is pending again."""

    job: str


@dataclass(frozen=True, slots=True)
class Move:
    """Migrate a running job: the new devices are held from now on, the old ones until the checkpoint is written."""

    job: str
    placement: Placement


@dataclass(frozen=True, slots=True)
class Resize:
    """Let a running job go on with so many devices of the one pool where it is: a move on the spot."""

    job: str
    devices: int


Order = Start | Stop | Move | Resize


class Refusal(StrEnum):
    """Why an order is not carried out."""

    UNKNOWN_JOB = "there is no such job"
    NOT_PENDING = "the job is not pending"
    NOT_RUNNING = "the job is not running"
    UNKNOWN_POOL = "there is no such pool"
    TWICE = "a domain, or a pool, is named twice"
    SIZE = "it may not have so few devices, or so many"
    MEMORY = "the devices have too little memory"
    SPLIT = "it may not be spread like that"
    DATA = "its data may not leave their domain"
    NO_WAY = "no links lead there"
    CUT_OFF = "a domain cannot be reached"
    NO_ROOM = "there are not that many free devices"


@dataclass(frozen=True, slots=True)
class RefusedOrder:
    """An order that was not carried out."""

    order: Order
    why: Refusal
