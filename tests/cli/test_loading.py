"""Finding the user's app: each way in which it can fail has its own sentence."""

import pytest

from faultline.cli.app_loading import load_app
from faultline.errors import ConfigError


def refusal(path: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load_app(path)
    return str(refused.value)


def test_an_app_is_found_by_module_and_name_in_the_current_folder(shop):
    app = load_app("shop_under_test:app")

    assert "charge" in app.registry
    assert load_app("shop_under_test") is app


def test_a_module_that_is_not_there_is_named(shop):
    assert refusal("nowhere_at_all:app").startswith("there is no module nowhere_at_all in ")


def test_a_module_that_is_not_in_its_package_comes_with_those_that_are(shop):
    (shop / "package_under_test").mkdir()
    (shop / "package_under_test/__init__.py").touch()
    (shop / "package_under_test/jobs.py").touch()

    assert refusal("package_under_test.jbos:app") == (
        "the package package_under_test has no module jbos; did you mean jobs?"
    )


def test_an_app_that_is_not_in_the_module_comes_with_those_that_are(shop):
    assert refusal("shop_under_test:nope") == (
        "the module shop_under_test has no nope; it has shop_under_test:app"
    )


def test_something_else_than_an_app_is_named_by_its_type(shop):
    assert "shop_under_test:price is of type int, not a Faultline app" in refusal("shop_under_test:price")


def test_an_error_inside_the_module_is_shown_with_its_own_line(shop):
    (shop / "broken_under_test.py").write_text("import os\nprices = {}\nprices['tea']\n")

    assert refusal("broken_under_test:app") == (
        "importing broken_under_test failed: KeyError: 'tea' (broken_under_test.py, line 3: prices['tea'])"
    )


@pytest.mark.parametrize(("module", "code"), [("asking_app", "'set STRIPE_KEY'"), ("ending_app", "0")])
def test_a_module_that_ends_the_program_is_told_with_its_words_and_is_no_success(shop, module, code):
    (shop / f"{module}.py").write_text(f"import sys\nsys.exit({code})\n")

    assert refusal(f"{module}:app") == (
        f"importing {module} failed: SystemExit: {code.strip(chr(39))} "
        f"({module}.py, line 2: sys.exit({code}))"
    )


def test_an_option_that_a_task_does_not_take_is_shown_with_the_line_of_the_app(shop):
    (shop / "option_under_test.py").write_text(
        "from faultline import Faultline\napp = Faultline()\n\n@app.task(lease=5)\ndef tea() -> None: ...\n"
    )

    assert refusal("option_under_test:app").endswith("(option_under_test.py, line 4: @app.task(lease=5))")


def test_a_missing_import_inside_the_module_is_not_mistaken_for_the_module(shop):
    (shop / "needs_under_test.py").write_text("import no_such_library\n")

    assert (
        "importing needs_under_test failed: ModuleNotFoundError: No module named 'no_such_library'"
        in refusal("needs_under_test:app")
    )


@pytest.mark.parametrize("path", ["shop_under_test.py", "./shop_under_test.py:app", "shop_under_test.py:app"])
def test_a_file_name_is_told_as_the_module_it_means(shop, path):
    assert "did you mean shop_under_test:app?" in refusal(path)


def test_an_empty_name_is_refused(shop):
    assert "does not name an app" in refusal("")
