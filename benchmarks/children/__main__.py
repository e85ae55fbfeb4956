"""`python -m benchmarks.children CONTENDER ROLE PARAMETERS`: one measured process."""

import importlib
import json
import sys

from benchmarks.children import protocol

contender, role, parameters = sys.argv[1:]
module = importlib.import_module(f"benchmarks.children.{contender}")
if hasattr(module, "Peer"):
    protocol.run(module.Peer, role, json.loads(parameters))
else:
    module.run(role, json.loads(parameters))  # it has roles of its own
