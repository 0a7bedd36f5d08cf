"""Mutants of who may do what: each leaves a door open that a test must find open."""

from proof.mutants.mutant import Mutant, Patch, sql

DOORMAN = "tests/auth/test_authenticator.py"
KEYS = "tests/auth/test_keys.py"
ACTS = "tests/auth/test_acts.py"
DRIFT = "tests/auth/test_drift.py"
GRANTS = "tests/store/test_grants.py"
ROLES = "tests/sql/test_group_roles.py"
SECRETS = "tests/auth/test_secrets.py"

MUTANTS = (
    Mutant(
        "the public may call every function", "G15",
        "tests/sql/test_roles.py::test_the_public_may_execute_no_function_even_with_the_schema_open",
        (Patch("sql/last.sql", "revoke all on all functions in schema faultline from public;\n", ""),),
    ),
    Mutant(
        "a migration gives the public back what it was granted", "G15",
        f"{GRANTS}::test_what_the_public_was_granted_is_not",
        (
            Patch("sql/first.sql", "given.grantee not in (0, proc.proowner)", "given.grantee <> proc.proowner"),
            Patch(
                "sql/last.sql", "    join pg_catalog.pg_roles as known on known.oid = kept.grantee\n",
                "    join (select oid, quote_ident(rolname) as rolname from pg_catalog.pg_roles union all select 0, 'public') as known"
                " on known.oid = kept.grantee\n",
            ),
            Patch("sql/last.sql", "execute format('grant %s to %I%s',", "execute format('grant %s to %s%s',"),
        ),
    ),
    Mutant(
        "a migration forgets what people granted", "G15",
        f"{GRANTS}::test_what_people_granted_is_the_same_after_a_migration",
        (Patch("sql/last.sql", "where proc.oid is not null or class.oid is not null", "where false"),),
    ),
    Mutant(
        "a migration forgets the groups", "G15",
        f"{GRANTS}::test_a_grant_beyond_its_duty_is_taken_from_a_group",
        (Patch("sql/last.sql", "  perform faultline.grant_duties();\n", ""),),
    ),
    Mutant(
        "the role that migrates owns the verbs", "G15",
        f"{GRANTS}::test_a_migration_by_another_role_leaves_the_functions_to_their_owner",
        (Patch("store/migrate.py", "    if owner is not None:\n", "    if owner is not None and False:\n"),),
    ),
    Mutant(
        "a key opens after its last moment", "G15",
        f"{DOORMAN}::test_a_key_opens_nothing_after_its_last_moment",
        (sql("find_keys", "key.revoked_at is null and coalesce(key.expires_at > moment, true)", "key.revoked_at is null"),),
    ),
    Mutant(
        "each key is looked up by a query of its own", "G15",
        f"{DOORMAN}::test_a_key_not_seen_before_waits_for_a_few_queries_behind_thousands_of_guesses",
        (Patch("server/auth/key_lookups.py", "BATCH_MAX: Final = 2_000", "BATCH_MAX: Final = 1"),),
    ),
    Mutant(
        "a revoked key opens", "G15",
        f"{DOORMAN}::test_a_revoked_key_opens_nothing_within_five_seconds",
        (sql("find_keys", "key.revoked_at is null and coalesce", "coalesce"),),
    ),
    Mutant(
        "whether a key lives is not asked", "G15",
        f"{DOORMAN}::test_what_is_wrong_with_a_key_is_not_said",
        (Patch("server/auth/authenticator.py", "if found is None or not same or not found.live:", "if found is None or not same:"),),
    ),
    Mutant(
        "the secret of a key is not compared", "G15",
        f"{DOORMAN}::test_a_key_that_is_nearly_right_is_wrong",
        (Patch("server/auth/authenticator.py", "if found is None or not same or", "if found is None or"),),
    ),
    Mutant(
        "a key is remembered without end", "G15",
        f"{DOORMAN}::test_a_revoked_key_opens_nothing_within_five_seconds",
        (Patch("server/auth/authenticator.py", "known is not None and known.until > self._clock()", "known is not None"),),
    ),
    Mutant(
        "the scope is not asked for", "G15",
        f"{DOORMAN}::test_a_caller_may_what_its_scopes_say",
        (Patch("server/auth/caller.py", 'held = scope in self.scopes or "admin" in self.scopes', "held = bool(self.scopes)"),),
    ),
    Mutant(
        "the queue is not asked for", "G15",
        f"{DOORMAN}::test_a_caller_may_it_on_its_queues_alone",
        (Patch("server/auth/caller.py", "return held and (queue is None or self.queues is None or queue in self.queues)", "return held"),),
    ),
    Mutant(
        "without a key every client may look", "G15",
        f"{DOORMAN}::test_without_a_key_only_the_machine_itself_may_look",
        (Patch("server/auth/authenticator.py", "            if loopback:\n", "            if True:\n"),),
    ),
    Mutant(
        "an act is not noted", "G15",
        f"{ACTS}::test_each_verb_of_an_operator_notes_itself",
        (sql("resume", "  perform faultline.note_act('resume', queue => resume.queue);\n", ""),),
    ),
    Mutant(
        "a session may say that it is another role", "G15",
        f"{ACTS}::test_a_session_that_says_it_is_another_is_noted_with_its_role",
        (sql("note_act", "session_user), session_user,", "session_user), coalesce(nullif(current_setting('faultline.actor', true), ''), session_user),"),),
    ),
    Mutant(
        "the last user of a connection acts for the next one too", "G15",
        f"{ACTS}::test_the_next_user_of_the_connection_acts_for_itself",
        (sql("act_as", "set_config('faultline.actor', left(act_as.actor, 200), true)", "set_config('faultline.actor', left(act_as.actor, 200), false)"),),
    ),
    Mutant(
        "three keys of a name are live", "G15",
        f"{KEYS}::test_never_more_than_two_of_a_name_are_live",
        (sql("rotate_key", "key.live) > 1 then", "key.live) > 2 then"),),
    ),
    Mutant(
        "a rotated key goes on without end", "G15",
        f"{KEYS}::test_a_rotated_key_and_its_successor_both_open_until_the_overlap_ends",
        (sql("rotate_key", "least(key.expires_at::timestamptz, moment + rotate_key.overlap)", "key.expires_at"),),
    ),
    Mutant(
        "a producer may claim", "G15",
        f"{ROLES}::test_a_producer_can_neither_claim_nor_complete_nor_read_payloads",
        (sql("role_grants", "'{enqueue,enqueue_many,enqueue_each}'", "'{enqueue,enqueue_many,claim}'"),),
    ),
    Mutant(
        "a migrator has the owner's rights without asking", "G15",
        f"{ROLES}::test_a_migrator_has_the_owners_rights_only_when_it_asks",
        (sql("make_roles", "case when kind = 'migrator' then 'noinherit' else 'inherit' end", "'inherit'"),),
    ),
    Mutant(
        "a verb finds what stands in its caller's search_path", "G15",
        f"{DRIFT}::test_the_manifest_is_what_a_database_gets",
        (Patch("sql/last.sql", "    execute format('alter function %s set jit = off', verb);\n", "    execute format('alter function %s reset search_path', verb);\n"),),
    ),
    Mutant(
        "a function that says something else is not noticed", "G15",
        f"{DRIFT}::test_what_was_changed_by_hand_is_found",
        (Patch("doctor/drift.py", "    if function.body != should.body:\n", "    if not function.body:\n"),),
    ),
    Mutant(
        "a key is written into the log", "G15",
        f"{SECRETS}::test_nothing_that_is_written_holds_a_key",
        (Patch("telemetry/text.py", '    (re.compile(r"(flk_(?:[0-9a-f]{12}_)?)[A-Za-z0-9_-]{8,}"), r"\\1***"),\n', ""),),
    ),
)  # fmt: skip
