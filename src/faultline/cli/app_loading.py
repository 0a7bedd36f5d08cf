"""Import the user's app by `module:app`, with an exact error where that fails."""

import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from faultline.errors import ConfigError
from faultline.text.suggest import did_you_mean

if TYPE_CHECKING:
    from faultline.app import Faultline


OURS = Path(__file__).parents[1]
"""The folder of this package: its frames are of no use to users with a mistyped option."""


def load_app(path: str) -> "Faultline":
    """The app of `module:app`, in the current folder or installed; `module` alone means its `app`."""
    from faultline.app import Faultline

    module_name, _, attribute = path.partition(":")
    attribute = attribute or "app"
    _check_spelling(path, module_name)
    module = _import(module_name)
    found = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConfigError(_no_attribute(module, module_name, attribute, Faultline))
        found = getattr(found, part)
    if not isinstance(found, Faultline):
        raise ConfigError(
            f"{path} is of type {type(found).__name__}, not a Faultline app; make one: app = Faultline()"
        )
    return found


def _check_spelling(path: str, module_name: str) -> None:
    if module_name.endswith(".py") or not all(part.isidentifier() for part in module_name.split(".")):
        hint = module_name.removesuffix(".py").strip("./").replace("/", ".")
        better = f"; did you mean {hint}:app?" if hint.replace(".", "").isidentifier() else ""
        raise ConfigError(
            f"{path[:100]!a} does not name an app; write module:app, as in shop.jobs:app{better}"
        )


def _import(name: str) -> ModuleType:
    folder = os.getcwd()  # noqa: PTH109  sys.path holds strings
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:  # a module that calls sys.exit() must not look like our own end
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(_no_module(error.name, folder)) from error
        raise ConfigError(
            f"importing {name} failed: {type(error).__name__}: {error}{_place(error)}"
        ) from error


def _no_module(name: str, folder: str) -> str:
    package, _, missing = name.rpartition(".")
    if package in sys.modules:  # its package was found
        inside = [found.name for found in iter_modules(getattr(sys.modules[package], "__path__", ()))]
        return f"the package {package} has no module {missing}{did_you_mean(missing, inside)}"
    return (
        f"there is no module {name} in {folder} or among the installed packages; "
        f"run this where {name.split('.')[0]} can be imported"
    )


def _place(error: BaseException) -> str:
    """The place where the user's code failed: the last frame that is neither ours nor the import system's."""
    if isinstance(error, SyntaxError):
        return ""  # its text has the file and the line already
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        frame
        for frame in frames
        if "importlib" not in frame.filename and not Path(frame.filename).is_relative_to(OURS)
    ]
    if not theirs:
        return ""
    return f" ({os.path.relpath(theirs[-1].filename)}, line {theirs[-1].lineno}: {theirs[-1].line})"


def _no_attribute(module: ModuleType, name: str, attribute: str, kind: type) -> str:
    apps = [known for known, value in vars(module).items() if isinstance(value, kind)]
    hint = f"it has {', '.join(f'{name}:{app}' for app in apps[:3])}" if apps else "no Faultline app is in it"
    return f"the module {name} has no {attribute}; {hint}"
