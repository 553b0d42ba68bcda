"""Two real databases, `orders` and `mail`: a shop with its outbox, and the post office that accepts its letters.

Each incident has a schema of its own in both, so that a new one starts clean and the old ones stay to be looked at.
Roles have what they need and nothing else; their passwords live in files under `var/`, named by reference.
"""

from __future__ import annotations

import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.doors import Door
from workers.relay import CURSOR_TABLE

PREFIX = re.compile(r"([a-z][a-z0-9_]{0,19})?")
MARK = "Made by the Fencepost demo; it may be dropped."
ROLES = ("orders_app", "orders_relay", "orders_auditor", "mail_relay", "mail_recoverer", "mail_driller")
RELAY = "letters"
"""The relay's name, at the sink and in its cursor table."""

GROWTH_BYTES_AN_HOUR = 2**30
"""More than its writers could fill an hour with."""

ORDERS_TABLES = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.orders (
    number text PRIMARY KEY,
    customer text NOT NULL,
    cents bigint NOT NULL,
    state text NOT NULL
);
CREATE TABLE {schema}.outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL DEFAULT gen_random_uuid(),
    op text NOT NULL CHECK (op IN ('insert', 'update', 'delete')),
    key text NOT NULL,
    content jsonb,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE {schema}.outbox OWNER TO {owner};
GRANT USAGE ON SCHEMA {schema} TO {app}, {relay}, {auditor};
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.orders TO {app};
GRANT INSERT (op, key, content), SELECT (id) ON {schema}.outbox TO {app};
GRANT SELECT, MAINTAIN ON {schema}.outbox TO {relay}, {auditor};
GRANT SELECT ON SEQUENCE {schema}.outbox_id_seq TO {auditor};
"""
"""Nobody can log in as the outbox's owner, and the shop inserts by column, without the id: so nobody but a superuser can
give a row a number of its own choice. MAINTAIN (PostgreSQL 17) lets a reader take the SHARE lock that makes a frontier
safe, and change nothing; SELECT on the sequence shows it that the numbers to come are higher."""

MAIL_TABLES = """
CREATE SCHEMA {post} AUTHORIZATION {owner};
SET LOCAL ROLE {owner};
CREATE TABLE {post}.letters (
    number text PRIMARY KEY,
    customer text,
    cents bigint,
    state text
);
REVOKE ALL ON {post}.letters FROM {owner};
RESET ROLE;
"""
"""The letters belong to a role that nobody logs in as, and that holds no right on them: only the kit writes them."""


@dataclass(frozen=True, slots=True)
class World:
    """One incident's world. `orders` and `mail` are administrators' addresses; the rest are names and references."""

    incident: int
    orders: str
    mail: str
    credentials: Path
    prefix: str

    @property
    def schema(self) -> str:
        """The schema of the shop's tables, in `orders`."""
        return f"incident_{self.incident}"

    @property
    def kit_schema(self) -> str:
        """The schema of the sink kit, in `mail`."""
        return f"incident_{self.incident}"

    @property
    def post_schema(self) -> str:
        """The schema of the mapped target, in `mail`."""
        return f"post_{self.incident}"

    @property
    def sink_kind(self) -> str:
        return "postgresql_kit"

    @property
    def door(self) -> Door:
        """How the relay comes into `mail`."""
        return Door(self.kit_schema)

    @property
    def pipeline(self) -> str:
        return self.end_name("orders-mail")

    def reference(self, role: str) -> str:
        """Where the address that `role` connects with is written."""
        return f"file:{self.credentials / (self.prefix + role)}"

    def end_name(self, end: str) -> str:
        """What `orders` or `mail` of this incident is registered as."""
        return f"{self.prefix}{end}-{self.incident}".replace("_", "-")

    def login(self, role: str) -> str:
        """The login of `role` in this world's cluster."""
        return f"{self.prefix}{role}"

    def mail_build(self, mail: psycopg.Connection, owner: str) -> None:
        """Its own tables in `mail`, which belong to `owner`."""
        mail.execute(sql.SQL(MAIL_TABLES).format(post=sql.Identifier(self.post_schema), owner=sql.Identifier(owner)))

    def source_options(self) -> dict[str, Any]:
        """How the product is told to read the outbox."""
        return {
            "connection": self.reference("orders_auditor"),
            "schema": self.schema,
            "table": "outbox",
            "coordinate": ["id"],
            "event_id": "event_id",
            "op": "op",
            "key": "key",
            "content": "content",
            "committed_at": "created_at",
            "share_lock": True,
            "cursor_table": "relay_cursor",
            "cursor_columns": ["position"],
            "cursor_where": {"relay": RELAY},
            **self.disk(),
        }

    def disk(self) -> dict[str, int]:
        """What the owner of an end that deletes nothing declares of its disk: half of what is free now stays free, and an
        hour takes no more than so much."""
        return {
            "disk_free_bytes": shutil.disk_usage(self.credentials).free // 2,
            "disk_growth_bytes_per_hour": GROWTH_BYTES_AN_HOUR,
        }

    def sink_options(self) -> dict[str, Any]:
        """The sink kit, with the letters as its mapped target."""
        return {
            "connection": self.reference("mail_recoverer"),
            "drill_connection": self.reference("mail_driller"),
            "schema": self.kit_schema,
            "target_schema": self.post_schema,
            "lanes": [SINGLE_LANE],
            "target": "letters",
            "target_key": "number",
            "target_columns": {"customer": "customer", "cents": "cents", "state": "state"},
            **self.disk(),
        }


