"""Enqueue in your own transaction: the user and the welcome mail exist together, or neither does.

FAULTLINE_DSN=postgresql://... python examples/signup.py
"""

import psycopg

from faultline import Faultline

app = Faultline()
sent: list[str] = []


@app.task(queue="mail")
def welcome(user_id: int, email: str) -> None:
    """A plain function: it runs in a thread."""
    sent.append(email)


def sign_up(conn: psycopg.Connection, email: str) -> None:
    with conn.transaction():
        row = conn.execute("insert into shop_users (email) values (%s) returning id", [email]).fetchone()
        assert row is not None
        welcome.enqueue_in(conn, user_id=row[0], email=email)
        if "@" not in email:
            raise ValueError(f"{email} is no address")


def main() -> None:
    with psycopg.connect(app.settings.require_dsn(), autocommit=True) as conn:
        conn.execute("drop table if exists shop_users")
        conn.execute("create table shop_users (id int generated always as identity, email text)")
        sign_up(conn, "ada@example.org")
        try:
            sign_up(conn, "not-an-address")
        except ValueError as refused:
            print("rolled back:", refused)

    app.run_worker(queues="mail", until_empty=True)
    print("welcomed:", sent)
    app.close()


if __name__ == "__main__":
    main()
