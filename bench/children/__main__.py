"""`python -m bench.children CONTENDER ROLE PARAMETERS`: one measured process."""

import importlib
import json
import sys

from bench.children import protocol

contender, role, parameters = sys.argv[1:]
peer = importlib.import_module(f"bench.children.{contender}").Peer
protocol.run(peer, role, json.loads(parameters))
