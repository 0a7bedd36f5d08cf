-- The lanes that a round has to read: lanes with a claim since they were last found empty, and lanes with a floor, since a job may
-- stand behind it. Other lanes cost a round nothing, however many queues exist.
create index lanes_claimed_from on faultline.lanes (id) where top > 0;
create index lanes_with_a_floor on faultline.lanes (id) where floor > 0;

-- When the slow chores last ran. An old value shows a leader that does not do them.
alter table faultline.rounds add column chores_at timestamptz not null default '-infinity';
