"""The five drills, step by step, on one stage. Each begins with an empty record and ends with the oracle's reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from recovery_api.domain.drills import DrillName, DrillResult, DrillVerdict
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.protocols.fence import FencedSink
from workers.drills.stage import NotAsExpected, Noted, Stage, position, rows


def drill_play(name: DrillName, sink: FencedSink, notes: tuple[str, ...] = ()) -> DrillResult:
    """The drill's result at this empty sink. An answer, or an error of the sink itself, that the protocol does not have
    fails it. Raises: transient errors, after which it is to be played again."""
    stage = Stage(sink)
    return played(name, stage, lambda: SCRIPT[name](stage), notes)


def played(name: DrillName, stage: Noted, script: Callable[[], None], notes: tuple[str, ...]) -> DrillResult:
    """What came of a script whose steps `stage` notes. Raises: transient errors."""
    try:
        script()
    except NotAsExpected as failure:
        return DrillResult(name, DrillVerdict.FAILED, str(failure), tuple(stage.steps), notes=notes)
    except FencepostError as error:
        if error.is_transient:
            raise
        stage.steps.append({"step": "the sink raised", "said": str(error), "expected": "an answer", "holds": False})
        return DrillResult(name, DrillVerdict.FAILED, f"The sink raised: {error}", tuple(stage.steps), notes=notes)
    says = f"{len(stage.steps)} steps went as the protocol says."
    return DrillResult(name, DrillVerdict.PASSED, says, tuple(stage.steps), notes=notes)


def checkpoint_crash(stage: Stage) -> None:
    """The cursor stands at 2, the sink accepted up to 4, and 5 and 6 are owed."""
    relay = stage.relay_start()
    stage.commit(6)
    stage.deliver("the relay", relay, [1, 2], "accepted")
    stage.deliver("the relay, which dies before its checkpoint,", relay, [3, 4], "accepted")
    recoverer = stage.recover("the recoverer", owed=[5, 6])
    handed = dict(stage.sink.hand_over())
    stage.expect("the sink hands the next relay its start", handed, {SINGLE_LANE: position(6)})
    stage.deliver("the dead relay", relay, [3], "fenced")
    again = stage.relay_start("a relay with the stale cursor")
    stage.expect("its generation is newer than the recoverer's", again > recoverer, True)
    stage.deliver("the relay with the stale cursor", again, [3, 4, 5, 6], "absorbed")
    stage.commit(1)
    stage.deliver("the relay, going on,", again, [7], "accepted")
    stage.check_record()


def in_flight_straggler(stage: Stage) -> None:
    """Events 3 and 4 are on the wire when the recoverer claims; both arrive, one before the fire and one after."""
    relay = stage.relay_start()
    stage.commit(5)
    stage.deliver("the relay", relay, [1, 2], "accepted")
    generation = stage.claim("the recoverer")
    stage.deliver("a straggler of the old generation", relay, [3], "fenced")
    stage.deliver("a send under the claim's own generation", generation, [5], "paused")
    waiting = stage.sink.generation_allocate("relay", "drill relay").word
    stage.expect("a relay that asks for a generation while the claim is open", waiting, "wait")
    batch = stage.delta(generation)
    stage.expect("the recoverer finds owed", batch, [3, 4, 5])
    arm = stage.arm("the recoverer", generation, batch)
    stage.stage(generation, arm, batch)
    stage.fire("the recoverer", generation, arm, "landed")
    stage.deliver("the last straggler, after the fire,", relay, [4], "fenced")
    stage.check_record()


def split_brain_worker(stage: Stage) -> None:
    """The older recoverer has armed and staged, sleeps past everything, and wakes up when the newer has fired."""
    relay = stage.relay_start()
    stage.commit(4)
    stage.deliver("the relay", relay, [1], "accepted")
    older = stage.claim("the older recoverer")
    batch = stage.delta(older)
    arm = stage.arm("the older recoverer", older, batch)
    stage.stage(older, arm, batch)
    newer = stage.claim("the newer recoverer")
    again = stage.delta(newer)
    stage.expect("the newer recoverer finds owed", again, [2, 3, 4])
    stage.fire("the older recoverer, before the newer arms,", older, arm, "fenced")
    second = stage.arm("the newer recoverer", newer, again)
    stage.stage(newer, second, again)
    stage.fire("the newer recoverer", newer, second, "landed")
    stage.fire("the older recoverer, waking up last,", older, arm, "fenced")
    claim = stage.sink.settle(older)
    stage.expect("the older claim, settled, is", claim.state, "superseded")
    stage.expect("and was superseded by generation", claim.superseded_by, newer)
    stage.expect("the older recoverer, claiming again, is", stage.sink.claim(older, {}).word, "refused")
    unallocated = stage.sink.claim(newer + 1_000, {}).word
    stage.expect("a generation that was never allocated is", unallocated, "unallocated")
    stage.check_record()


def expired_deduplication(stage: Stage) -> None:
    """Event 1 is the oldest identity; twenty came after it."""
    relay = stage.relay_start()
    stage.commit(22)
    stage.deliver("the relay", relay, [1], "accepted")
    stage.deliver("the relay", relay, range(2, 21), "accepted")
    stage.recover("the recoverer", owed=[21, 22])
    again = stage.relay_start("a relay that replays from the beginning")
    stage.deliver("the replay", again, [1], "absorbed")
    altered = stage.sink.deliver(again, rows([1], content='{"drill": "other content"}'))
    stage.expect("the first coordinate with other content is", altered, ["altered"])
    stage.deliver("the replay of everything", again, stage.history, "absorbed")
    stage.check_record()


def crash_inside_recovery(stage: Stage) -> None:
    """One recovery a step, each begun by a recoverer that dies there and ended by its successor."""
    relay = stage.relay_start()
    for step in ("claiming", "arming", "staging half of it", "staging all of it", "firing"):
        owed = stage.commit(3)[1:]
        stage.deliver("the relay", relay, [owed[0] - 1], "accepted")
        dead = f"the recoverer that dies after {step}"
        generation = stage.claim(dead)
        arm = None if step == "claiming" else stage.arm(dead, generation, stage.delta(generation))
        if arm is not None and step != "arming":
            stage.stage(generation, arm, owed[:1] if step == "staging half of it" else owed)
        if arm is not None and step == "staging half of it":
            stage.fire(dead, generation, arm, "mismatch")
        landed = stage.fire(dead, generation, arm, "landed") if arm is not None and step == "firing" else None
        found = stage.sink.claim_find(f"drill {dead}").generations
        stage.expect("its claim, found by its name, is of generation", found, (generation,))
        claim = stage.sink.settle(generation)
        stage.expect("its claim, settled by a successor, is", claim.state, "fired" if landed else "open")
        if landed and arm is not None:
            again = stage.fire("the successor, trying the fire again,", generation, arm, "already fired")
            stage.expect("with the first one's figure", again.get("landed_count"), landed.get("landed_count"))
        successor = stage.recover("the successor", owed=[] if landed else owed)
        if arm is not None and not landed:
            stage.fire(f"{dead}, waking up,", generation, arm, "fenced")
            superseded_by = stage.sink.settle(generation).superseded_by
            stage.expect("its claim was superseded by generation", superseded_by, successor)
        relay = stage.relay_start("the next relay")
    stage.check_record()


SCRIPT: Mapping[DrillName, Callable[[Stage], None]] = {
    DrillName.CHECKPOINT_CRASH: checkpoint_crash,
    DrillName.IN_FLIGHT_STRAGGLER: in_flight_straggler,
    DrillName.SPLIT_BRAIN_WORKER: split_brain_worker,
    DrillName.EXPIRED_DEDUPLICATION: expired_deduplication,
    DrillName.CRASH_INSIDE_RECOVERY: crash_inside_recovery,
}
