"""The same bad day at an ordinary table: no kit and no fence, so somebody has to attest what a fence would show.

A unique constraint refuses what the dead relay still has in flight. That nobody else recovers this table is attested,
and named with everything that rests on it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from workers.demo.business import trade
from workers.demo.incident import WRITERS, highest_committed, relay_drain
from workers.demo.oracle import opinion_form
from workers.demo.story import HOLDS, SEED, Ending, Story, agree
from workers.demo.world import World
from workers.doors import Door
from workers.wire import wire_release

TABLE = "letters"
GIVEN = "exactly_once_given"

POST_TABLE = """
CREATE SCHEMA {post} AUTHORIZATION {owner};
SET LOCAL ROLE {owner};
CREATE TABLE {post}.letters (
    position bigint PRIMARY KEY,
    event_id uuid NOT NULL,
    op text NOT NULL,
    key text NOT NULL,
    content jsonb,
    accepted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT USAGE ON SCHEMA {post} TO {relay}, {recoverer}, {driller};
GRANT SELECT, INSERT ON {post}.letters TO {relay}, {recoverer};
GRANT MAINTAIN ON {post}.letters TO {recoverer};
GRANT SELECT ON {post}.letters TO {driller};
RESET ROLE;
GRANT TEMPORARY ON DATABASE {database} TO {recoverer}, {driller};
"""
"""MAINTAIN (PostgreSQL 17) lets the recoverer lock the table against every other writer, and change no row."""


@dataclass(frozen=True, slots=True)
class TableWorld(World):
    """An incident whose `mail` is one table of letters: a row is the letter."""

    @property
    def sink_kind(self) -> str:
        return "postgresql_table"

    @property
    def door(self) -> Door:
        return Door(table=(self.post_schema, TABLE))

    def sink_options(self) -> dict[str, Any]:
        return {
            "connection": self.reference("mail_recoverer"),
            "drill_connection": self.reference("mail_driller"),
            "schema": self.post_schema,
            "table": TABLE,
            "coordinate": ["position"],
            "event_id": "event_id",
            "op": "op",
            "key": "key",
            "content": "content",
            "accepted_at": "accepted_at",
            "is_effect": True,
            **self.disk(),
        }

    def mail_build(self, mail: psycopg.Connection, owner: str) -> None:
        roles = {name: sql.Identifier(self.login(f"mail_{name}")) for name in ("relay", "recoverer", "driller")}
        mail.execute(
            sql.SQL(POST_TABLE).format(
                post=sql.Identifier(self.post_schema),
                owner=sql.Identifier(owner),
                database=sql.Identifier(mail.info.dbname),
                **roles,
            )
        )


@dataclass(slots=True)
class TableEnding(Ending):
    """`outcome`: the recovery's, in the product's word; `given`: what it rests on."""

    outcome: str = ""
    given: list[str] = field(default_factory=list)
    late_send: str = ""

    def as_row(self) -> dict[str, Any]:
        row = Ending.as_row(self)
        del row["fenced_stragglers"]
        return {**row, "late_send": self.late_send, "outcome": self.outcome, "given": self.given}


class TableStory(Story):
    """Told for a `TableWorld`."""

    def ending_make(self) -> TableEnding:
        return TableEnding()

    def introduce(self) -> None:
        self.tell.step("Two databases, one promise, and no fence")
        self.tell.say(
            "`orders` is a shop: every change of an order and its outbox row are one transaction. `mail` has one ordinary "
            "table with a row for each letter, and a primary key on the outbox id. Its owner says that a row is the letter "
            f"itself. Nothing of Fencepost is installed there. Incident {self.world.incident}."
        )
        self.operator.register()

    def recover(self) -> None:
        world, tell, ending = self.world, self.tell, self.ending
        assert isinstance(ending, TableEnding)
        tell.step("The plan, and what it asks somebody to attest")
        planned = self.operator.plan(ending.frontier)
        ending.planned = int(planned.body["planned"])
        for condition in planned.body["conditions"]:
            tell.say(f"[{HOLDS[condition['holds']]}] {condition['name']}: {condition['says']}")
        asked = planned.body["attestations"]
        for one in asked:
            tell.say(f"To attest, as `{one['write']}`: {one['asks']}")
        tell.say(
            f"Send these {ending.planned} events and nothing else. That the relay is stopped need not be attested: the "
            "table's primary key refuses what it still has in flight. C1 fails, and is said: a table checks nobody."
        )
        tell.step("The appending, while business goes on")
        self.operator.approve(planned)
        with ThreadPoolExecutor(1) as pool:
            meanwhile = pool.submit(trade, world, SEED + 3, WRITERS, 4)
            done = self.operator.redrive(planned, [one["write"] for one in asked])
            more = meanwhile.result()
        ending.landed, ending.outcome = int(done.body["landed"]), done.body["outcome"]
        ending.given = [one["given"] for one in done.body["attested"]]
        tell.say(
            f"{more.committed_events} more events committed meanwhile, above the frontier. One transaction of `mail`: the "
            "table locked against every writer, what is missing found out inside the lock, added, read back, committed. "
            f"{done.body['says']}"
        )
        ending.check("everything planned was added", ending.planned == ending.landed == ending.before["lost"])
        ending.check("it asked for a word, and no more than one", len(asked) == 1)
        ending.check(
            "the recovery ended exactly once at f, given that word", ending.outcome == GIVEN and bool(ending.given)
        )

    def release(self) -> None:
        ending = self.ending
        assert isinstance(ending, TableEnding)
        self.tell.step("The send that was held back in flight arrives")
        ending.late_send = wire_release(self._wire)
        self.tell.say(
            f"Nothing can reject it for its age. The table's key says: {ending.late_send}. Its event was added by the "
            "recovery, and without that key it would be there twice now: then the plan would have asked for a second word, "
            "that the relay is stopped and nothing of it on its way."
        )
        ending.check("the held-back send was absorbed by the table's key", ending.late_send == "absorbed")

    def restart(self) -> None:
        tell = self.tell
        tell.step("The relay starts again, from its own cursor")
        relay, code = relay_drain(self.world)
        accepted, absorbed = relay.words.get("accepted", 0), relay.words.get("absorbed", 0)
        tell.say(
            f"A table hands nothing over: it starts at {relay.started_at}, where it died, and sends again what came since. "
            f"It reads up to the safe frontier from now on: {accepted} delivered, {absorbed} already present."
        )
        self.ending.check("the relay sent again what it had not checked off", code == 0 and absorbed > 0)

    def judge(self) -> None:
        world, tell, ending = self.world, self.tell, self.ending
        assert isinstance(ending, TableEnding)
        tell.step(f"The verdict at f = {ending.frontier}, twice: by the product and by plain SQL")
        found = self.operator.audit(ending.frontier)
        opinion = opinion_form(world, ending.frontier)
        says_so = found.body["status"] in ("exactly_once", GIVEN)
        ending.after = {**found.counts, "exactly_once": says_so and opinion.is_exactly_once}
        ending.check("after: the product finds nothing lost, doubled or premature at f", says_so)
        ending.check("after: nor does plain SQL over both databases", opinion.is_exactly_once)
        ending.check("after: the two agree", agree(found, opinion))
        at_head = opinion_form(world, highest_committed(world))
        ending.check("after: the relay delivered what came later, once", at_head.is_exactly_once)
        for sentence, holds in ending.checks:
            tell.say(f"[{HOLDS[holds]}] {sentence}")
        word = "Exactly once" if ending.is_success else "NOT exactly once"
        given = f", given {'; and '.join(ending.given)}" if ending.given else ""
        tell.say(f"{word} at f = {ending.frontier}{given}.")
