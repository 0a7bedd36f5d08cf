-- Which API key a worker came with, by the key's name, which stays when the key is rotated; null for one on the database itself.
-- A worker's number is then of use to its own key only: over a server another could say goodbye for it, or be refused in its name.
alter table faultline.workers add column key_name text;
