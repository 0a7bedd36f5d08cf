-- The lanes that a round has to look at: those that something was claimed from since they were last found empty, and those
-- with a floor behind which a job may stand. Others cost a round nothing, however many queues were ever made.
create index lanes_claimed_from on faultline.lanes (id) where top > 0;
create index lanes_with_a_floor on faultline.lanes (id) where floor > 0;

-- When the slow chores were last done: a leader that does none is seen by it.
alter table faultline.rounds add column chores_at timestamptz not null default '-infinity';
