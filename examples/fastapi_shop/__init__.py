"""An order service: FastAPI, SQLAlchemy over asyncpg, and jobs that commit with its rows. See README.md."""
