-- The domains that all tables use. The name of each constraint is the sentence that the constraint keeps true.
-- A domain is checked when a value enters, not at every UPDATE of its row, so claims and heartbeats do not pay for it.

create domain faultline.document as jsonb
  constraint a_document_is_at_most_one_mebibyte
    check (octet_length(value::text) <= 1048576)
  -- Sixty-five open brackets take over 512 bytes of jsonb, so small documents skip the walk. The size is measured in a
  -- new array: a value from a table may be compressed, and deep documents compress well.
  constraint a_document_is_at_most_64_deep
    check (pg_column_size(jsonb_build_array(value)) <= 520 or not jsonb_path_exists(value, 'strict $.**{64 to last}'))
  -- jsonb prints numbers in full: a number over 1e308 has 309 digits in a row.
  constraint a_documents_numbers_are_within_1e308
    check (octet_length(value::text) <= 308
           or value::text !~ '[0-9]{155}[0-9]{154}'   -- in two parts: PostgreSQL accepts no repeat count over 255
           or not jsonb_path_exists(value, 'strict $.** ? (@.type() == "number" && (@ > 1e308 || @ < -1e308))'));

create domain faultline.queue_name as text
  constraint a_queue_name_is_1_to_63_letters_digits_underscores_dots_dashes
    check (value ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$');

create domain faultline.task_name as text
  constraint a_task_name_is_1_to_128_letters_digits_underscores_dots_dashes
    check (value ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$');

create domain faultline.key_name as text
  constraint a_key_is_1_to_255_characters
    check (char_length(value) between 1 and 255)
  -- By code point: [[:cntrl:]] depends on the database's locale, and in the C locale it misses the upper half.
  constraint a_key_has_no_control_characters
    check (value !~ '[\u0001-\u001f\u007f-\u009f]');

create domain faultline.moment as timestamptz
  constraint a_moment_lies_between_the_years_2000_and_2200
    check (value >= '2000-01-01 00:00+00' and value < '2200-01-01 00:00+00');

create domain faultline.wait as interval
  constraint a_delay_is_from_0_to_10_years
    check (value >= interval '0' and value <= interval '10 years');

create domain faultline.lease_time as interval
  constraint a_lease_lasts_from_half_a_second_to_one_day
    check (value >= interval '500 milliseconds' and value <= interval '1 day');

create domain faultline.run_time as interval
  constraint a_timeout_is_from_100_milliseconds_to_30_days
    check (value >= interval '100 milliseconds' and value <= interval '30 days');

create domain faultline.attempt_budget as bigint
  constraint max_attempts_is_from_1_to_10000
    check (value between 1 and 10000);

create domain faultline.rank as bigint
  constraint a_priority_is_from_minus_100_to_100
    check (value between -100 and 100);

create type faultline.lease_end as enum
  ('succeeded', 'failed', 'expired', 'snoozed', 'released', 'cancelled', 'dead');

create type faultline.keeping as enum ('full', 'outline', 'nothing');
