-- Gates of a limit at which jobs of a lane wait: those named as freed, then others from a random one on, wrapping.
-- A loose scan: one look into the index for each gate, however many jobs wait there.
create function faultline.waiting_gates(limit_id int, lane int, wait_floor bigint, most int, freed bigint[], only_freed boolean)
returns bigint[]
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  -- In a variable: in an index condition it would be drawn again for each row, which favours the lowest gates.
  start   bigint := ((random() - 0.5) * 18446744073709550000)::bigint;
  first   bigint[] := waiting_gates.freed[1:most];
  gates   bigint[];
  wrapped bigint[];
begin
  if not only_freed then
    with recursive walk (gate, number) as (
      (
        select job.gate, 1
        from faultline.later as job
        where job.limit_id = waiting_gates.limit_id and job.lane = waiting_gates.lane and job.gate >= start
          and job.place >= waiting_gates.wait_floor and job.place is not null
        order by job.gate
        limit 1
      )
      union all
      select (
        select job.gate
        from faultline.later as job
        where job.limit_id = waiting_gates.limit_id and job.lane = waiting_gates.lane and job.gate > walk.gate
          and job.place >= waiting_gates.wait_floor and job.place is not null
        order by job.gate
        limit 1
      ), walk.number + 1
      from walk
      where walk.gate is not null and walk.number < most
    )
    select array_agg(walk.gate) into gates from walk where walk.gate is not null;

    if coalesce(cardinality(gates), 0) < most then
      with recursive walk (gate, number) as (
        (
          select job.gate, coalesce(cardinality(gates), 0) + 1
          from faultline.later as job
          where job.limit_id = waiting_gates.limit_id and job.lane = waiting_gates.lane and job.gate < start
            and job.place >= waiting_gates.wait_floor and job.place is not null
          order by job.gate
          limit 1
        )
        union all
        select (
          select job.gate
          from faultline.later as job
          where job.limit_id = waiting_gates.limit_id and job.lane = waiting_gates.lane
            and job.gate > walk.gate and job.gate < start
            and job.place >= waiting_gates.wait_floor and job.place is not null
          order by job.gate
          limit 1
        ), walk.number + 1
        from walk
        where walk.gate is not null and walk.number < most
      )
      select array_agg(walk.gate) into wrapped from walk where walk.gate is not null;
      gates := gates || wrapped;
    end if;
  end if;

  if first is null then
    return coalesce(gates, '{}');
  end if;
  return first || array(select gate from unnest(gates) as gate where gate <> all (first));
end;
$$;
