"""The incident and its recovery, told in numbered steps while they happen, and judged at the end.

The end is judged twice: by the product's verdict, and by an opinion formed from plain SQL. Only where both say the same
and every check holds is the story a success.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.demo.business import trade
from workers.demo.incident import SLOW_REQUESTS, WRITERS, Incident, highest_committed, incident_make, relay_drain
from workers.demo.narrator import Narrator
from workers.demo.oracle import Opinion, committed_above, letters_differ, opinion_form
from workers.demo.recover import Operator, Said
from workers.demo.world import World
from workers.wire import wire_drop, wire_release

SEED = 20_260_601


@dataclass(slots=True)
class Ending:
    """What the demo prints as JSON, and what was checked, each a sentence and whether it holds."""

    frontier: int = 0
    before: dict[str, int] = field(default_factory=dict)
    planned: int = 0
    landed: int = 0
    fenced_stragglers: int = 0
    after: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    checks: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def is_success(self) -> bool:
        return bool(self.checks) and all(holds for _, holds in self.checks)

    def check(self, sentence: str, holds: bool) -> None:
        self.checks.append((sentence, holds))

    def as_row(self) -> dict[str, Any]:
        return {
            "frontier": self.frontier,
            "before": self.before,
            "planned": self.planned,
            "landed": self.landed,
            "fenced_stragglers": self.fenced_stragglers,
            "after": self.after,
            "seconds": round(self.seconds, 1),
        }


class Story:
    """One telling. `directory`: where the wire's socket goes; its path must be short."""

    def __init__(self, world: World, directory: Path, tell: Narrator, has_bar: bool = False) -> None:
        self.world = world
        self.tell = tell
        self.operator = Operator(world, tell, has_bar)
        self.ending = self.ending_make()
        self.incident = Incident()
        self._wire = directory / "wire"

    def ending_make(self) -> Ending:
        return Ending()

    def run(self) -> Ending:
        """All of it, in order. What is still held back when something fails is dropped."""
        began = time.monotonic()
        try:
            self.introduce()
            self.crash()
            self.audit()
            self.recover()
            self.release()
            self.restart()
            self.judge()
        finally:
            wire_drop(self._wire)
        self.ending.seconds = time.monotonic() - began
        return self.ending

    def introduce(self) -> None:
        world, tell = self.world, self.tell
        tell.step("Two databases, one promise")
        tell.say(
            "`orders` is a shop: every change of an order and its outbox row are one transaction. `mail` accepts one "
            "letter for each outbox row, through the sink kit: a fence, a generation counter, claims, an acceptance "
            f"record. The relay's role may deliver there; it can neither claim nor fire. Incident {world.incident}."
        )
        self.operator.install()
        self.operator.register()

    def crash(self) -> None:
        world, tell = self.world, self.tell
        self.incident = incident = incident_make(world, self._wire, SEED)
        first, second, third = incident.trades
        tell.step(f"A relay delivers{_generation(incident.first_generation)}")
        tell.say(
            f"{WRITERS} writers at once: {first.committed_transactions + second.committed_transactions} transactions "
            f"committed, {first.rolled_back_transactions + second.rolled_back_transactions} rolled back, ids committing "
            "in whatever order. The relay reads `id > cursor`, as most do."
        )
        tell.step("Its cursor passes what has not committed yet")
        tell.say(
            f"An import and {SLOW_REQUESTS} slow requests drew the ids {incident.skipped_ids[0]} to "
            f"{incident.skipped_ids[-1]} and committed after the relay had read past them: "
            f"{len(incident.skipped_ids)} events it will never look at again. No error anywhere."
        )
        tell.step(f"SIGKILL between acceptance and checkpoint{_generation(incident.crashed_generation)}")
        tell.say(
            f"Stopped for a deployment while {third.committed_events} more events committed, then started again. Of its "
            "first batch one send is held back in flight, the others are accepted by the sink, and the process is "
            f"killed (signal {incident.killed_by}) before it records its cursor."
        )

    def audit(self) -> None:
        world, tell, ending, cursor = self.world, self.tell, self.ending, self.incident.cursor
        beyond = committed_above(world, cursor)
        tell.step(f"What the cursor claims: everything up to {cursor}, nothing beyond")
        tell.say(
            f"{beyond} committed events lie beyond it. Whether the sink has any of them cannot be decided on this side: "
            "outbox and cursor look the same either way. Resuming from the cursor would send again what was accepted; "
            "skipping ahead would lose what was not; neither looks behind the cursor."
        )
        tell.step("What the audit finds, at the safe frontier")
        found = self.operator.audit()
        ending.frontier, ending.before = int(found.body["frontier"]), found.counts
        opinion = opinion_form(world, ending.frontier)
        lost_beyond = sum(id_ > cursor for id_ in opinion.lost)
        tell.table(
            [("frontier", ending.frontier), ("events checked", found.body["obligations"]), *found.counts.items()]
        )
        tell.say(
            f"Ambiguous at the source, decidable at the sink: of the {beyond} events beyond the cursor it accepted "
            f"{beyond - lost_beyond} and lacks {lost_beyond}. And behind the cursor, where nobody would have looked, it "
            f"lacks {len(opinion.lost) - lost_beyond}."
        )
        ending.check("before: the audit and plain SQL over both databases agree", agree(found, opinion))
        ending.check("before: something was owed", bool(opinion.lost))

    def recover(self) -> None:
        world, tell, ending = self.world, self.tell, self.ending
        tell.step("The plan")
        planned = self.operator.plan(ending.frontier)
        ending.planned = int(planned.body["planned"])
        for condition in planned.body["conditions"]:
            tell.say(f"[{HOLDS[condition['holds']]}] {condition['name']}: {condition['says']}")
        tell.say(
            f"Send these {ending.planned} events and nothing else. A plan writes nothing at the sink; what gets approved "
            "is its digest, and by somebody else. Here that is a typed name, which this pipeline is told to accept "
            "(approval_by_command); elsewhere a person signs in."
        )
        tell.step("The fire, while business goes on")
        self.operator.approve(planned)
        with ThreadPoolExecutor(1) as pool:
            meanwhile = pool.submit(trade, world, SEED + 3, WRITERS, 4)
            done = self.operator.redrive(planned)
            more = meanwhile.result()
        ending.landed = int(done.body["landed"])
        tell.say(
            f"{more.committed_events} more events committed meanwhile, above the frontier. The claim raised the sink's "
            f"fence to generation {done.body['generation']}; the record was read again under it, the batch "
            f"prepared, staged by Spark and delivered in one transaction. {done.body['says']}"
        )
        ending.check("everything planned was delivered", ending.planned == ending.landed == ending.before["lost"])
        ending.check("the recovery ended exactly once at f", done.body["outcome"] == "exactly_once")

    def release(self) -> None:
        self.tell.step("The send that was held back in flight arrives")
        word = wire_release(self._wire)
        self.ending.fenced_stragglers = int(word == "fenced")
        self.tell.say(
            f"It carries generation {self.incident.crashed_generation}, below the fence. The sink says: {word}. Its "
            "relay is dead, its event was delivered by the recovery, and without a fence it would have come in twice "
            "at a sink without an identity key."
        )
        self.ending.check("the held-back send was fenced", word == "fenced")

    def restart(self) -> None:
        world, tell = self.world, self.tell
        tell.step("The relay starts again, from the hand-over")
        relay, code = relay_drain(world)
        accepted, absorbed = relay.words.get("accepted", 0), relay.words.get("absorbed", 0)
        tell.say(
            f"The sink gave it generation {relay.generation} and the position {relay.started_at}: everything up to there "
            f"is accepted, whatever its cursor says (it said {self.incident.cursor}). It reads up to the safe frontier "
            f"from now on: {accepted} delivered, {absorbed} already present."
        )
        self.ending.check(
            "the relay started from the hand-over", code == 0 and relay.started_at == self.ending.frontier
        )

    def judge(self) -> None:
        world, tell, ending = self.world, self.tell, self.ending
        tell.step(f"The verdict at f = {ending.frontier}, twice: by the product and by plain SQL")
        found = self.operator.audit(ending.frontier)
        opinion = opinion_form(world, ending.frontier)
        says_so = found.code == 0 and found.body["status"] == "exactly_once"
        ending.after = {**found.counts, "exactly_once": says_so and opinion.is_exactly_once}
        ending.check("after: the product's verdict is exactly once at f", says_so)
        ending.check(
            "after: plain SQL over both databases finds nothing lost, doubled or premature at f",
            opinion.is_exactly_once,
        )
        ending.check("after: the two agree", agree(found, opinion))
        at_head = opinion_form(world, highest_committed(world))
        ending.check("after: the relay delivered what came later, once", at_head.is_exactly_once)
        ending.check("after: every letter says what its order's last event says", not letters_differ(world))
        for sentence, holds in ending.checks:
            tell.say(f"[{HOLDS[holds]}] {sentence}")
        tell.say(f"{'Exactly once' if ending.is_success else 'NOT exactly once'} at f = {ending.frontier}.")


HOLDS = {True: "holds", False: "FAILS", None: "unknown"}


def _generation(number: int) -> str:
    """Nothing at a sink that allocates none."""
    return f", generation {number}" if number else ""


def agree(found: Said, opinion: Opinion) -> bool:
    theirs = {"lost": len(opinion.lost), "duplicates": opinion.duplicates, "premature": opinion.premature}
    return found.counts == theirs
