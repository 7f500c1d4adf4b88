"""Tasks: they run, are heard of when they fail, and end together."""

import asyncio

from rota.live.tasks import Tasks


def test_a_task_that_fails_is_heard_of():
    """The text names the error; a task that is ended is none."""
    said: list[str] = []

    async def main() -> None:
        tasks = Tasks(said.append)

        async def fails() -> None:
            raise ValueError("no such luck")

        async def waits() -> None:
            await asyncio.sleep(60)

        tasks.start(fails())
        tasks.start(waits())
        await asyncio.sleep(0)
        await tasks.close()

    asyncio.run(main())
    assert len(said) == 1
    assert "ValueError: no such luck" in said[0]
