"""Import the app that `MODULE:APP` names, with a helpful error for each way this can fail."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from types import ModuleType

from rota.app import Rota
from rota.errors import Invalid, RotaError, did_you_mean

_DEFAULT = "app"
_FORM = "write MODULE:APP, for example `jobs:app` for `app = Rota()` in jobs.py"


def full_name(target: str) -> str:
    return target if ":" in target else f"{target}:{_DEFAULT}"


def load_app(target: str) -> Rota:
    """Return the app. The module is searched for in the working directory first."""
    module_name, _, path = target.partition(":")
    if not module_name or not all(part.isidentifier() for part in module_name.split(".")):
        raise Invalid(f"{target!r} is not the name of a module", hint=_FORM)
    if module_name.endswith(".py"):
        correct = target.replace(".py", "", 1).rstrip(":")
        raise Invalid(f"{module_name!r} is a file, not a module", hint=f"did you mean '{correct}'?")
    module = load_module(module_name)
    value: object = module
    for name in (path or _DEFAULT).split("."):
        if not hasattr(value, name):
            raise Invalid(f"module {module_name!r} has no {path or _DEFAULT!r}", hint=_apps_of(module, name))
        value = getattr(value, name)
    if not isinstance(value, Rota):
        raise Invalid(f"{target!r} is a {type(value).__name__}, not a Rota", hint=_apps_of(module, path))
    return value


def load_module(name: str) -> ModuleType:
    """Import a module of the user. It is searched for in the working directory first."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except RotaError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise Invalid(f"there is no module {error.name!r} here", hint=_near_modules(error.name)) from None
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> Invalid:
    """Return an error that names the failing line of the user's code, without frames of the import machinery."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    file, line = last.filename, last.lineno
    if isinstance(error, SyntaxError) and error.filename:
        file, line = error.filename, error.lineno
    return Invalid(f"importing {name!r} failed: {type(error).__name__}: {error}", hint=f"{file}, line {line}")


def is_module_here(name: str) -> bool:
    return name in _modules_here()


def _modules_here() -> list[str]:
    # The absolute path, not ".": Python caches the content of a folder by path, and "." may be another one by now.
    return [module.name for module in pkgutil.iter_modules([os.getcwd()])]


def _near_modules(name: str) -> str:
    return did_you_mean(name.partition(".")[0], _modules_here()) or "run it in the folder that contains the module"


def _apps_of(module: ModuleType, name: str) -> str:
    apps = [name for name, value in vars(module).items() if isinstance(value, Rota)]
    if len(apps) == 1:
        return f"did you mean '{module.__name__}:{apps[0]}'?"
    return did_you_mean(name, apps) or f"the module contains no Rota; {_FORM}"
