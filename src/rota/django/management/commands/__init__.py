"""The commands that rota adds to `manage.py`."""
