"""Faultline with a queue that keeps nothing of its successes, as most peers do."""

from _adapter import DSN, main
from faultline_ import FaultlineKeepingAll


class FaultlineKeepingNothing(FaultlineKeepingAll):
    name = "faultline keep=nothing"
    settings = FaultlineKeepingAll.settings.replace(
        "full ledger (keep=full, the default)",
        "the queue keeps no ledger entry of a success: faultline.set_retention('default', 'nothing')",
    )

    async def setup(self) -> None:
        import psycopg

        await super().setup()
        with psycopg.connect(DSN, autocommit=True) as conn:
            conn.execute("select faultline.set_retention('default', 'nothing')")


if __name__ == "__main__":
    main(FaultlineKeepingNothing())
