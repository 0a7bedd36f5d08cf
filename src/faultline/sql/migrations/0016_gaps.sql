-- Gaps between two rounds, by size. Slot n has the length and the end of the last gap of up to 0.25 s times 2^n; slot 20 has the start
-- of the server. With one slot for all sizes, each short gap prolonged the effect of an earlier long one.
-- `reaped_at` is the last reap: a round without a reap does not count as one.
alter table faultline.rounds
  drop column gap,
  drop column gap_at,
  add column gap interval[] not null default '{}',
  add column gap_at timestamptz[] not null default '{}',
  add column reaped_at timestamptz not null default '-infinity';
