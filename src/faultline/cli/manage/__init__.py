"""Commands that look after a database: migrate, keys, roles, queues, audit, doctor, health."""
