"""By what a sink is recovered, what must be attested for it, and what the driver without a fence looks at again."""

from __future__ import annotations

from tests.guards.guard import Guard

DOMAIN = "recovery_api/domain"
SERVICES = "recovery_api/services"
DRIVER = "workers/recovery/strategies/attested.py"
STRATEGIES = "tests/unit/test_strategies.py"
ATTESTATIONS = "tests/unit/test_attestations.py"
DELIVERIES = "tests/unit/test_deliveries.py"
DIGEST = "tests/unit/test_plans.py::test_another_part_makes_another_digest"
DRIVEN = "tests/integration/recovery/test_attested_driver.py"
FENCED = "tests/integration/recovery/test_fenced_driver.py"
DECIDING = "tests/integration/control/test_deciding_options.py"

GUARDS = (
    # -- chosen by what was tested ------------------------------------------------------------------------------------
    Guard(
        "a sink that lost its fence is recovered as a fenced one",
        f"{DOMAIN}/strategies/__init__.py",
        "        case Archetype.FENCED if capability.has_fence:\n",
        "        case Archetype.FENCED:\n",
        (f"{STRATEGIES}::test_a_sink_that_lost_its_fence_is_not_recovered_as_a_fenced_one",),
    ),
    Guard(
        "a table that may not be appended to is appended to",
        f"{DOMAIN}/strategies/__init__.py",
        " and capability.may_append:\n",
        ":\n",
        (f"{STRATEGIES}::test_only_a_table_that_may_be_read_and_appended_to_now_is_appended_to",),
    ),
    Guard(
        "a table that cannot be read back is appended to",
        f"{DOMAIN}/strategies/__init__.py",
        " if capability.can_read_record and capability",
        " if capability",
        (f"{STRATEGIES}::test_only_a_table_that_may_be_read_and_appended_to_now_is_appended_to",),
    ),
    Guard(
        "a sink counts as more than its kind declares",
        f"{DOMAIN}/capabilities.py",
        "    return tested if declared is None else min(Archetype(declared), tested, key=WEAKEST_FIRST.index)\n",
        "    return tested\n",
        (f"{STRATEGIES}::test_the_weaker_of_what_is_declared_and_what_was_tested_counts",),
    ),
    Guard(
        "a sink counts as more than was tested of it",
        f"{DOMAIN}/capabilities.py",
        "    return tested if declared is None else min(Archetype(declared), tested, key=WEAKEST_FIRST.index)\n",
        "    return tested if declared is None else Archetype(declared)\n",
        (f"{STRATEGIES}::test_the_weaker_of_what_is_declared_and_what_was_tested_counts",),
    ),
    Guard(
        "a plan for one strategy outlives the test that shows another",
        f"{SERVICES}/ends.py",
        "        if plan_strategy(plan).name != allows:\n",
        "        if False:\n",
        (f"{DECIDING}::test_a_plan_for_one_strategy_lapses_once_a_test_shows_another",),
    ),
    # -- a record alone -----------------------------------------------------------------------------------------------
    Guard(
        "a record alone is sent to",
        "workers/connectors/registry.py",
        "    if not abilities & DELIVERIES:\n",
        "    if False:\n",
        (f"{DELIVERIES}::test_a_record_alone_is_never_sent_to",),
    ),
    Guard(
        "a record alone is found to be a delivery",
        "workers/connectors/registry.py",
        " if abilities_of(kind_name, options) & DELIVERIES else None\n",
        "\n",
        (f"{DELIVERIES}::test_a_record_alone_is_never_sent_to",),
    ),
    Guard(
        "a sink is sent to in a way that it does not have",
        "workers/connectors/registry.py",
        "    if ability is not None and ability not in abilities:\n",
        "    if False:\n",
        (f"{DELIVERIES}::test_a_sink_is_sent_to_in_its_own_way_and_no_other",),
    ),
    Guard(
        "a table is the effect though nobody said so",
        f"{DOMAIN}/kinds/postgresql_table.py",
        """ | (frozenset() if options["is_effect"] else DELIVERED)\n""",
        "\n",
        (
            f"{DELIVERIES}::test_a_record_alone_is_never_sent_to",
            "tests/unit/test_points.py::test_a_record_alone_is_never_appended_to_whatever_its_login_may_do",
        ),
    ),
    Guard(
        "a list of ids is the effect",
        f"{DOMAIN}/kinds/postgresql_table.py",
        "        return DELIVERED | {Ability.RECORD_BY_RANGE, Ability.STATE}\n",
        "        return frozenset({Ability.RECORD_BY_RANGE, Ability.STATE})\n",
        (f"{DELIVERIES}::test_a_record_alone_is_never_sent_to",),
    ),
    Guard(
        "somebody says that a list of ids is the effect",
        f"{DOMAIN}/kinds/postgresql_ids.py",
        """    if options.get("is_effect"):\n""",
        "    if False:\n",
        (f"{DELIVERIES}::test_nobody_can_say_that_a_list_of_ids_is_the_effect",),
    ),
    # -- what is promised and attested --------------------------------------------------------------------------------
    Guard(
        "a recovery without a fence may end green",
        f"{DOMAIN}/strategies/attested.py",
        "    outcomes=frozenset(Outcome) - {Outcome.EXACTLY_ONCE, ",
        "    outcomes=frozenset(Outcome) - {",
        (f"{STRATEGIES}::test_only_a_fence_may_end_green",),
    ),
    Guard(
        "what was attested is not named beside a ground that is proven",
        "workers/recovery/verdicts.py",
        " + tuple(attested) + certified_given",
        " + certified_given",
        (
            "tests/unit/test_lane_verdicts.py::"
            "test_what_was_attested_stands_in_the_lanes_verdict_beside_a_ground_that_is_proven",
        ),
    ),
    Guard(
        "a verification without a fence is green where the source proves everything",
        DRIVER,
        "        self._audited(RecoveryState.VERIFYING, attested=self._given())\n",
        "        self._audited(RecoveryState.VERIFYING)\n",
        (f"{DRIVEN}::test_what_was_attested_is_given_even_where_the_source_proves_everything",),
    ),
    Guard(
        "a relay that may still send need not be attested away",
        f"{DOMAIN}/strategies/attested.py",
        "    return (ONLY_RECOVERER,) if capability.absorbs_late_sends else (RELAY_DRAINED, ONLY_RECOVERER)\n",
        "    return (ONLY_RECOVERER,)\n",
        (f"{ATTESTATIONS}::test_only_a_constraint_that_refuses_late_sends_spares_the_word_about_the_relay",),
    ),
    Guard(
        "a plan asks for no attestation",
        "workers/recovery/planning.py",
        "    asked = list(attestations_asked(capability)) if strategy is ATTESTED else []\n",
        "    asked: list[str] = []\n",
        (f"{DRIVEN}::test_a_plan_asks_for_what_must_be_attested_and_is_not_applied_without",),
    ),
    Guard(
        "one attestation is taken for another",
        f"{DOMAIN}/attestations.py",
        "    return [KINDS[name] for name in asked if name not in names]\n",
        "    return [KINDS[name] for name in asked[len(names) :]]\n",
        (f"{ATTESTATIONS}::test_nothing_is_attested_by_default_or_by_another_word",),
    ),
    Guard(
        "it is attested that a relay will have been stopped",
        f"{DOMAIN}/attestations.py",
        "    if now is not None and since > now:\n",
        "    if False:\n",
        (f"{ATTESTATIONS}::test_an_attestation_that_does_not_say_what_it_must_is_refused",),
    ),
    Guard(
        "a time without its zone is attested",
        f"{DOMAIN}/attestations.py",
        "    if since.tzinfo is None:\n",
        "    if False:\n",
        (f"{ATTESTATIONS}::test_an_attestation_that_does_not_say_what_it_must_is_refused",),
    ),
    # -- the driver without a fence -----------------------------------------------------------------------------------
    Guard(
        "a table that was made anew since the plan is appended to",
        DRIVER,
        "        sink_check(self.recovery.pipeline)\n",
        "",
        (f"{DRIVEN}::test_nothing_is_appended_to_a_table_that_was_made_anew_since_the_plan",),
    ),
    Guard(
        "a recovery of a sink that was replaced meanwhile is verified",
        "workers/recovery/strategies/driver.py",
        "        sink_check(self.recovery.pipeline)\n",
        "",
        (f"{DRIVEN}::test_a_table_made_anew_while_a_part_landed_makes_its_verification_unknown",),
    ),
    Guard(
        "a sink that may be appended to no more is read and prepared for",
        DRIVER,
        "        self._can_append(capability_of(self.recovery.pipeline))\n",
        "",
        (f"{DRIVEN}::test_a_sink_that_may_be_appended_to_no_more_is_not_read_for_it",),
    ),
    Guard(
        "a constraint that is gone before the append is relied on",
        DRIVER,
        '            raise Refused(f"Appending to sink {self.recovery.pipeline.fired_into.name}", problem, remedy)\n'
        "        self._late_sends(capability)\n",
        '            raise Refused(f"Appending to sink {self.recovery.pipeline.fired_into.name}", problem, remedy)\n',
        (f"{DRIVEN}::test_a_constraint_that_is_gone_before_the_append_is_not_relied_on",),
    ),
    Guard(
        "a constraint that is gone after the append is relied on",
        DRIVER,
        "        self._late_sends(capability_of(self.recovery.pipeline))\n",
        "",
        (f"{DRIVEN}::test_a_constraint_that_goes_after_the_append_makes_the_verification_unknown",),
    ),
    Guard(
        "what a table without a fence gets is not what was approved",
        DRIVER,
        "            if complaint := outcomes.not_as_approved(found):\n",
        "            if complaint := None:\n",
        (f"{DRIVEN}::test_a_batch_that_is_not_the_approved_one_is_not_appended",),
    ),
    Guard(
        "a plan whose evidence is gone is applied",
        "workers/recovery/ends.py",
        "    if batch_held(stored_get(plan.evidence_uri)) != plan.batch_count:\n",
        "    if False:\n",
        (f"{DRIVEN}::test_a_plan_whose_evidence_is_gone_is_refused_before_anything_is_read",),
    ),
    Guard(
        "a sink that was restored since the approval is claimed",
        "workers/recovery/strategies/fenced.py",
        "        sink_check(self.recovery.pipeline)\n",
        "",
        (f"{FENCED}::test_a_sink_that_was_restored_since_the_approval_is_not_claimed",),
    ),
    Guard(
        "a claim that could only be refused fences the relay",
        "workers/recovery/strategies/fenced.py",
        "        evidence_check(self.recovery.plan)\n",
        "",
        (f"{FENCED}::test_a_plan_whose_evidence_is_gone_is_refused_before_its_claim",),
    ),
    Guard(
        "a part that may have landed ends as if nothing had",
        DRIVER,
        "        return kinds.count(EventKind.ARMED) > ended\n",
        "        return False\n",
        (f"{DRIVEN}::test_a_part_that_may_have_landed_never_ends_as_if_nothing_had",),
    ),
    Guard(
        "what a dead worker had added counts as added by its successor",
        "workers/connectors/sinks/table/owed.py",
        " WHERE j.rank <= {last} AND NOT EXISTS (SELECT FROM {before} b WHERE b.nth = j.nth) ORDER BY j.rank",
        " WHERE j.rank <= {last} ORDER BY j.rank",
        (
            f"{DRIVEN}::test_a_successor_finds_what_landed_and_adds_nothing",
            "tests/integration/postgresql/test_appending_beside_others.py::"
            "test_two_recoverers_at_once_land_each_event_once_without_any_constraint",
        ),
    ),
    # -- what an approval binds to, and what voids a verdict ----------------------------------------------------------
    Guard(
        "a plan under another filter or mapping is the approved one",
        f"{DOMAIN}/plans.py",
        """        "ends": dict(ends),\n""",
        "",
        (DIGEST,),
    ),
    Guard(
        "the source's filter and mapping are no part of what is approved",
        "workers/recovery/planning.py",
        """{"source": spec.source, "sink": spec.sink, **""",
        """{"sink": spec.sink, **""",
        (
            "tests/integration/recovery/test_plan_ends.py::test_the_sources_mapping_and_filter_are_part_of_what_is_approved",
        ),
    ),
    Guard(
        "the sink's mapping is no part of what is approved",
        "workers/recovery/planning.py",
        """{"source": spec.source, "sink": spec.sink, **""",
        """{"source": spec.source, **""",
        ("tests/integration/recovery/test_plan_ends.py::test_the_sinks_mapping_is_part_of_what_is_approved",),
    ),
    Guard(
        "a plan for a sink that can do less is the approved one",
        f"{DOMAIN}/plans.py",
        """        "capability": {key: value for key, value in asdict(capability).items() if key != "grounds"},\n""",
        "",
        (DIGEST,),
    ),
    Guard(
        "a plan over another history is the approved one",
        f"{DOMAIN}/plans.py",
        """        "history": dict(history),\n""",
        "",
        (DIGEST,),
    ),
    Guard(
        "a plan with other omissions is the approved one",
        f"{DOMAIN}/plans.py",
        """        "acknowledged": sorted(acknowledged),\n""",
        "",
        (DIGEST,),
    ),
    Guard(
        "an audit of other rows than are read now still certifies",
        f"{SERVICES}/ends.py",
        "            audits_void([one for one in pipelines if one not in fed], says, now)\n",
        "            pass\n",
        (f"{DECIDING}::test_audits_of_other_rows_are_void_and_plans_lapse",),
    ),
    Guard(
        "another pipeline's audits are void with one's own",
        f"{SERVICES}/grounds.py",
        "    standing = Audit.objects.filter(pipeline__in=pipelines, void_since__isnull=True)\n",
        "    standing = Audit.objects.filter(void_since__isnull=True)\n",
        (f"{DECIDING}::test_audits_of_other_rows_are_void_and_plans_lapse",),
    ),
    Guard(
        "a plan that was made under other options is applied",
        f"{SERVICES}/ends.py",
        "                plans_lapse(pipeline, because=says, actor=actor, now=now)\n",
        "                pass\n",
        (f"{DECIDING}::test_audits_of_other_rows_are_void_and_plans_lapse",),
    ),
)
