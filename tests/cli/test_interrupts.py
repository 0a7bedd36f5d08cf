"""A Ctrl-C is heard wherever it meets a command: it ends with 130, or in good order where it serves."""

import os
import random
import signal
import subprocess
import sys
import textwrap

import click
import pytest

from faultline.cli.exit_codes import exit_code_of, line_of
from tests.cli.interrupting import COMMANDS, interrupt

PROGRAM = """
import ctypes, gc, os, signal, sys, time, weakref
from faultline.cli.root import main
from faultline.cli.lab import demo

def press():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass

class Thing:
    pass

class Finalised:
    def __del__(self):
        press()

def in_a_finaliser():
    Finalised()

def in_a_callback_of_a_weak_reference():
    thing = Thing()
    kept.append(weakref.ref(thing, lambda _: press()))

def in_a_callback_of_c_code():
    ctypes.CFUNCTYPE(None)(press)()

def in_the_collector():
    gc.callbacks.append(lambda phase, info: press() if phase == "start" else None)
    gc.collect()
    gc.callbacks.clear()

def run_demo(*_, **__):
    {where}()
    for _ in range(600):
        time.sleep(0.1)
    return 0

kept = []
demo.run_demo = run_demo
sys.argv = ["faultline", "demo"]
main()
"""
WHERE = ["in_a_finaliser", "in_a_callback_of_a_weak_reference", "in_a_callback_of_c_code", "in_the_collector"]


@pytest.mark.parametrize("where", WHERE)
def test_an_interrupt_that_python_drops_is_raised_again(where):
    program = textwrap.dedent(PROGRAM).replace("{where}", where)

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )

    assert ended.returncode == 130, ended.stderr
    assert ended.stderr.splitlines()[-1] == "faultline: interrupted"


def test_an_error_of_a_cleanup_does_not_hide_that_it_was_interrupted():
    def work():
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("the server is gone")

    with pytest.raises(RuntimeError) as caught:
        work()

    assert exit_code_of(caught.value) == 130
    assert line_of(caught.value) == "interrupted, and what had to be ended gave an error: the server is gone"


def test_an_interrupt_at_a_prompt_is_one(monkeypatch):
    """click hides what it came from; a plain no is not an interrupt."""

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(click.termui, "visible_prompt_func", pressed)
    with pytest.raises(click.Abort) as caught:
        click.confirm("Sure?")

    assert (exit_code_of(caught.value), line_of(caught.value)) == (130, "interrupted")
    assert (exit_code_of(click.Abort()), line_of(click.Abort())) == (1, "nothing was done")


def test_one_while_the_program_is_loaded_ends_it_without_a_traceback():
    program = textwrap.dedent(
        """
        import os, signal, sys, faultline.cli

        class Finder:
            def find_spec(self, name, *_):
                if name == "faultline.cli.root":
                    os.kill(os.getpid(), signal.SIGINT)

        sys.meta_path.insert(0, Finder())
        faultline.cli.main()
        """
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )

    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.lasts], ids=str)
def test_a_command_that_is_interrupted_says_so(command, database, shop):
    after = random.uniform(0.1, command.seconds)

    assert interrupt(command, after, database, shop) == ""


PRESSED_AS_IT_STARTS = """
import os, pathlib, signal, sys
if "--supervised" in sys.orig_argv:
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pathlib.Path("heard").touch()
    os.kill(os.getppid(), signal.SIGINT)
"""


def test_one_while_a_supervised_worker_starts_is_the_supervisors_to_hear(database, shop):
    """The terminal sends it to every process of the group, also to those that still import their modules."""
    (shop / "sitecustomize.py").write_text(PRESSED_AS_IT_STARTS)

    ended = subprocess.run(
        [sys.executable, "-m", "faultline", "worker", "shop_under_test:app", "--processes", "2", "--quiet"],
        env={**os.environ, "FAULTLINE_DSN": database, "PYTHONPATH": str(shop)},
        cwd=shop, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip

    assert (ended.returncode, ended.stderr) == (0, "")
    assert not (shop / "heard").exists()


def test_a_suite_in_the_background_lets_its_children_hear_a_ctrl_c():
    """A shell without job control has it ignored there; the tests undo that for what they start."""
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    ended = subprocess.run(
        [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"],
        env=os.environ, stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGINT
