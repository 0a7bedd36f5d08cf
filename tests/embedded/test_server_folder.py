"""The folder's own locks."""

import os
import shutil
import threading

from faultline.embedded.server_folder import ServerFolder


def test_a_turn_that_was_waited_for_is_in_the_folder_that_stands_there_now(folder):
    """A lock on a file that was deleted meanwhile excludes no other process."""
    place = ServerFolder.at(folder)
    waiting, inside, done = threading.Event(), threading.Event(), threading.Event()

    def wait_for_the_turn():
        waiting.set()
        with place.turn():
            inside.set()
            done.wait(10)

    with place.turn():
        waiter = threading.Thread(target=wait_for_the_turn)
        waiter.start()
        waiting.wait(10)
        assert not inside.wait(0.1)
        shutil.rmtree(folder)

    assert inside.wait(10)
    assert (folder / "lock").exists()
    done.set()
    waiter.join()


def test_a_life_is_taken_by_one_at_a_time(folder):
    place = ServerFolder.at(folder)
    life = place.take_life(0)

    assert life is not None
    assert place.take_life(0.05) is None

    os.close(life)
    again = place.take_life(0)
    assert again is not None
    os.close(again)


def test_what_is_noted_in_a_folder_is_for_its_owner_alone(folder):
    place = ServerFolder.at(folder)

    place.write_password("secret")

    assert (folder / "password").stat().st_mode & 0o777 == 0o600
    assert place.read_password() == "secret"
