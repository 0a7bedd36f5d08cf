-- Where a job was asked for, and by which claims it was taken up, as W3C trace contexts: a traceparent, and behind a blank its
-- tracestate, if any. Null, which takes no room on the page, for the many that nobody traces.
create domain faultline.trace_context as text
  constraint a_trace_context_is_1_to_600_characters
    check (char_length(value) between 1 and 600)
  constraint a_trace_context_is_one_line_of_printable_ascii
    check (value ~ '^[\x20-\x7e]*$');

-- Up to three contexts, a line each: who enqueued it, the claim before the last, the last claim.
alter table faultline.active add column trace text;
alter table faultline.later  add column trace text;
alter table faultline.dead   add column trace text;

-- Since when a job is due that did not come straight from its enqueuing: it was scheduled, retried, given back or replayed. Null
-- for the others, of which `created_at` says it.
alter table faultline.active add column due_at timestamptz;

-- A claim gives back more than it did: a client that was made before this does not understand it, and is told so at its start.
update faultline.settings set oldest_client = 8;
