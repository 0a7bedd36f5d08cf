-- W3C trace contexts of a job's enqueue and of its claims: a traceparent, then a blank and the tracestate, if any.
-- Null, which takes no space in the row, for the many jobs that are not traced.
create domain faultline.trace_context as text
  constraint a_trace_context_is_1_to_600_characters
    check (char_length(value) between 1 and 600)
  constraint a_trace_context_is_one_line_of_printable_ascii
    check (value ~ '^[\x20-\x7e]*$');

-- Up to three contexts, one per line: the enqueue, the claim before the last, the last claim.
alter table faultline.active add column trace text;
alter table faultline.later  add column trace text;
alter table faultline.dead   add column trace text;

-- The moment since which a scheduled, retried, released or replayed job is due. Null for a job that was due when it was
-- enqueued: `created_at` is that moment.
alter table faultline.active add column due_at timestamptz;

-- A claim returns more columns than before. An older client cannot read them, and gets an error at its start.
update faultline.settings set oldest_client = 8;
