"""One answer for all who ask the same at once, and a bound on how many sets of queues are remembered."""

import asyncio

from faultline.server.http.shared_answers import SharedAnswers


def test_those_of_the_same_queues_share_an_answer_and_others_do_not():
    asked = []

    async def ask(queues):
        asked.append(queues)
        return queues

    async def all_ask():
        shared = SharedAnswers(ask, fresh_seconds=60)
        sets = (None, frozenset({"mail"}), frozenset({"mail", "sms"}))
        return [await shared.of(queues).get() for queues in sets * 2], sets

    answers, sets = asyncio.run(all_ask())

    assert answers == [*sets, *sets]
    assert asked == [*sets]


def test_how_many_sets_of_queues_are_remembered_has_a_bound(monkeypatch):
    monkeypatch.setattr("faultline.server.http.shared_answers.SETS_MAX", 10)
    shared: SharedAnswers[None] = SharedAnswers(None)

    for number in range(100):
        shared.of(frozenset({str(number)}))

    assert len(shared._by_queues) <= 10
