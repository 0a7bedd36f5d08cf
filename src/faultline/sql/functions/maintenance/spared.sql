-- Whether a lease is still within its full length after a gap that may have stopped its heartbeats.
-- Such a gap is longer than half the lease.
create function faultline.spared(lease interval, last faultline.rounds, moment timestamptz)
returns boolean
language sql
immutable
as $$
  select exists (
    select from generate_subscripts((spared.last).gap_at, 1) as slot (n)
    where (spared.last).gap[slot.n] > spared.lease / 2
      and spared.moment between (spared.last).gap_at[slot.n] and (spared.last).gap_at[slot.n] + spared.lease)
$$;
