"""The incident and its recovery, told in numbered steps while they happen, and judged at the end.

The end is judged twice: by the product's verdict, and by an opinion formed from plain SQL. Only where both say the same
and every check holds is the story a success.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.demo import recover
from workers.demo.business import trade
from workers.demo.incident import WRITERS, Incident, RelayProcess, highest_committed, incident_make
from workers.demo.narrator import Narrator
from workers.demo.oracle import Opinion, letters_differ, opinion_form
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

    def __init__(self, world: World, directory: Path, tell: Narrator) -> None:
        self.world = world
        self.tell = tell
        self.ending = Ending()
        self.incident = Incident()
        self._wire = directory / "wire"

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
        self.tell.step("Two databases, one promise")
        self.tell.say(
            f"`orders` is a shop: every change of an order and its outbox row are one transaction. `mail` accepts one "
            f"letter for each outbox row. This is incident {self.world.incident}; pipeline {self.world.pipeline}."
        )
        recover.pipeline_register(self.world)
        self.tell.say(
            "The sink kit is installed in `mail`: a fence, a generation counter, claims and an acceptance record. "
            "The relay's role may deliver; it cannot claim, arm or fire."
        )

    def crash(self) -> None:
        world, tell = self.world, self.tell
        self.incident = incident = incident_make(world, self._wire, SEED)
        first, second, third = incident.trades
        tell.step(f"A relay delivers, generation {incident.first_generation}")
        tell.say(
            f"{WRITERS} writers at once: {first.committed_transactions + second.committed_transactions} transactions "
            f"committed, {first.rolled_back_transactions + second.rolled_back_transactions} rolled back. The relay reads "
            "`id > cursor`, as most do."
        )
        tell.step("Its cursor passes what has not committed yet")
        tell.say(
            f"An import and a few slow requests had drawn the ids {incident.skipped_ids[0]} to "
            f"{incident.skipped_ids[-1]} and committed after the relay had read past them: "
            f"{len(incident.skipped_ids)} events that it will never look at again. No error anywhere."
        )
        tell.step(f"SIGKILL between acceptance and checkpoint, generation {incident.crashed_generation}")
        tell.say(
            f"Stopped for a deployment while {third.committed_events} more events committed, then started again. Of its "
            "first batch one send is held back in flight, the others are accepted by the sink, and the process is killed "
            f"(signal {incident.killed_by}) before it records its cursor."
        )

    def audit(self) -> None:
        world, tell, ending, cursor = self.world, self.tell, self.ending, self.incident.cursor
        tell.step("What the cursor claims")
        opinion = opinion_form(world, highest_committed(world))
        beyond = opinion.committed_above(cursor)
        tell.say(
            f"Everything up to {cursor} is delivered, it says, and {beyond} committed events lie beyond it. Whether the "
            "sink has any of those cannot be known on this side: source, outbox and cursor look the same either way. "
            "Resuming from the cursor re-sends what was accepted; skipping ahead loses what was not; and neither looks "
            "behind the cursor."
        )
        found = recover.audit(world)
        ending.frontier = found.frontier
        ending.before = found.counts
        opinion = opinion_form(world, found.frontier)
        lost_beyond = sum(id_ > cursor for id_ in opinion.lost)
        tell.step(f"What the audit finds at the safe frontier {found.frontier}")
        tell.command(found.line)
        tell.table(
            [
                ("obligations", opinion.obligations),
                ("lost", found.counts["lost"]),
                ("duplicates", found.counts["duplicates"]),
                ("premature", found.counts["premature"]),
            ]
        )
        tell.say(
            f"Decidable at the sink: of the {beyond} events beyond the cursor it has {beyond - lost_beyond} and lacks "
            f"{lost_beyond}; behind the cursor, where nobody would have looked, it lacks {len(opinion.lost) - lost_beyond}."
        )
        ending.check("the audit and the plain SQL agree on what was lost", _agree(found.counts, opinion))
        ending.check("something was lost before", bool(opinion.lost))

    def recover(self) -> None:
        world, tell, ending = self.world, self.tell, self.ending
        planned = recover.plan(world, ending.frontier)
        ending.planned = planned.batch_count
        tell.step(f"The plan: {planned.batch_count} events")
        tell.command(planned.line)
        tell.table([(condition, says) for condition, says in planned.conditions])
        tell.say("A plan writes nothing at the sink. Its digest is what gets approved.")
        more = trade(world, SEED + 3, WRITERS, 4)
        tell.step("Approve and re-drive")
        done = recover.approve_and_redrive(world, planned)
        ending.landed = done.landed_count
        for line in done.lines:
            tell.command(line)
        tell.say(
            f"Business went on meanwhile: {more.committed_events} more events, above the frontier. The claim raised the "
            f"sink's fence to generation {done.generation}; the record was read under it, the batch armed, staged and "
            f"fired in one transaction: {done.landed_count} landed. Outcome: {done.outcome}."
        )
        ending.check("everything planned landed", planned.batch_count == done.landed_count == len(ending.before and done.owed))

    def release(self) -> None:
        self.tell.step("The send held back in flight arrives")
        word = wire_release(self._wire)
        self.ending.fenced_stragglers = int(word == "fenced")
        self.tell.say(
            f"Generation {self.incident.crashed_generation} is below the fence. The sink says: {word}. The dead relay's "
            "request had outlived it, and its event was delivered by the recovery."
        )
        self.ending.check("the held-back send was fenced", word == "fenced")

    def restart(self) -> None:
        world, tell = self.world, self.tell
        tell.step("The relay starts again, from the hand-over")
        relay = RelayProcess(world, "--reading", "safe", "--drain")
        try:
            code = relay.wait()
        finally:
            relay.kill()
        accepted, absorbed = relay.words.get("accepted", 0), relay.words.get("absorbed", 0)
        tell.say(
            f"The sink gave it generation {relay.generation} and the position {relay.started_at}: everything up to there "
            f"is accepted, whatever its own cursor ({self.incident.cursor}) says. It reads up to the safe frontier now, "
            f"and delivered {accepted} events ({absorbed} were there already)."
        )
        self.ending.check("the relay ended well", code == 0)
        self.ending.check("it started from the hand-over", (relay.started_at or 0) >= self.ending.frontier)

    def judge(self) -> None:
        world, tell, ending = self.world, self.tell, self.ending
        found = recover.audit(world, ending.frontier)
        opinion = opinion_form(world, ending.frontier)
        ending.after = {**found.counts, "exactly_once": found.is_exactly_once and opinion.is_exactly_once}
        ending.check("the product says exactly once at f", found.is_exactly_once)
        ending.check("plain SQL over both databases says so too", opinion.is_exactly_once)
        ending.check("the verdict and the plain SQL agree", _agree(found.counts, opinion))
        at_head = opinion_form(world, highest_committed(world))
        ending.check("nothing is lost up to the head either", at_head.is_exactly_once)
        ending.check("every letter is what its order's last event says", not letters_differ(world))
        word = "Exactly once at f" if ending.is_success else "NOT exactly once at f"
        tell.step(f"{word} = {ending.frontier}")
        tell.command(found.line)
        for sentence, holds in ending.checks:
            tell.say(f"{'holds' if holds else 'FAILS'}: {sentence}")


def _agree(counts: dict[str, int], opinion: Opinion) -> bool:
    return (counts["lost"], counts["duplicates"], counts["premature"]) == (
        len(opinion.lost),
        opinion.duplicates,
        opinion.premature,
    )
