"""Compile everything, so that nobody waits for it later."""

from kuayu_conformance.testbed.scheduling.core.baselines import RULES
from kuayu_conformance.testbed.scheduling.engine.orders import Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.world import play
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Timing, scenario
from kuayu_conformance.testbed.scheduling.values import Placement

HOUR = 3600.0


def main() -> None:
    """Play a small scenario by every baseline that is compiled, then order something of each kind."""
    subject = scenario(Cell("reference", 0.8, sites=5, nodes=4), Timing(HOUR, HOUR, HOUR), "compiled")
    for policy in RULES:
        play(subject.world(), policy(), subject.timing.horizon)
    world = subject.world()
    view = world.advance(subject.timing.horizon)
    assert view is not None, "somebody waits in the first hour"
    number = int(view.pending[0])
    name, pool = view.job(number).name, int(view.free.argmax())
    where = Placement((view.places.share(pool, view.job(number).requested),))
    world.obey([Start(name, where), Resize(name, 1), Stop(name)])
    world.pace(number)
    assert len(view.offered)
    world.outcome()


if __name__ == "__main__":
    main()
