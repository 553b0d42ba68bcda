"""What an image audit reads of a mapped table's events: for each the hash of its key and the digest of its content."""

from __future__ import annotations

from psycopg import sql

from recovery_api.domain.kinds.postgresql_mapping import OPS
from workers.connectors.postgresql.image_sql import digest_of_event, is_partial, key_hash_of_event
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.packed import Packed, packed_choice, packed_digest, packed_flag
from workers.connectors.protocols.image import StateMapping


def image_columns(mapped: MappedTable, mapping: StateMapping) -> list[Packed]:
    """Those of schemas.IMAGE_EVENT besides the coordinate; `op` besides, by which an unmapped one is found."""
    op, key, soft = mapped.op.as_string(None), mapped.key.as_string(None), mapped.has_soft_errors
    content, raw = mapped.content_jsonb
    digest = digest_of_event(mapping, content, raw, soft)
    columns = [
        packed_digest("key_hash", sql.SQL(key_hash_of_event(mapping.key, key, soft))),
        packed_digest("digest", sql.SQL(f"(CASE WHEN ({op}) <> 'delete' THEN {digest} END)")),
        packed_flag("is_partial", sql.SQL(is_partial(mapping, op, content))),
        packed_choice("op", mapped.op_code, OPS),
    ]
    return columns if mapping.members else [one for one in columns if one.name != "is_partial"]