def world_build(admin: str, credentials: Path, prefix: str = "", made: type[World] = World) -> World:
    """A new incident's world in the cluster of `admin`, a superuser's address of any database there.

    `made`: what `mail` is, an office with the kit or another.

    Raises: Refused where a database of that name is not the demo's own; BadInput for a prefix that cannot be one.
    """
    if not PREFIX.fullmatch(prefix):
        raise BadInput(
            "--prefix", f"{prefix!r} cannot begin a name", "Use at most 20 of a to z, 0 to 9 and underscore."
        )
    databases = {name: _database_ensure(admin, f"{prefix}{name}") for name in ("orders", "mail")}
    credentials.mkdir(parents=True, exist_ok=True, mode=0o700)
    roles = {role: f"{prefix}{role}" for role in ROLES}
    with psycopg.connect(admin, autocommit=True) as cluster:
        for role, name in roles.items():
            password = secrets.token_urlsafe(18)
            end = databases[role.partition("_")[0]]
            _role_ensure(cluster, name, password, database_name(end))
            _secret_write(credentials / name, make_conninfo(end, user=name, password=password))
    with psycopg.connect(databases["orders"], autocommit=True) as orders:
        incident = 1 + max(_incidents(orders), default=0)
        shop = _owner_ensure(orders, f"{prefix}orders_shop")
        world = made(incident, databases["orders"], databases["mail"], credentials, prefix)
        orders.execute(
            sql.SQL(ORDERS_TABLES).format(
                schema=sql.Identifier(world.schema),
                owner=sql.Identifier(shop),
                app=sql.Identifier(roles["orders_app"]),
                relay=sql.Identifier(roles["orders_relay"]),
                auditor=sql.Identifier(roles["orders_auditor"]),
            )
        )
        cursor = sql.Identifier(world.schema, "relay_cursor")
        orders.execute(sql.SQL(CURSOR_TABLE).format(table=cursor))
        grant = sql.SQL("GRANT SELECT, INSERT, UPDATE ON {} TO {}")
        orders.execute(grant.format(cursor, sql.Identifier(roles["orders_relay"])))
        grant = sql.SQL("GRANT SELECT ON {} TO {}")
        orders.execute(grant.format(cursor, sql.Identifier(roles["orders_auditor"])))
    with psycopg.connect(databases["mail"]) as mail:
        owner = _owner_ensure(mail, f"{prefix}mail_post")
        driller = sql.Identifier(roles["mail_driller"])  # makes a drill's own schema and roles; changes no record
        mail.execute(sql.SQL("ALTER ROLE {} CREATEROLE").format(driller))
        database = sql.Identifier(database_name(databases["mail"]))
        mail.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, driller))
        world.mail_build(mail, owner)
    return world


def _database_ensure(admin: str, name: str) -> str:
    """The administrator's address of database `name`, made if it is not there."""
    with psycopg.connect(admin, autocommit=True) as cluster:
        known = cluster.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", (name,)
        ).fetchone()
        if known is None:
            cluster.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            comment = sql.SQL("COMMENT ON DATABASE {} IS {}")
            cluster.execute(comment.format(sql.Identifier(name), sql.Literal(MARK)))
            cluster.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
        elif known[0] != MARK:
            raise Refused(
                "building the demo's world",
                f"this server has a database {name!r} that is not the demo's",
                "Choose other names with --prefix.",
            )
    return make_conninfo(admin, dbname=name)


def _owner_ensure(connection: psycopg.Connection, name: str) -> str:
    """A role that owns tables and that nobody logs in as."""
    if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
        connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
    return name


def _role_ensure(cluster: psycopg.Connection, name: str, password: str, database: str) -> None:
    known = cluster.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
    verb = sql.SQL("CREATE ROLE" if known is None else "ALTER ROLE")
    cluster.execute(
        sql.SQL("{} {} LOGIN PASSWORD {} NOSUPERUSER NOCREATEDB NOCREATEROLE").format(
            verb, sql.Identifier(name), sql.Literal(password)
        )
    )
    grant = sql.SQL("GRANT CONNECT ON DATABASE {} TO {}")
    cluster.execute(grant.format(sql.Identifier(database), sql.Identifier(name)))


def _incidents(orders: psycopg.Connection) -> list[int]:
    rows = orders.execute("SELECT substr(nspname, 10) FROM pg_namespace WHERE nspname ~ '^incident_[0-9]+$'")
    return [int(number) for (number,) in rows]


def _secret_write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text + "\n", encoding="utf-8")


def database_name(dsn: str) -> str:
    return str(conninfo_to_dict(dsn)["dbname"])
